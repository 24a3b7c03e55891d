"""What a stack has in its cluster, by name.

In a preview, Pulumi does not ask the plugin about removed resources. So the cluster keeps the names of its faults and
pools among its inputs, and the next preview reports those that are missing.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeGuard

from kumulus.model.names import pool_name

FAULTS, POOLS, NODES, PREVIEW = "faults", "pools", "nodes", "preview"


def contents(
    faults: Iterable[str], pools: Iterable[str], *, nodes: int | None = None, preview: bool
) -> dict[str, object]:
    """The plain form.

    Args:
        nodes: how many nodes the pools have together, for which a new cluster is sized; None when not known.
        preview: whether this is a preview.
    """
    found = {FAULTS: ",".join(sorted(faults)), POOLS: ",".join(sorted(pools)), NODES: nodes, PREVIEW: preview or None}
    return {key: value for key, value in found.items() if value is not None}


def is_contents(raw: object) -> TypeGuard[Mapping[str, object]]:
    """Whether a value is what :func:`contents` makes."""
    if not isinstance(raw, Mapping) or not set(raw) <= {FAULTS, POOLS, NODES, PREVIEW}:
        return False
    if NODES in raw and expected_nodes(raw) is None:
        return False
    return all(isinstance(raw.get(key, ""), str) for key in (FAULTS, POOLS)) and raw.get(PREVIEW, True) is True


def expected_nodes(raw: object) -> int | None:
    """The number of nodes a cluster is sized for; None when not known."""
    found = raw.get(NODES) if isinstance(raw, Mapping) else None
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    # Pulumi may pass 30 as 30.0.
    return int(found) if found >= 0 and found % 1 == 0 else None


def removed(before: object, after: object, key: str) -> list[str]:
    """Names that are in the recorded contents and no longer in the current ones; none when either is not known."""
    if not (is_contents(before) and is_contents(after)):
        return []
    had, has = (set(str(raw.get(key, "")).split(",")) for raw in (before, after))
    return sorted(had - has - {""})


def is_preview(raw: object) -> bool | None:
    """Whether this is a preview; None when a program does not say."""
    return raw.get(PREVIEW) is True if is_contents(raw) else None


def renamed(zones: Iterable[str], added: Sequence[str]) -> str | None:
    """The group to which all added pools belong, if they are in the same zones as a removed group; else None.

    Args:
        zones: those of the removed group.
        added: names of the added pools.
    """
    places = list(zones)
    if not places:
        return None
    suffix = f"-{places[0]}"
    for group in (name.removesuffix(suffix) for name in added if name.endswith(suffix)):
        if sorted(pool_name(group, zone) for zone in places) == sorted(added):
            return group
    return None
