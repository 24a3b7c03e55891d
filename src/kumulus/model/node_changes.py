"""How a node differs from its wanted state, as a list of changes that callers show as drift or write as patches."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kumulus.model.active_faults import BOOT_ID_ANNOTATION
from kumulus.model.applied import APPLIED, Applied, applied_of, encode_applied
from kumulus.model.fault_effects import Condition
from kumulus.model.gfd import SIMULATED_POOL_LABEL
from kumulus.model.nodes import CONDITIONS, OwnedFields, declared_features, posted_condition
from kumulus.model.pools import Taint
from kumulus.model.quantity import QuantityError, equal

TaintKey = tuple[str, str]
"""A taint's key and effect; a node has at most one taint with both."""


@dataclass(frozen=True, slots=True)
class NodeFields:
    """What a node has, of the fields that a pool can own.

    Args:
        labels, annotations: by key.
        taints: their values.
        capacity, allocatable: quantities by resource.
        node_info: ``status.nodeInfo``.
        conditions: by type, in the form in which they are compared with the wanted ones.
        features: names of those that it declares.
    """

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    taints: Mapping[TaintKey, str]
    capacity: Mapping[str, str]
    allocatable: Mapping[str, str]
    node_info: Mapping[str, str]
    conditions: Mapping[str, str]
    features: Sequence[str]


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field of a node that has to change."""

    section: str
    """The field of :class:`NodeFields` that it is in, as Kubernetes writes it."""
    key: str
    """The key in that section; ``key:effect`` for a taint."""
    have: str | None
    """The node's value; None when the field is missing."""
    want: str | None
    """The wanted value; None when the field has to be removed."""

    @property
    def path(self) -> str:
        """The field, such as ``labels["team"]`` or ``capacity["nvidia.com/gpu"]``."""
        return f'{self.section}["{self.key}"]'


def changes(
    have: NodeFields,
    want: OwnedFields,
    before: Applied,
    had: Callable[[Condition], str] = lambda condition: condition.status,
) -> list[FieldChange]:
    """Every field that has to change: those with another wanted value, and those no longer wanted.

    Args:
        before: the keys that were wanted when it was last written.
        had: converts a condition to the form of those in `have`.
    """
    conditions = {kind: had(each) for kind, each in want.conditions.items()}
    found = [
        *_of("labels", have.labels, want.labels, before.labels),
        *_of("annotations", have.annotations, want.annotations, before.annotations),
        *_of_taints(have.taints, want.taints, before.taints),
    ]
    for section, has, wants in (
        ("capacity", have.capacity, want.capacity),
        ("allocatable", have.allocatable, want.allocatable),
    ):
        found += [each for each in _of(section, has, wants, before.resources) if not _same_amount(each)]
    info = [] if _emptied(have, want) else list(_of("nodeInfo", have.node_info, want.node_info, ()))
    # Those of a kubelet's version come and go with it, and are compared only then: an API server may have none.
    named = want.declared_features is not None or before.features
    if named or any(each.key == "kubeletVersion" for each in info):
        declared, wanted = (dict.fromkeys(each, "declared") for each in (have.features, declared_features(want)))
        info += _of("declaredFeatures", declared, wanted, declared)
    return [*found, *info, *_of("conditions", have.conditions, conditions, before.conditions)]


def changes_between(before: OwnedFields, after: OwnedFields) -> list[FieldChange]:
    """Every field that has to change on a node that is in one wanted state, to get it to the next."""
    have = NodeFields(
        before.labels,
        before.annotations,
        {(taint.key, taint.effect): taint.value for taint in before.taints},
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
    """The changes of conditions, as a strategic merge patch.

    Args:
        found: changes of any section.
        now: the time of the change, RFC 3339 in UTC.
    """
    patch = []
    for kind in (each.key for each in found if each.section == "conditions"):
        wanted = want.conditions.get(kind) or CONDITIONS.get(kind)
        patch.append(posted_condition(kind, wanted, now) if wanted else {"type": kind, "$patch": "delete"})
    return patch


def status_patch(found: Iterable[FieldChange], want: OwnedFields, now: str) -> dict[str, object]:
    """The changes of a node's status, as a strategic merge patch without empty sections."""
    found = list(found)
    sections = {
        **{section: mapping_patch(found, section) for section in ("capacity", "allocatable", "nodeInfo")},
        "conditions": condition_patch(found, want, now),
    }
    status: dict[str, object] = {section: patch for section, patch in sections.items() if patch}
    if any(each.section == "declaredFeatures" for each in found):
        # One list, which None removes.
        status["declaredFeatures"] = declared_features(want) or None
    return status


def _of(section: str, have: Mapping[str, str], want: Mapping[str, str], before: Iterable[str]) -> Iterator[FieldChange]:
    # Nearly every node has exactly these values, which is detected without a loop.
    if not want.items() <= have.items():
        for key, value in want.items():
            if have.get(key) != value:
                yield FieldChange(section, key, have.get(key), value)
    for key in sorted(key for key in before if key not in want and key in have):
        yield FieldChange(section, key, have[key], None)


def _emptied(have: NodeFields, want: OwnedFields) -> bool:
    """Whether the fake GPU operator has emptied a node's `nodeInfo`, which is left as it is.

    Its device plugin patches the status with a whole Node in which only the GPUs are filled in: 0.2.0,
    internal/kwok-gpu-device-plugin/handlers/configmap/handler.go.
    """
    return SIMULATED_POOL_LABEL in want.labels and not any(have.node_info.get(key) for key in want.node_info)


def _of_taints(
    have: Mapping[TaintKey, str], want: Iterable[Taint], before: frozenset[TaintKey]
) -> Iterator[FieldChange]:
    named = {_taint_name(key): value for key, value in have.items()}
    wanted = {_taint_name((taint.key, taint.effect)): taint.value for taint in want}
    return _of("taints", named, wanted, map(_taint_name, before))


def _taint_name(key: TaintKey) -> str:
    return ":".join(key)


def _same_amount(change: FieldChange) -> bool:
    """Whether both are the same quantity; the API server accepts some spellings that we reject."""
    try:
        return change.have is not None and change.want is not None and equal(change.have, change.want)
    except QuantityError:
        return False


# The patch that takes a node from one wanted state to the next, without reading the node first.
#
# The start or end of a fault changes many nodes, whose states are known from the records. Labels, annotations,
# resources and conditions go in one request to the node's status, which accepts them all; only taints need a second
# request, since taints set by others have to be kept.


@dataclass(frozen=True)
class Delta:
    """What changes on a node."""

    status: dict[str, object] | None
    """A strategic merge patch for the node's status; None when nothing changes there."""
    taints: bool
    """Whether the taints change too."""


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
