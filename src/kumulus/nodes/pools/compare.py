"""Compare a live node or slice with what its pool wants, field by field, and write the patches that make it match.

Only fields that the pool owns count: the labels, annotations, taints and resources of its template, and those of an
earlier template that we recorded on the node. A cordon, a fault's taint or condition, KWOK's heartbeat and any label
that somebody added belong to others: they are neither drift nor overwritten.

Why not server-side apply: ``spec.taints`` is an atomic list there, so that one manager owns every taint or none,
and a fault's taint would conflict with the pool's. See docs/decisions/field-ownership.md.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kumulus.model.applied import APPLIED, applied_of, decode_applied, encode_applied
from kumulus.model.devices import Devices
from kumulus.model.durations import timestamp
from kumulus.model.errors import path_text, under
from kumulus.model.node_changes import NodeFields, changes, mapping_patch, status_patch
from kumulus.model.nodes import OwnedFields, owned_fields
from kumulus.model.pools import CLUSTER_LABEL, Pool
from kumulus.model.slices import SlicePart, slice_labels, slice_spec
from kumulus.nodes.pools.live import LiveNode, taint_key


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """One field of one node that is not as wanted."""

    path: str
    """The field, such as ``labels["team"]`` or ``capacity["nvidia.com/gpu"]``."""
    have: str | None
    """What the node has; None when the field is missing."""
    want: str | None
    """What the pool wants; None when the field has to go."""

    def __str__(self) -> str:
        have = "missing" if self.have is None else f'"{self.have}"'
        want = "none" if self.want is None else f'"{self.want}"'
        return f"{self.path}: {have} instead of {want}"


def owned(pool: Pool, ordinal: int) -> OwnedFields:
    """The fields that the pool owns on one of its nodes; the cluster's name is in the pool's labels."""
    return owned_fields(pool, ordinal, pool.labels.get(CLUSTER_LABEL, ""))


def field_differences(pool: Pool, ordinal: int, node: LiveNode) -> list[FieldDifference]:
    """Return every owned field of a node that is not as its pool wants it."""
    ours = owned(pool, ordinal)
    before = decode_applied(node.annotations)
    found = [FieldDifference(each.path, each.have, each.want) for each in changes(_fields(node), ours, before)]
    if not found and before != applied_of(ours):
        # Without the record, what the template drops next would stay on the node for ever.
        have = "another record" if APPLIED in node.annotations else None
        found.append(FieldDifference(f'annotations["{APPLIED}"]', have, "our record"))
    return found


def patches(pool: Pool, ordinal: int, node: LiveNode) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """Return the patches for a node, in the order in which they have to be sent; None where there is nothing to send.

    The first patches the node itself, the second its status, which takes labels and annotations too. A field to be
    removed stays in the node's record until it is removed, even if a run is interrupted: the record is written in the
    same patch as the fields it covers, and if there are two patches, the first one's covers old and new fields.

    Both are strategic merge patches, in which conditions are merged by their type. A JSON merge patch would do for the
    node itself, but takes the server a quarter longer: it writes the node as JSON and reads it again
    (docs/performance.md).

    Taints are one list on the wire, others' included: when they change, the patch names the resourceVersion it was
    computed from, so that the server refuses it (409 Conflict) rather than undo somebody's concurrent taint.
    """
    ours = owned(pool, ordinal)
    before = decode_applied(node.annotations)
    found = changes(_fields(node), ours, before)
    annotations, record = mapping_patch(found, "annotations"), applied_of(ours)
    if node.annotations.get(APPLIED) != encode_applied(record):
        annotations[APPLIED] = encode_applied(record)
    metadata: dict[str, Any] = {"labels": mapping_patch(found, "labels"), "annotations": annotations}
    metadata = {field: patch for field, patch in metadata.items() if patch}
    status = status_patch(found, ours, timestamp())
    last: dict[str, Any] = {"status": status} if status else {}
    if not any(each.section == "taints" for each in found):
        whole = {**({"metadata": metadata} if metadata else {}), **last}
        return (None, whole) if status else (whole or None, None)
    if status and record != before:
        annotations[APPLIED] = encode_applied(before.joined(record))
        metadata["annotations"] = annotations
        last["metadata"] = {"annotations": {APPLIED: encode_applied(record)}}
    keys = {taint_key(taint) for taint in ours.taints} | before.taints
    others = [dict(taint) for taint in node.taints if taint_key(taint) not in keys]
    taints = [taint.to_plain() for taint in ours.taints] + others
    return {"metadata": {**metadata, "resourceVersion": node.version}, "spec": {"taints": taints}}, last or None


def _fields(node: LiveNode) -> NodeFields:
    return NodeFields(
        node.labels,
        node.annotations,
        {taint_key(taint): str(taint.get("value") or "") for taint in node.taints},
        node.capacity,
        node.allocatable,
        node.node_info,
        node.conditions,
        node.features,
    )


# The API server refuses any change of these: such a slice is deleted and published again.
_IMMUTABLE = ("driver", "nodeName")


@dataclass(frozen=True, slots=True)
class LiveSlice:
    """What has to be known about a slice that is not as wanted."""

    uid: str
    """The object's UID."""
    surplus: tuple[str, ...] = ()
    """Keys of its spec that have to go."""
    replace: bool = False
    """Whether it cannot be changed in place: it has another owner, with which the garbage collector may delete it at
    any moment, or an immutable field differs."""


def slice_differences(
    pool: Pool, devices: Devices, part: SlicePart, node_uid: str, live: Mapping[str, Any]
) -> list[FieldDifference]:
    """Return every field of a slice that is not as its pool wants it, devices by their names.

    Args:
        part: the node and which of its slices.
    """
    want, have, meta = slice_spec(pool, devices, part), live.get("spec") or {}, live["metadata"]
    found: list[FieldDifference] = []
    labels = meta.get("labels") or {}
    for key, value in slice_labels(pool).items():
        found += _leaf(f'labels["{key}"]', labels.get(key), value)
    if not _owned(meta, node_uid):
        found.append(FieldDifference("owner", ", ".join(_owners(meta)) or None, f"this node, {node_uid}"))
    if want != have:
        for key in sorted({*want, *have} - {"devices"}):
            found += _leaf(key, have.get(key), want.get(key))
        found += _device_differences(have.get("devices") or [], want.get("devices") or [])
        if not found:
            found.append(FieldDifference("devices", "another order", "gpu-0, gpu-1, …"))
    return found


def _device_differences(have: list[dict[str, Any]], want: list[dict[str, Any]]) -> list[FieldDifference]:
    """The differences between two lists of devices; one that many devices share is reported once."""
    there, wanted = ({str(device.get("name")): device for device in devices} for devices in (have, want))
    found: list[FieldDifference] = []
    alike: dict[FieldDifference, list[str]] = {}
    for name in {**wanted, **there}:
        if name not in there:
            found.append(FieldDifference(f'devices["{name}"]', None, "published"))
        elif name not in wanted:
            found.append(FieldDifference(f'devices["{name}"]', "published", None))
        else:
            for difference in _leaf("", there[name], wanted[name]):
                alike.setdefault(difference, []).append(name)
    for difference, names in alike.items():
        where = f'"{names[0]}"' if len(names) == 1 else f"{len(names)} of {len(wanted)}"
        found.append(FieldDifference(under(f"devices[{where}]", difference.path), difference.have, difference.want))
    return found


def _leaf(path: str, have: Any, want: Any) -> list[FieldDifference]:
    if have == want:
        return []
    if isinstance(have, Mapping) and isinstance(want, Mapping):
        found: list[FieldDifference] = []
        for key in sorted({*have, *want}):
            found += _leaf(under(path, path_text((key,))), have.get(key), want.get(key))
        return found
    return [FieldDifference(path, *(None if value is None else _text(value) for value in (have, want)))]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)[:100]


def _owners(meta: Mapping[str, Any]) -> list[str]:
    return [f"{owner.get('kind')} {owner.get('uid')}" for owner in meta.get("ownerReferences") or ()]


def _owned(meta: Mapping[str, Any], node_uid: str) -> bool:
    return [owner.get("uid") for owner in meta.get("ownerReferences") or ()] == [node_uid]


def live_slice(pool: Pool, devices: Devices, part: SlicePart, node_uid: str, item: Mapping[str, Any]) -> LiveSlice:
    """Reduce a slice that is not as wanted; the arguments are those of :func:`slice_differences`."""
    want, have = slice_spec(pool, devices, part), item.get("spec") or {}
    fixed = any(have.get(key) != want[key] for key in _IMMUTABLE)
    fixed = fixed or (have.get("pool") or {}).get("name") != want["pool"]["name"]
    return LiveSlice(
        uid=item["metadata"]["uid"],
        surplus=tuple(key for key in have if key not in want),
        replace=fixed or not _owned(item["metadata"], node_uid),
    )
