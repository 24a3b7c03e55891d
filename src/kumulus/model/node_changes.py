"""How a node differs from its wanted state, as a list of changes that callers show as drift or write as patches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from kumulus.model.applied import Applied, applied_of
from kumulus.model.node_effects import Condition
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
    """

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    taints: Mapping[TaintKey, str]
    capacity: Mapping[str, str]
    allocatable: Mapping[str, str]
    node_info: Mapping[str, str]
    conditions: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Change:
    """One field of a node that has to change.

    Attributes:
        section: the field of :class:`NodeFields` that it is in, as Kubernetes writes it.
        key: the key in that section; ``key:effect`` for a taint.
        have: the node's value; None when the field is missing.
        want: the wanted value; None when the field has to be removed.
    """

    section: str
    key: str
    have: str | None
    want: str | None

    @property
    def path(self) -> str:
        """The field, such as ``labels["team"]`` or ``capacity["nvidia.com/gpu"]``."""
        return f'{self.section}["{self.key}"]'


def changes(
    have: NodeFields,
    want: OwnedFields,
    before: Applied,
    had: Callable[[Condition], str] = lambda condition: condition.status,
) -> list[Change]:
    """Every field that has to change: those with another wanted value, and those no longer wanted.

    Args:
        have: the node's current state.
        want: its wanted state.
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
    return [
        *found,
        *_of("nodeInfo", have.node_info, want.node_info, ()),
        *_of("conditions", have.conditions, conditions, before.conditions),
    ]


def changes_between(before: OwnedFields, after: OwnedFields) -> list[Change]:
    """Every field that has to change on a node that is in one wanted state, to get it to the next."""
    have = NodeFields(
        before.labels,
        before.annotations,
        {(taint.key, taint.effect): taint.value for taint in before.taints},
        before.capacity,
        before.allocatable,
        before.node_info,
        {kind: str(each) for kind, each in before.conditions.items()},
    )
    # The record leaves out conditions that a healthy node has too; here they have to become healthy again.
    record = replace(applied_of(before), conditions=frozenset(before.conditions))
    return changes(have, after, record, str)


def mapping_patch(found: Iterable[Change], section: str) -> dict[str, str | None]:
    """The changes of one section, as a merge patch."""
    return {each.key: each.want for each in found if each.section == section}


def condition_patch(found: Iterable[Change], want: OwnedFields, now: str) -> list[dict[str, str]]:
    """The changes of conditions, as a strategic merge patch.

    Args:
        found: changes of any section.
        want: the node's wanted state.
        now: the time of the change, RFC 3339 in UTC.
    """
    patch = []
    for kind in (each.key for each in found if each.section == "conditions"):
        wanted = want.conditions.get(kind) or CONDITIONS.get(kind)
        patch.append(posted_condition(kind, wanted, now) if wanted else {"type": kind, "$patch": "delete"})
    return patch


def status_patch(found: Iterable[Change], want: OwnedFields, now: str) -> dict[str, object]:
    """The changes of a node's status, as a strategic merge patch without empty sections."""
    found = list(found)
    sections: dict[str, object] = {
        **{section: mapping_patch(found, section) for section in ("capacity", "allocatable", "nodeInfo")},
        "conditions": condition_patch(found, want, now),
    }
    if "kubeletVersion" in mapping_patch(found, "nodeInfo"):
        sections["declaredFeatures"] = declared_features(want.node_info).get("declaredFeatures")
    return {section: patch for section, patch in sections.items() if patch}


def _of(section: str, have: Mapping[str, str], want: Mapping[str, str], before: Iterable[str]) -> Iterator[Change]:
    # Nearly every node has exactly these values, which is detected without a loop.
    if not want.items() <= have.items():
        for key, value in want.items():
            if have.get(key) != value:
                yield Change(section, key, have.get(key), value)
    for key in sorted(key for key in before if key not in want and key in have):
        yield Change(section, key, have[key], None)


def _of_taints(have: Mapping[TaintKey, str], want: Iterable[Taint], before: frozenset[TaintKey]) -> Iterator[Change]:
    named = {_taint_name(key): value for key, value in have.items()}
    wanted = {_taint_name((taint.key, taint.effect)): taint.value for taint in want}
    return _of("taints", named, wanted, map(_taint_name, before))


def _taint_name(key: TaintKey) -> str:
    return ":".join(key)


def _same_amount(change: Change) -> bool:
    """Whether both are the same quantity; the API server accepts some spellings that we reject."""
    try:
        return change.have is not None and change.want is not None and equal(change.have, change.want)
    except QuantityError:
        return False
