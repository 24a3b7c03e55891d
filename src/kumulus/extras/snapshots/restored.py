"""What a restore did, and why one is refused, in every runtime."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kumulus.extras.snapshots.file import SnapshotSummary
from kumulus.model.words import listed
from kumulus.nodes.errors import ProviderError

RELEASED = "with a Helm release in them or a stack's own"
FORBIDDEN = "as the right to list them is missing"
UNCHANGEABLE = "as the right to change them is missing"
OF_CLAIMS = "as volume claims would be deleted with them"
MEANWHILE = "as they have been changed meanwhile"
"""Why something stays as it is; each follows `left as they are, `."""

Begin = Callable[[Collection[str]], None]
"""Called before the first change, with the paths of all objects that will be touched: none where keys are written."""


def unrecorded(_: Collection[str]) -> None:
    """The :data:`Begin` of a restore that is on record already, or that nobody would finish."""


class OfAnother(ProviderError):
    """A snapshot of another cluster than the present one; nothing was changed."""


class RestoreRefused(ProviderError):
    """The cluster would refuse a part of the restore; nothing was changed."""


class CutOff(ProviderError):
    """A restore was stopped before its end; the message says how far it has come."""


@dataclass(frozen=True)
class Restored:
    """What a restore did."""

    written: int
    """How many objects were created or changed back."""
    removed: int
    """How many were removed and not put back."""
    same: int
    left: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Names of what stays as it is, by the reason."""
    remade: tuple[str, ...] = ()
    """Names of objects whose controllers create again what they own, under other names."""

    @property
    def summary(self) -> str:
        """In words: `63 objects put back, 3 removed, 378 as they were`."""
        return f"{self.written:,} objects put back, {self.removed:,} removed, {self.same:,} as they were"


def require_nodes(about: SnapshotSummary, file: Path, wanted: Collection[str], there: Collection[str]) -> None:
    """Make sure that the nodes of a snapshot's pods exist."""
    if missing := sorted(set(wanted).difference(there)):
        raise OfAnother(
            f"pods of {file.name} are on nodes that are not here: {listed(missing, 3)}; "
            f"restore it into a stack with the node groups of {about.stack}"
        )
