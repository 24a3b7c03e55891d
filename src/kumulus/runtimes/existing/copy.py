"""The stack's own copy of the context it uses, which everything that works on its cluster reads.

The copy stays with the cluster that it was made for: if the kubeconfig's context is changed, the copy takes new
credentials from it only while it names the same API server. So even a `destroy`, which knows only the state, cannot
reach another cluster. See docs/decisions/existing-clusters.md.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from kumulus.host import files
from kumulus.kube import KubeconfigError
from kumulus.runtimes.existing import KUBECONFIG_FILE, RUNTIME
from kumulus.runtimes.existing.source import Source
from kumulus.runtimes.place import Place, unfinished

_RUNTIME, _SOURCE, _CONTEXT = "runtime", "source", "context"


class CopyPlace(Place):
    """Where the copy is."""

    FILES: ClassVar[frozenset[str]] = Place.FILES | {KUBECONFIG_FILE}
    MADE_ALONE: ClassVar[frozenset[str]] = unfinished("kumulus.json") | unfinished(KUBECONFIG_FILE)

    @classmethod
    def of_directory(cls, directory: str) -> CopyPlace:
        """The place at that directory."""
        return cls(Path(directory))

    @property
    def kubeconfig(self) -> Path:
        """The copy."""
        return self.directory / KUBECONFIG_FILE


def outlives_by_note(kubeconfig: Path) -> bool:
    """Whether a cluster is one that no stack makes or removes, by the note beside its kubeconfig.

    Without a note, as on a new machine, the kubeconfig's name is the only sign of it.
    If such a cluster were taken for one that is gone with its machine, its nodes would be left in it.
    """
    runtime = Place(kubeconfig.parent).note().get(_RUNTIME)
    return runtime == RUNTIME.name if runtime else kubeconfig.name == KUBECONFIG_FILE


def write(place: CopyPlace, source: Source, owner: str) -> None:
    """Write the copy, readable by its owner alone, and a note of its source."""
    place.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    place.directory.parent.mkdir(mode=0o700, exist_ok=True)
    place.directory.mkdir(mode=0o700, exist_ok=True)
    note = {"owner": owner, _RUNTIME: RUNTIME.name, _SOURCE: str(source.path or ""), _CONTEXT: source.context}
    # The note first, so that a killed process leaves a directory that is recognised as the stack's.
    if place.note() != note:
        place.write_note(note)
    if not is_current(place, source):
        files.write(place.kubeconfig, source.text, mode=0o600)


def is_current(place: CopyPlace, source: Source) -> bool:
    """Whether the copy says what the source says."""
    return _text(place.kubeconfig) == source.text


def refresh(kubeconfig: str) -> None:
    """Copy new credentials from a copy's source, if it has some for the same API server; otherwise do nothing.

    Args:
        kubeconfig: the path of a copy; any other kubeconfig is left alone.
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
