"""Where a cluster's files are kept on this machine, and the note beside them that says whose it is."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

_REMOVAL = "removal"


@dataclass(frozen=True)
class Place:
    """Paths of one cluster; the same for every runtime, so that commands find them by the cluster's name.

    Args:
        directory: ``<home>/clusters/<name>``.
    """

    directory: Path

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

    def note(self) -> dict[str, str]:
        """Return our note, or {} when there is none that can be read."""
        try:
            content = json.loads(self.note_file.read_text())
        except (OSError, ValueError):
            return {}
        return {str(key): str(value) for key, value in content.items()} if isinstance(content, dict) else {}

    def write_note(self, note: dict[str, str]) -> None:
        """Write our note, whole or not at all."""
        replace_file(self.note_file, json.dumps(note, indent=2) + "\n")

    def mark_removed(self) -> None:
        """Note that the removal has begun: who is killed in the middle of it leaves no cluster that seems whole."""
        if self.directory.exists():
            with suppress(OSError):  # A full disk must not keep anybody from removing things.
                self.write_note({**self.note(), _REMOVAL: "begun"})

    def removed(self) -> bool:
        """Whether a removal was begun, or nothing that tells of the cluster is left."""
        return not self.note_file.exists() or _REMOVAL in self.note()


def replace_file(file: Path, text: str) -> None:
    """Write a file, whole or not at all."""
    temporary = file.with_suffix(".tmp")
    temporary.write_text(text)
    temporary.replace(file)
