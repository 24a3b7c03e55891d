"""Where a cluster's files are kept on this machine, and the note beside them that says whose it is."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

from kumulus.surroundings import files, version

_REMOVAL = "removal"


@dataclass(frozen=True)
class Place:
    """Paths of one cluster; the same for every runtime, so that commands find them by the cluster's name.

    Args:
        directory: ``<home>/clusters/<name>``.
    """

    directory: Path

    FILES: ClassVar[frozenset[str]] = frozenset({"kumulus.json", "kubeconfig.yaml", "declared.json"})
    """What a cluster has at the top of its directory; whatever else is there is somebody else's."""

    MADE_ALONE: ClassVar[frozenset[str]] = frozenset()
    """Of these, what stands there without a note only where a run of ours was killed; nobody else has such names."""

    @classmethod
    def of(cls, home: str, name: str) -> Self:
        """Return the place of the cluster of that name below a home directory."""
        return cls(Path(home) / "clusters" / name)

    @property
    def name(self) -> str:
        """The cluster's name."""
        return self.directory.name

    @property
    def home(self) -> Path:
        """The directory that runtimes keep their clusters under."""
        return self.directory.parent.parent

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig file."""
        return self.directory / "kubeconfig.yaml"

    @property
    def note_file(self) -> Path:
        """Our own note."""
        return self.directory / "kumulus.json"

    @property
    def declared_file(self) -> Path:
        """What the cluster was declared with, for an import to go by."""
        return self.directory / "declared.json"

    def note(self) -> dict[str, str]:
        """Return our note, or {} when there is none that can be read."""
        return version.unstamped(self._written())

    def _written(self) -> dict[str, str]:
        try:
            content = json.loads(self.note_file.read_text())
        except (OSError, ValueError):
            return {}
        return {str(key): str(value) for key, value in content.items()} if isinstance(content, dict) else {}

    def too_new(self) -> str:
        """Why the files are not for this version of Kumulus to touch; empty when they are."""
        why = version.too_new(self._written())
        return f"{self.directory} {why}" if why else ""

    def damaged(self) -> bool:
        """Whether there is a note that cannot be read, as after a full disk or a loss of power."""
        return self.note_file.is_file() and not self._written()

    def write_note(self, note: dict[str, str]) -> None:
        """Write our note, whole or not at all."""
        files.write(self.note_file, json.dumps({**note, **version.stamp()}, indent=2) + "\n")

    def foreign(self) -> list[str]:
        """Names of what stands in the directory and is no part of a cluster, sorted.

        Raises:
            OSError: it cannot be looked into.
        """
        return self._without(self.FILES)

    def foreign_to_all(self) -> list[str]:
        """As :meth:`foreign`, of a cluster of any runtime.

        Raises:
            OSError: it cannot be looked into.
        """
        kinds: list[type[Place]] = [Place, *Place.__subclasses__()]
        return self._without(frozenset(name for kind in kinds for name in kind.FILES))

    def _without(self, known: frozenset[str]) -> list[str]:
        # What a write in the middle of its way is called, and kubectl's lock.
        ours = known | {f"{Path(name).stem}.tmp" for name in known} | {"kubeconfig.yaml.lock"}
        return sorted(file.name for file in self.directory.iterdir() if file.name not in ours)

    def mark_removed(self) -> None:
        """Record that the removal has begun, so that a killed one leaves no cluster that seems whole."""
        if self.directory.exists():
            with suppress(OSError):  # A full disk must not keep anybody from removing things.
                self.write_note({**self.note(), _REMOVAL: "begun"})

    def removed(self) -> bool:
        """Whether a removal was begun, or nothing that tells of the cluster is left."""
        return not self.note_file.exists() or _REMOVAL in self.note()
