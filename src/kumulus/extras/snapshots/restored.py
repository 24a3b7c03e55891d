"""What a restore did, and why one is refused, in every runtime."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from kumulus.extras.snapshots.file import About
from kumulus.model.words import listed
from kumulus.nodes.errors import ProviderError


class OfAnother(ProviderError):
    """A snapshot of another cluster than the present one."""


@dataclass(frozen=True)
class Restored:
    """What a restore did.

    Args:
        written: how many objects were created or changed back.
        removed: how many were removed that did not exist then.
        same: how many were as they were.
        left: namespaces that stay as they are, because they contain a Helm release or are the other stack's own.
        remade: names of objects whose controllers create again what they own, under other names.
        forbidden: kinds that stay as they are, because the right to list them is missing.
    """

    written: int
    removed: int
    same: int
    left: tuple[str, ...] = ()
    remade: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()


def require_nodes(about: About, file: Path, wanted: Collection[str], there: Collection[str]) -> None:
    """Make sure that the nodes of a snapshot's pods exist.

    Raises:
        OfAnother: one does not.
    """
    if missing := sorted(set(wanted).difference(there)):
        raise OfAnother(
            f"pods of {file.name} are on nodes that are not here: {listed(missing, 3)}; "
            f"restore it into a stack with the node groups of {about.stack}"
        )
