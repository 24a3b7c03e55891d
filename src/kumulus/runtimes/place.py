"""Where a cluster's files are kept on this machine, and the note beside them that says whose it is."""

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

from kumulus.host import files, version

_REMOVAL = "removal"


def unfinished(name: str) -> frozenset[str]:
    """The names of unfinished writes of a file, while a process makes them."""
    return frozenset({files.unfinished(Path(name)).name})


@dataclass(frozen=True)
class Place:
    """Paths of one cluster; the same for every runtime, so that commands find them by the cluster's name."""

    directory: Path
    """``<home>/clusters/<name>``."""

    FILES: ClassVar[frozenset[str]] = frozenset({"kumulus.json", "kubeconfig.yaml", "declared.json"})
    """A cluster's entries at the top of its directory; all others there are somebody else's."""

    MADE_ALONE: ClassVar[frozenset[str]] = frozenset()
    """Entries that are there without a note only if a run of ours was killed; nobody else uses such names."""

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
        """The file with the cluster's declaration, for an import."""
        return self.directory / "declared.json"

    def note(self) -> dict[str, str]:
        """Return our note, or {} when it is missing or cannot be read."""
        return version.unstamped(self._written())

    def _written(self) -> dict[str, str]:
        try:
            content = json.loads(self.note_file.read_text())
        except (OSError, ValueError):
            return {}
        return {str(key): str(value) for key, value in content.items()} if isinstance(content, dict) else {}

    def too_new(self) -> str:
        """Why this version of Kumulus must not touch the files; empty when it may."""
        why = version.too_new(self._written())
        return f"{self.directory} {why}" if why else ""

    def damaged(self) -> bool:
        """Whether there is a note that cannot be read, as after a full disk or a power failure."""
        return self.note_file.is_file() and not self._written()

    def write_note(self, note: dict[str, str]) -> None:
        """Write our note atomically."""
        files.write(self.note_file, json.dumps({**note, **version.stamp()}, indent=2) + "\n")

    def foreign(self) -> list[str]:
        """The names of entries in the directory that are not part of a cluster, sorted."""
        return self._without(self.FILES)

    def foreign_to_all(self) -> list[str]:
        """Like :meth:`foreign`, for a cluster of any runtime."""
        kinds: list[type[Place]] = [Place, *Place.__subclasses__()]
        return self._without(frozenset(name for kind in kinds for name in kind.FILES))

    def _without(self, known: frozenset[str]) -> list[str]:
        # kubectl's lock beside the names of unfinished writes.
        ours = known.union(*map(unfinished, known), {"kubeconfig.yaml.lock"})
        return sorted(file.name for file in self.directory.iterdir() if file.name not in ours)

    def mark_removed(self) -> None:
        """Record that the removal has begun, so that a killed removal leaves no cluster that seems complete."""
        if self.directory.exists():
            with suppress(OSError):  # A full disk must not keep anybody from removing things.
                self.write_note({**self.note(), _REMOVAL: "begun"})

    def removed(self) -> bool:
        """Whether a removal was begun, or the cluster's note is gone."""
        return not self.note_file.exists() or _REMOVAL in self.note()
