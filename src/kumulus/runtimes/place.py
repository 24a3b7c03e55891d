"""Where a cluster's files are kept on this machine, and the note next to them that says who its owner is.

An owner has what people know a stack by (its name, the resource, the program's directory), and the stack's identity.
If two owners both have an identity, it decides: a moved project or a renamed stack is the same owner, and another
checkout of the same project is another one. If one has none, all the rest has to be the same.
"""

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from kumulus.host import files, version
from kumulus.model.identity import Owner

_REMOVAL = "removal"
_KUBECTLS_LOCK = "kubeconfig.yaml.lock"


def unfinished(name: str) -> str:
    """The name that a file of this name has while it is being written."""
    return files.unfinished(Path(name)).name


@dataclass(frozen=True)
class Place:
    """Paths of one cluster; the same for every runtime, so that commands find them by the cluster's name."""

    directory: Path
    """``<home>/clusters/<name>``."""

    FILES: ClassVar[frozenset[str]] = frozenset({"kumulus.json", "kubeconfig.yaml", "declared.json"})
    """A cluster's entries at the top of its directory; all others there are somebody else's."""

    OURS_WITHOUT_NOTE: ClassVar[frozenset[str]] = frozenset()
    """Entries that are ours even without a note: a killed run has left them, and nobody else uses such names."""

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

    def made_by(self) -> tuple[str, str]:
        """The stack's name, and the directory of its program; empty where our note does not say."""
        return stack_and_program(self.note().get("owner", ""))

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
        return self._other_than(self.FILES)

    def foreign_to_all(self) -> list[str]:
        """Like :meth:`foreign`, for a cluster of any runtime that is imported; the plugin imports all of them."""
        kinds: list[type[Place]] = [Place, *Place.__subclasses__()]
        return self._other_than(frozenset(name for kind in kinds for name in kind.FILES))

    def _other_than(self, known: frozenset[str]) -> list[str]:
        being_written = {unfinished(name) for name in known}
        ours = known | being_written | {_KUBECTLS_LOCK}
        return sorted(file.name for file in self.directory.iterdir() if file.name not in ours)

    def mark_removed(self) -> None:
        """Record that the removal has begun, so that a killed removal leaves no cluster that seems complete."""
        if self.directory.exists():
            with suppress(OSError):  # A full disk must not keep anybody from removing things.
                self.write_note({**self.note(), _REMOVAL: "begun"})

    def removed(self) -> bool:
        """Whether a removal was begun; that the note is gone does not say so, as it goes last."""
        return _REMOVAL in self.note()


_IDENTITY = "stackId"


def owner(stack: str, urn: str, program: str, identity: str = "") -> str:
    """An owner as a text, as notes and records have it; the identity is the stack's, if it has one."""
    marked = {_IDENTITY: identity} if identity else {}
    return json.dumps({"stack": stack, "urn": urn, "program": program, **marked}, sort_keys=True)


def identified(written: str, identity: str) -> str:
    """A written owner with the stack's identity; unchanged if there is no identity, or if the text is no owner."""
    known = _read(written)
    return json.dumps({**known, _IDENTITY: identity}, sort_keys=True) if known and identity else written


def identity_of(written: str) -> str:
    """The identity in a written owner; empty where there is none."""
    return str(_read(written).get(_IDENTITY) or "")


def same_owner(one: str, other: str) -> bool:
    """Whether two written owners are the same stack (see the head of this file)."""
    if one == other:
        return True
    first, second = _read(one), _read(other)
    if first.get(_IDENTITY) and second.get(_IDENTITY):
        return bool(first[_IDENTITY] == second[_IDENTITY])
    # One of the two has no identity: all the rest decides.
    return bool(first) and {**first, _IDENTITY: ""} == {**second, _IDENTITY: ""}


def described_owner(written: str) -> str:
    """The owner in a message: the stack and its program's directory, or the text itself if it lacks one of these."""
    known = _read(written)
    return f"the stack {known['stack']} of {known['program']}" if {"stack", "program"} <= known.keys() else written


def stack_and_program(written: str) -> tuple[str, str]:
    """The stack's name, and the directory of its program; empty where the owner does not say."""
    known = _read(written)
    return str(known.get("stack") or ""), str(known.get("program") or "")


def cluster_owner(kubeconfig: Path) -> Owner:
    """The stack that owns a kubeconfig's cluster, by the note in its folder; an empty owner without a note."""
    written = Place(kubeconfig.parent).note().get("owner", "")
    return Owner(identity_of(written), str(_read(written).get("stack") or ""))


def _read(written: str) -> dict[str, Any]:
    try:
        found = json.loads(written)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
