"""How a node differs from its wanted state, as a list of changes that callers show as drift or write as patches."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kumulus.model.active_faults import BOOT_ID_ANNOTATION
from kumulus.model.applied import APPLIED, Applied, applied_of, encode_applied
from kumulus.model.fault_effects import Condition
from kumulus.model.gfd import SIMULATED_POOL_LABEL
from kumulus.model.nodes import CONDITIONS, OwnedFields, declared_features, posted_condition
from kumulus.model.pools import Taint
from kumulus.model.quantity import QuantityError, equal


@dataclass(frozen=True, slots=True)
class NodeFields:
    """What a node has, of the fields that a pool can own."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    taints: Sequence[Mapping[str, Any]]
    """In their JSON form: those that others set have to be written back as they are."""
    capacity: Mapping[str, str]
    allocatable: Mapping[str, str]
    node_info: Mapping[str, str]
    conditions: Mapping[str, str]
    """By type, in the form in which they are compared with the wanted ones."""
    features: Sequence[str]
    """Names of the features that it declares."""


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field of a node or a slice that is not as wanted."""

    section: str
    """The field that it is in, as Kubernetes writes it."""
    key: str
    """The key in that section; ``key:effect`` for a taint, empty for the section itself."""
    have: str | None
    """The value that is there; None when the field is missing."""
    want: str | None
    """The wanted value; None when the field has to go."""

    @property
    def path(self) -> str:
        """The field, such as ``labels["team"]`` or ``capacity["nvidia.com/gpu"]``."""
        return f'{self.section}["{self.key}"]' if self.key else self.section

    def __str__(self) -> str:
        have = "missing" if self.have is None else f'"{self.have}"'
        want = "none" if self.want is None else f'"{self.want}"'
        return f"{self.path}: {have} instead of {want}"


def changes(
    have: NodeFields,
    want: OwnedFields,
    before: Applied,
    condition_form: Callable[[Condition], str] = lambda condition: condition.status,
) -> list[FieldChange]:
    """Every field that has to change: those with another wanted value, and those no longer wanted.

    Args:
        before: the keys that were wanted when it was last written.
        condition_form: the form in which `have` has its conditions.
    """
    conditions = {kind: condition_form(each) for kind, each in want.conditions.items()}
    found = [
        *_in_section("labels", have.labels, want.labels, before.labels),
        *_in_section("annotations", have.annotations, want.annotations, before.annotations),
        *_in_section(
            "taints",
            {f"{taint['key']}:{taint['effect']}": str(taint.get("value") or "") for taint in have.taints},
            {":".join(taint.place): taint.value for taint in want.taints},
            map(":".join, before.taints),
        ),
    ]
    resources = [
        *_in_section("capacity", have.capacity, want.capacity, before.resources),
        *_in_section("allocatable", have.allocatable, want.allocatable, before.resources),
    ]
    found += [each for each in resources if not _same_amount(each)]
    info: list[FieldChange] = []
    if not _emptied_by_gpu_operator(have, want):
        info += _in_section("nodeInfo", have.node_info, want.node_info, ())
    # An API server may drop the features that a node declares. So those that follow from its kubelet's version are
    # compared only when that version changes.
    named = want.declared_features is not None or before.features
    if named or any(each.key == "kubeletVersion" for each in info):
        declared, wanted = (dict.fromkeys(each, "declared") for each in (have.features, declared_features(want)))
        info += _in_section("declaredFeatures", declared, wanted, declared)
    return [*found, *info, *_in_section("conditions", have.conditions, conditions, before.conditions)]


def changes_between(before: OwnedFields, after: OwnedFields) -> list[FieldChange]:
    """Every field that has to change on a node that is in one wanted state, to get it to the next."""
    have = NodeFields(
        before.labels,
        before.annotations,
        [taint.to_plain() for taint in before.taints],
        before.capacity,
        before.allocatable,
        before.node_info,
        {kind: str(each) for kind, each in before.conditions.items()},
        declared_features(before),
    )
    # The record leaves out conditions that a healthy node has too; here they have to become healthy again.
    record = replace(applied_of(before), conditions=frozenset(before.conditions))
    return changes(have, after, record, str)


def mapping_patch(found: Iterable[FieldChange], section: str) -> dict[str, str | None]:
    """The changes of one section, as a merge patch."""
    return {each.key: each.want for each in found if each.section == section}


def condition_patch(found: Iterable[FieldChange], want: OwnedFields, now: str) -> list[dict[str, str]]:
    """The changes of conditions, as a strategic merge patch; `now`, their time, is RFC 3339 in UTC."""
    patch = []
    for kind in (each.key for each in found if each.section == "conditions"):
        wanted = want.conditions.get(kind) or CONDITIONS.get(kind)
        patch.append(posted_condition(kind, wanted, now) if wanted else {"type": kind, "$patch": "delete"})
    return patch


def status_patch(found: Sequence[FieldChange], want: OwnedFields, now: str) -> dict[str, Any]:
    """The changes of a node's status, as a strategic merge patch without empty sections."""
    sections = {
        **{section: mapping_patch(found, section) for section in ("capacity", "allocatable", "nodeInfo")},
        "conditions": condition_patch(found, want, now),
    }
    status = _filled(sections)
    if any(each.section == "declaredFeatures" for each in found):
        # One list, which None removes.
        status["declaredFeatures"] = declared_features(want) or None
    return status


def _in_section(
    section: str, have: Mapping[str, str], want: Mapping[str, str], before: Iterable[str]
) -> Iterator[FieldChange]:
    # Nearly every node has exactly these values, which is detected without a loop.
    if not want.items() <= have.items():
        for key, value in want.items():
            if have.get(key) != value:
                yield FieldChange(section, key, have.get(key), value)
    for key in sorted(key for key in before if key not in want and key in have):
        yield FieldChange(section, key, have[key], None)


def _emptied_by_gpu_operator(have: NodeFields, want: OwnedFields) -> bool:
    """Whether the fake GPU operator has emptied a node's `nodeInfo`, which is left as it is.

    Its device plugin patches the status with a whole Node in which only the GPUs are filled in: 0.2.0,
    internal/kwok-gpu-device-plugin/handlers/configmap/handler.go.
    """
    return SIMULATED_POOL_LABEL in want.labels and not any(have.node_info.get(key) for key in want.node_info)


def _same_amount(change: FieldChange) -> bool:
    """Whether both are the same quantity; the API server accepts some spellings that we reject."""
    try:
        return change.have is not None and change.want is not None and equal(change.have, change.want)
    except QuantityError:
        return False


@dataclass(frozen=True)
class NodePatch:
    """What to request from the API server for a node that goes from one wanted state to the next.

    It is made without reading the node: the states are known from the records.
    """

    status: bytes | None
    """A strategic merge patch, encoded, for the node's path `status`, where labels and annotations can be changed, too.
    It has every change but that of taints; None when there is none."""
    taints: bool
    """Whether its taints change too: a second request, since those set by others have to be kept."""
    befores: Sequence[OwnedFields]
    """The wanted states in which it may be."""
    after: OwnedFields
    """The next one."""


def node_patch(befores: Sequence[OwnedFields], after: OwnedFields, boot_id: str, now: str) -> NodePatch:
    """What changes on a node from one wanted state to another.

    Args:
        befores: the wanted states in which it may be: one, or several after a change that was cut off. The patch then
            has what changes from any of them: it sets values, so that what is there already stays.
        boot_id: its boot ID when it was created, restored when no fault has it reboot any more.
        now: the time for changed conditions, RFC 3339 in UTC.
    """
    # A field that differs from several of them changes once.
    by_field = {(each.section, each.key): each for before in befores for each in changes_between(before, after)}
    found = list(by_field.values())
    annotations = mapping_patch(found, "annotations")
    becomes = applied_of(after)
    if any(applied_of(before) != becomes for before in befores):
        annotations[APPLIED] = encode_applied(becomes)
    metadata = {"labels": mapping_patch(found, "labels"), "annotations": annotations}
    status = status_patch(found, after, now)
    if any(BOOT_ID_ANNOTATION in before.annotations.keys() - after.annotations for before in befores):
        status["nodeInfo"] = {"bootID": boot_id}
    body = _filled({"metadata": _filled(metadata), "status": status})
    encoded = json.dumps(body, separators=(",", ":")).encode() if body else None
    return NodePatch(encoded, any(each.section == "taints" for each in found), befores, after)


def taints_after(
    live: Iterable[Mapping[str, Any]], had: Iterable[tuple[str, str]], wanted: Sequence[Taint]
) -> list[dict[str, Any]]:
    """A node's taints after a change; those set by others are kept as they are.

    Args:
        live: the node's taints before it.
        had: keys and effects of those that we set.
        wanted: those that we set now.
    """
    ours = {*had, *(taint.place for taint in wanted)}
    others = [dict(taint) for taint in live if (taint.get("key"), taint.get("effect")) not in ours]
    return [*(dict[str, Any](taint.to_plain()) for taint in wanted), *others]


def _filled(raw: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in raw.items() if value}
