"""What a stack has in its cluster, by names.

Pulumi asks the plugin about everything that is declared and, in a preview, about nothing that is not any more. So the
cluster keeps the names of its faults and pools among its inputs, and tells those that are missing the next time. The
provider plugin imports this file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kumulus.model.names import pool_name

FAULTS, POOLS, PREVIEW = "faults", "pools", "preview"


def contents(faults: Iterable[str], pools: Iterable[str], *, preview: bool) -> dict[str, object]:
    """The plain form.

    Args:
        faults: names of the declared faults.
        pools: names of the node pools.
        preview: whether nothing is to happen yet, so that it is worth saying what will.
    """
    names = {FAULTS: ",".join(sorted(faults)), POOLS: ",".join(sorted(pools))}
    return {**names, **({PREVIEW: True} if preview else {})}


def is_contents(raw: object) -> bool:
    """Whether a value is what :func:`contents` makes."""
    if not isinstance(raw, Mapping) or not set(raw) <= {FAULTS, POOLS, PREVIEW}:
        return False
    return all(isinstance(raw.get(key, ""), str) for key in (FAULTS, POOLS)) and raw.get(PREVIEW, True) is True


def removed(before: object, after: object, key: str) -> list[str]:
    """Names that are in one stack's contents and not in another's; none where either is not known.

    Args:
        before: the plain form that was recorded.
        after: the plain form now.
        key: `FAULTS` or `POOLS`.
    """
    if not (is_contents(before) and is_contents(after)):
        return []
    assert isinstance(before, Mapping)
    assert isinstance(after, Mapping)
    had, has = (set(str(raw.get(key, "")).split(",")) for raw in (before, after))
    return sorted(had - has - {""})


def renamed(zones: Iterable[str], come: Sequence[str]) -> str | None:
    """What a node group that goes may have been renamed to: the group that comes in its place, in the same zones.

    Args:
        zones: those of the group that goes.
        come: names of all pools that come; None is the answer where they are of more than one group.
    """
    places = list(zones)
    for zone in places[:1]:
        for group in (name.removesuffix(f"-{zone}") for name in come if name.endswith(f"-{zone}")):
            if sorted(pool_name(group, each) for each in places) == sorted(come):
                return group
    return None
