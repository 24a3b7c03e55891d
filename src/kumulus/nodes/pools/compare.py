"""Compare a live node or slice with what its pool wants, field by field, and write the patches that make it match.

Only fields that the pool owns count: the labels, annotations, taints and resources of its template, and those of an
earlier template that we recorded on the node. A cordon, a fault's taint or condition, KWOK's heartbeat and any label
that somebody added belong to others: they are neither drift nor overwritten.

docs/decisions/field-ownership.md says why this is not server-side apply.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from kumulus.model.applied import APPLIED, applied_of, decode_applied, encode_applied
from kumulus.model.durations import timestamp
from kumulus.model.errors import path_text, under
from kumulus.model.node_changes import FieldChange, changes, mapping_patch, status_patch, taints_after
from kumulus.model.nodes import owned_fields
from kumulus.model.pools import Pool
from kumulus.model.slices import SlicePart, slice_labels, slice_spec
from kumulus.nodes.pools.live import LiveNode


def field_differences(pool: Pool, ordinal: int, node: LiveNode) -> list[FieldChange]:
    """Return every owned field of a node that is not as its pool wants it."""
    ours = owned_fields(pool, ordinal)
    before = decode_applied(node.annotations)
    found = changes(node, ours, before)
    if not found and before != applied_of(ours):
        # Without the record, what the template drops next would stay on the node for ever.
        have = "another record" if APPLIED in node.annotations else None
        found.append(FieldChange("annotations", APPLIED, have, "our record"))
    return found


def patches(pool: Pool, ordinal: int, node: LiveNode) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """Return the strategic merge patches for a node, in the order in which to send them; None for nothing to send.

    The first patches the node itself, the second its status, which takes labels and annotations too. A field to be
    removed stays in the node's record until it is removed, even if a run is interrupted: the record is written in the
    same patch as the fields it covers, and if there are two patches, the first one's covers old and new fields.

    Taints are one list on the wire, others' included: when they change, the patch names the resourceVersion it was
    computed from, so that the server refuses it (409 Conflict) rather than undo somebody's concurrent taint.
    """
    ours = owned_fields(pool, ordinal)
    before = decode_applied(node.annotations)
    found = changes(node, ours, before)
    annotations, record = mapping_patch(found, "annotations"), applied_of(ours)
    if node.annotations.get(APPLIED) != encode_applied(record):
        annotations[APPLIED] = encode_applied(record)
    metadata: dict[str, Any] = {"labels": mapping_patch(found, "labels"), "annotations": annotations}
    metadata = {field: patch for field, patch in metadata.items() if patch}
    of_metadata: dict[str, Any] = {"metadata": metadata} if metadata else {}
    status = status_patch(found, ours, timestamp())
    of_status: dict[str, Any] = {"status": status} if status else {}
    taints_change = any(each.section == "taints" for each in found)
    if not taints_change and status:
        return None, {**of_metadata, **of_status}
    if not taints_change:
        return of_metadata or None, None
    if status and record != before:
        annotations[APPLIED] = encode_applied(before.joined(record))
        metadata["annotations"] = annotations
        of_status["metadata"] = {"annotations": {APPLIED: encode_applied(record)}}
    taints = taints_after(node.taints, before.taints, ours.taints)
    of_node = {"metadata": {**metadata, "resourceVersion": node.version}, "spec": {"taints": taints}}
    return of_node, of_status or None


# The API server refuses any change of these: such a slice is deleted and published again.
_IMMUTABLE = ("driver", "nodeName")


@dataclass(frozen=True, slots=True)
class LiveSlice:
    """What has to be known of a slice to change it."""

    uid: str
    """The object's UID."""
    surplus: tuple[str, ...] = ()
    """Keys of its spec that have to go."""
    replace: bool = False
    """Whether it cannot be changed in place: an immutable field differs, or it has another owner. With that owner, the
    garbage collector may delete it at any moment."""


def slice_differences(
    pool: Pool, part: SlicePart, node_uid: str, live: Mapping[str, Any]
) -> tuple[LiveSlice, list[FieldChange]]:
    """Return what has to be known of a slice, and every field of it that is not as its pool wants it.

    Args:
        node_uid: the UID of its node.
        live: the slice as the API server returns it.
    """
    want, have, meta = slice_spec(pool, part), live.get("spec") or {}, live["metadata"]
    found: list[FieldChange] = []
    labels = meta.get("labels") or {}
    for key, value in slice_labels(pool).items():
        found += _differences(f'labels["{key}"]', labels.get(key), value)
    is_of_node = [owner.get("uid") for owner in meta.get("ownerReferences") or ()] == [node_uid]
    if not is_of_node:
        found.append(FieldChange("owner", "", ", ".join(_owners(meta)) or None, f"this node, {node_uid}"))
    if want != have:
        for key in sorted({*want, *have} - {"devices"}):
            found += _differences(key, have.get(key), want.get(key))
        found += _device_differences(have.get("devices") or [], want.get("devices") or [])
        if not found:
            found.append(FieldChange("devices", "", "another order", "gpu-0, gpu-1, …"))
    other_pool = (have.get("pool") or {}).get("name") != want["pool"]["name"]
    immutable_differs = other_pool or any(have.get(key) != want[key] for key in _IMMUTABLE)
    surplus = tuple(key for key in have if key not in want)
    return LiveSlice(meta["uid"], surplus, immutable_differs or not is_of_node), found


def _device_differences(have: list[dict[str, Any]], want: list[dict[str, Any]]) -> list[FieldChange]:
    """The differences between two lists of devices, by their names; one that many devices share is reported once."""
    there, wanted = ({str(device.get("name")): device for device in devices} for devices in (have, want))
    found: list[FieldChange] = []
    alike: dict[FieldChange, list[str]] = {}
    for name in {**wanted, **there}:
        if name not in there:
            found.append(FieldChange("devices", name, None, "published"))
        elif name not in wanted:
            found.append(FieldChange("devices", name, "published", None))
        else:
            for difference in _differences("", there[name], wanted[name]):
                alike.setdefault(difference, []).append(name)
    for difference, names in alike.items():
        where = f'"{names[0]}"' if len(names) == 1 else f"{len(names)} of {len(wanted)}"
        found.append(replace(difference, section=under(f"devices[{where}]", difference.path)))
    return found


def _differences(path: str, have: Any, want: Any) -> list[FieldChange]:
    """Every difference between two values of JSON, each at its own path below this one."""
    if have == want:
        return []
    if isinstance(have, Mapping) and isinstance(want, Mapping):
        found: list[FieldChange] = []
        for key in sorted({*have, *want}):
            found += _differences(under(path, path_text((key,))), have.get(key), want.get(key))
        return found
    return [FieldChange(path, "", _text(have), _text(want))]


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)[:100]


def _owners(meta: Mapping[str, Any]) -> list[str]:
    return [f"{owner.get('kind')} {owner.get('uid')}" for owner in meta.get("ownerReferences") or ()]
