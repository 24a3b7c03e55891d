"""Compare a live node with what its pool wants, field by field, and write the patches that make it so.

Only fields that the pool owns count: the labels, annotations, taints and resources of its template, and those of an
earlier template that we recorded on the node. A cordon, a fault's taint or condition, KWOK's heartbeat and any label
that somebody added are theirs: neither drift nor overwritten.

Why not server-side apply: ``spec.taints`` is an atomic list there, so that one manager owns every taint or none,
and a fault's taint would conflict with the pool's. See docs/decisions/field-ownership.md.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from provider.pools.live import LiveNode, taint_key
from spec.applied import APPLIED, Applied, applied_of, decode_applied, encode_applied
from spec.nodes import CONDITIONS, OwnedFields, owned_fields, posted_condition
from spec.pools import CLUSTER_LABEL, Pool, Taint
from spec.quantity import QuantityError, equal


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """One field of one node that is not as wanted.

    Attributes:
        path: the field, such as ``labels["team"]`` or ``capacity["nvidia.com/gpu"]``.
        have: what the node has; None when the field is missing.
        want: what the pool wants; None when the field has to go.
    """

    path: str
    have: str | None
    want: str | None

    def __str__(self) -> str:
        have = "missing" if self.have is None else f'"{self.have}"'
        want = "none" if self.want is None else f'"{self.want}"'
        return f"{self.path}: {have} instead of {want}"


def owned(pool: Pool, ordinal: int) -> OwnedFields:
    """The fields that the pool owns on one of its nodes; the cluster's name stands in the pool's labels."""
    return owned_fields(pool, ordinal, pool.labels.get(CLUSTER_LABEL, ""))


def field_differences(pool: Pool, ordinal: int, node: LiveNode) -> list[FieldDifference]:
    """Return every owned field of a node that is not as its pool wants it.

    Args:
        pool: what is wanted.
        ordinal: which of the pool's nodes it is.
        node: the node as it is.
    """
    ours = owned(pool, ordinal)
    before = decode_applied(node.annotations)
    found = _mapping("labels", node.labels, ours.labels, before.labels)
    found += _mapping("annotations", node.annotations, ours.annotations, before.annotations)
    found += _taints(node.taints, ours.taints, before.taints)
    found += _mapping("capacity", node.capacity, ours.capacity, before.resources, _same)
    found += _mapping("allocatable", node.allocatable, ours.allocatable, before.resources, _same)
    found += _mapping("nodeInfo", node.node_info, ours.node_info, ())
    found += _conditions(node.conditions, ours, before)
    if not found and before != applied_of(ours):
        # Without it, what the template drops next would stay on the node for ever.
        have = "another record" if APPLIED in node.annotations else None
        found.append(FieldDifference(f'annotations["{APPLIED}"]', have, "our record"))
    return found


def _mapping(
    section: str,
    have: Mapping[str, str],
    want: Mapping[str, str],
    before: Iterable[str],
    same: Callable[[str | None, str], bool] = operator.eq,
) -> list[FieldDifference]:
    found = [
        FieldDifference(f'{section}["{key}"]', have.get(key), value)
        for key, value in _others(have, want)
        if not same(have.get(key), value)
    ]
    dropped = [key for key in before if key not in want and key in have]
    return found + [FieldDifference(f'{section}["{key}"]', have[key], None) for key in sorted(dropped)]


def _others(have: Mapping[str, str], want: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """What is wanted, unless all of it is there literally, as on nearly every node: that is told without a loop."""
    return () if want.items() <= have.items() else want.items()


def _same(have: str | None, want: str) -> bool:
    """Whether a node's quantity is the wanted amount; the API server takes some spellings that we refuse."""
    try:
        return have is not None and (have == want or equal(have, want))
    except QuantityError:
        return False


def _taints(
    have: Iterable[Mapping[str, Any]], want: Iterable[Taint], before: frozenset[tuple[str, str]]
) -> list[FieldDifference]:
    there = {taint_key(taint): str(taint.get("value") or "") for taint in have}
    wanted = {taint_key(taint): taint.value for taint in want}
    found = []
    for key, value in wanted.items():
        if there.get(key) != value:
            found.append(FieldDifference(_taint_path(key), there.get(key), value))
    for key in sorted(before):
        if key not in wanted and key in there:
            found.append(FieldDifference(_taint_path(key), there[key], None))
    return found


def _conditions(have: Mapping[str, str], ours: OwnedFields, before: Applied) -> list[FieldDifference]:
    """Only a fault sets conditions; all others are KWOK's or somebody's."""
    found = [
        FieldDifference(f'conditions["{kind}"]', have.get(kind), wanted.status)
        for kind, wanted in ours.conditions.items()
        if have.get(kind) != wanted.status
    ]
    dropped = [kind for kind in sorted(before.conditions) if kind not in ours.conditions and kind in have]
    return found + [FieldDifference(f'conditions["{kind}"]', have[kind], None) for kind in dropped]


def _taint_path(key: tuple[str, str]) -> str:
    return f'taints["{key[0]}:{key[1]}"]'


def patches(pool: Pool, ordinal: int, node: LiveNode) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """Return the patches for a node: of the node itself, and of its status; None where nothing differs.

    Both are strategic merge patches, in which conditions are merged by their type. A JSON merge patch would do for the
    node itself, but takes the server a quarter longer: it writes the node as JSON and reads it again
    (docs/performance.md).

    Taints are one list on the wire, others' included: when they change, the patch names the resourceVersion it was
    computed from, so that the server refuses it (409 Conflict) rather than undo somebody's concurrent taint.
    """
    ours = owned(pool, ordinal)
    before = decode_applied(node.annotations)
    record = encode_applied(applied_of(ours))
    labels = _merge(node.labels, ours.labels, before.labels)
    annotations = _merge(node.annotations, {**ours.annotations, APPLIED: record}, before.annotations)
    metadata: dict[str, Any] = {}
    if labels:
        metadata["labels"] = labels
    if annotations:
        metadata["annotations"] = annotations
    main: dict[str, Any] = {}
    if _taints(node.taints, ours.taints, before.taints):
        keys = {taint_key(taint) for taint in ours.taints} | before.taints
        others = [dict(taint) for taint in node.taints if taint_key(taint) not in keys]
        main["spec"] = {"taints": [taint.to_plain() for taint in ours.taints] + others}
        metadata["resourceVersion"] = node.version
    if metadata:
        main["metadata"] = metadata
    status: dict[str, Any] = {}
    for section, have, want in (
        ("capacity", node.capacity, ours.capacity),
        ("allocatable", node.allocatable, ours.allocatable),
    ):
        changed: dict[str, str | None] = {
            key: value for key, value in _others(have, want) if not _same(have.get(key), value)
        }
        changed.update({key: None for key in before.resources if key not in want and key in have})
        if changed:
            status[section] = changed
    if info := _merge(node.node_info, ours.node_info, ()):
        status["nodeInfo"] = info
    if conditions := _condition_patch(node.conditions, ours, before):
        status["conditions"] = conditions
    return main or None, {"status": status} if status else None


def _merge(have: Mapping[str, str], want: Mapping[str, str], before: Iterable[str]) -> dict[str, str | None]:
    changed: dict[str, str | None] = {key: value for key, value in _others(have, want) if have.get(key) != value}
    changed.update({key: None for key in before if key not in want and key in have})
    return changed


def _condition_patch(have: Mapping[str, str], ours: OwnedFields, before: Applied) -> list[dict[str, str]]:
    differences = _conditions(have, ours, before)
    if not differences:
        return []
    found = []
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    for difference in differences:
        kind = difference.path.split('"')[1]
        wanted = ours.conditions.get(kind) or CONDITIONS.get(kind)
        found.append(posted_condition(kind, wanted, now) if wanted else {"type": kind, "$patch": "delete"})
    return found
