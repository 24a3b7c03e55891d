"""What a stack has in its cluster, by names.

Pulumi asks the plugin about everything that is declared and, in a preview, about nothing that is not any more. So the
cluster keeps the names of its faults and pools among its inputs, and reports those that are missing the next time. How
many nodes there are is for the cluster's creation. The provider plugin imports this file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kumulus.model.names import pool_name

FAULTS, POOLS, NODES, OBJECTS, PREVIEW = "faults", "pools", "nodes", "objects", "preview"


def contents(
    faults: Iterable[str],
    pools: Iterable[str],
    *,
    nodes: int | None = None,
    objects: Iterable[str] | None = None,
    preview: bool,
) -> dict[str, object]:
    """The plain form.

    Args:
        faults: names of the declared faults.
        pools: names of the node pools.
        nodes: how many nodes they have together, which a new cluster is made for; None where that is not known.
        objects: paths of the objects that another provider creates for the stack, in a cluster that it may share with
            other stacks; None in any other cluster.
        preview: whether nothing is to happen yet, so that it is worth saying what will.
    """
    names: dict[str, object] = {FAULTS: ",".join(sorted(faults)), POOLS: ",".join(sorted(pools))}
    known = {} if nodes is None else {NODES: nodes}
    shared = {} if objects is None else {OBJECTS: ",".join(sorted(objects))}
    return {**names, **known, **shared, **({PREVIEW: True} if preview else {})}


def is_contents(raw: object) -> bool:
    """Whether a value is what :func:`contents` makes."""
    if not isinstance(raw, Mapping) or not set(raw) <= {FAULTS, POOLS, NODES, OBJECTS, PREVIEW}:
        return False
    if NODES in raw and expected_nodes(raw) is None:
        return False
    return all(isinstance(raw.get(key, ""), str) for key in (FAULTS, POOLS, OBJECTS)) and raw.get(PREVIEW, True) is True


def expected_nodes(raw: object) -> int | None:
    """How many nodes a cluster is made for; None where that is not known.

    Args:
        raw: the plain form.
    """
    found = raw.get(NODES) if isinstance(raw, Mapping) else None
    # A number of Pulumi's may be 30.0.
    known = isinstance(found, int | float) and not isinstance(found, bool) and found >= 0 and found == int(found)
    return int(found) if known and found is not None else None


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


def is_preview(raw: object) -> bool | None:
    """Whether nothing is to happen yet; None where a program does not say.

    Args:
        raw: the plain form.
    """
    return raw.get(PREVIEW) is True if is_contents(raw) and isinstance(raw, Mapping) else None


def objects_of(raw: object) -> frozenset[str] | None:
    """The paths of the objects that another provider creates for a stack; None where they are not recorded."""
    if not is_contents(raw) or not isinstance(raw, Mapping) or OBJECTS not in raw:
        return None
    return frozenset(str(raw[OBJECTS]).split(",")) - {""}


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
