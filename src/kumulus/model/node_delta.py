"""The patch that takes a node from one wanted state to the next, without reading the node first.

The start or end of a fault changes many nodes, whose states are known from the records. Labels, annotations, resources
and conditions go in one request to the node's status, which accepts them all; only taints need a second request, since
taints set by others have to be kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kumulus.model.active_faults import BOOT_ID_ANNOTATION
from kumulus.model.applied import APPLIED, applied_of, encode_applied
from kumulus.model.node_changes import changes_between, mapping_patch, status_patch
from kumulus.model.nodes import OwnedFields


@dataclass(frozen=True)
class Delta:
    """What changes on a node.

    Args:
        status: a strategic merge patch for the node's status; None when nothing changes there.
        taints: whether the taints change too.
    """

    status: dict[str, object] | None
    taints: bool


def delta(befores: Sequence[OwnedFields], after: OwnedFields, boot_id: str, now: str) -> Delta:
    """What changes on a node from one wanted state to another.

    Args:
        befores: its current wanted state; several if it may be in any of them, as after a change that was cut off. The
            patches then have what changes from any of them: they set values, so that what is there already stays.
        boot_id: its boot ID when it was created, restored when no fault has it reboot any more.
        now: the time for changed conditions, RFC 3339 in UTC.
    """
    by_place = {(each.section, each.key): each for before in befores for each in changes_between(before, after)}
    found = list(by_place.values())
    annotations = mapping_patch(found, "annotations")
    becomes = applied_of(after)
    if any(applied_of(before) != becomes for before in befores):
        annotations[APPLIED] = encode_applied(becomes)
    metadata = {"labels": mapping_patch(found, "labels"), "annotations": annotations}
    metadata = {key: value for key, value in metadata.items() if value}
    status = status_patch(found, after, now)
    if any(BOOT_ID_ANNOTATION in before.annotations.keys() - after.annotations for before in befores):
        status["nodeInfo"] = {"bootID": boot_id}
    body = {**({"metadata": metadata} if metadata else {}), **({"status": status} if status else {})}
    return Delta(body or None, any(each.section == "taints" for each in found))


def taints_after(
    live: list[Mapping[str, object]], befores: Sequence[OwnedFields], after: OwnedFields
) -> list[dict[str, object]]:
    """A node's taints after the change; taints set by others are kept as they are. Arguments as of :func:`delta`."""
    ours = {(taint.key, taint.effect) for each in (*befores, after) for taint in each.taints}
    others: list[dict[str, object]] = [
        dict(taint) for taint in live if (taint.get("key"), taint.get("effect")) not in ours
    ]
    mine: list[dict[str, object]] = [{**taint.to_plain()} for taint in after.taints]
    return mine + others
