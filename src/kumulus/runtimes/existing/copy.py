"""The stack's own copy of the context it uses, which whatever works on its cluster reads.

The copy stays with the cluster that it was made for: if the kubeconfig's context is changed, the copy takes new
credentials from it only as long as it names the same API server. So not even a `destroy`, which knows only the state,
reaches another cluster. See docs/decisions/existing-clusters.md.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from kumulus.kube import KubeconfigError
from kumulus.runtimes.existing import KUBECONFIG_FILE, RUNTIME
from kumulus.runtimes.existing.source import Source
from kumulus.runtimes.place import Place
from kumulus.surroundings import files

_RUNTIME, _SOURCE, _CONTEXT = "runtime", "source", "context"


class CopyPlace(Place):
    """Where the copy is."""

    FILES: ClassVar[frozenset[str]] = Place.FILES | {KUBECONFIG_FILE}
    MADE_ALONE: ClassVar[frozenset[str]] = frozenset({"kumulus.tmp", "existing.tmp"})

    @classmethod
    def of_directory(cls, directory: str) -> CopyPlace:
        """The place that is that directory."""
        return cls(Path(directory))

    @property
    def kubeconfig(self) -> Path:
        """The copy."""
        return self.directory / KUBECONFIG_FILE


def outlives_by_note(kubeconfig: Path) -> bool:
    """Whether a cluster is one that no stack makes or removes, by the note beside its kubeconfig.

    Where there is none, as on another machine than the last one, the kubeconfig's name is all that a state of before
    2026-11-22 says of it. To take such a cluster for one that has gone with its machine would leave its nodes there.
    """
    runtime = Place(kubeconfig.parent).note().get(_RUNTIME)
    return runtime == RUNTIME.name if runtime else kubeconfig.name == KUBECONFIG_FILE


def write(place: CopyPlace, source: Source, owner: str) -> None:
    """Write the copy, readable by its owner alone, and note where it is from.

    Raises:
        OSError: it cannot be written.
    """
    place.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    place.directory.parent.mkdir(mode=0o700, exist_ok=True)
    place.directory.mkdir(mode=0o700, exist_ok=True)
    note = {"owner": owner, _RUNTIME: RUNTIME.name, _SOURCE: str(source.path or ""), _CONTEXT: source.context}
    # The note first, so that a process that is killed leaves a directory that is recognised as the stack's.
    if place.note() != note:
        place.write_note(note)
    if not is_current(place, source):
        files.write(place.kubeconfig, source.text, mode=0o600)


def is_current(place: CopyPlace, source: Source) -> bool:
    """Whether the copy says what the source says."""
    return _text(place.kubeconfig) == source.text


def refresh(kubeconfig: str) -> None:
    """Take new credentials over into a copy whose source has some, for the same API server; otherwise do nothing.

    Args:
        kubeconfig: the path of a copy, or of any other kubeconfig, which is left alone.
    """
    place = CopyPlace(Path(kubeconfig).parent)
    note = place.note()
    if not note.get(_SOURCE):
        return
    with suppress(KubeconfigError, OSError, ValueError, KeyError, IndexError):
        source = Source.of({"kubeconfig": note[_SOURCE], _CONTEXT: note.get(_CONTEXT)})
        known = json.loads(place.kubeconfig.read_text())
        if known["clusters"] == source.document["clusters"] and known != source.document:
            files.write(place.kubeconfig, source.text, mode=0o600)


def _text(file: Path) -> str | None:
    try:
        return file.read_text()
    except OSError:
        return None
