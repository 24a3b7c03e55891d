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
    """The plain form; `nodes`: how many they have together, for which a new cluster is sized; None when not known."""
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
    # Pulumi may pass 30 as 30.0.
    known = isinstance(found, int | float) and not isinstance(found, bool) and found >= 0 and found == int(found)
    return int(found) if known and found is not None else None


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
    """The added group in the same zones as a removed one; None if the added pools belong to more than one group."""
    places = list(zones)
    for zone in places[:1]:
        for group in (name.removesuffix(f"-{zone}") for name in added if name.endswith(f"-{zone}")):
            if sorted(pool_name(group, each) for each in places) == sorted(added):
                return group
    return None
