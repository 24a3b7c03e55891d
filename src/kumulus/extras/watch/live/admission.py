"""Which nodes a pod may go to, whatever is free there: by its node selector, affinity, tolerations and devices.

The rules are those of kube-scheduler, of its plugins NodeAffinity, TaintToleration, NodeUnschedulable, NodeName,
and, for resource names, NodeResourcesFit: kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node and
…/taint-and-toleration. A node's host name is taken to be its name. What depends on other pods or on claims is only
listed (:attr:`AdmissionRule.apart`); volumes and host ports are ignored. Checked against Kubernetes 1.35 to 1.37.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from kumulus.model.gfd import SHARE_RESOURCE
from kumulus.model.quantity import QuantityError, parse

HOSTNAME = "kubernetes.io/hostname"
_NAME = "metadata.name"
_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_KEPT_OFF = frozenset({"NoSchedule", "NoExecute"})
# Counted for each node (:class:`kumulus.extras.watch.live.amounts.Amounts`), or not by the scheduler.
_ELSEWHERE = frozenset({"cpu", "memory", "pods", SHARE_RESOURCE})
_Found = TypeVar("_Found", bound=tuple[Any, ...])


class NodeTaint(NamedTuple):
    """A taint, which keeps pods off a node."""

    key: str
    value: str
    effect: str


class Toleration(NamedTuple):
    """A toleration, which lets a pod pass taints; see ``Toleration`` of Kubernetes."""

    key: str
    operator: str
    value: str
    effect: str

    def passes(self, taint: NodeTaint) -> bool:
        """Whether a pod that has it passes a taint."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator == "Exists":
            return True
        if self.operator in ("Lt", "Gt"):
            return _compared(taint.value, self.operator, self.value)
        return bool(self.key) and self.value == taint.value


class Requirement(NamedTuple):
    """A requirement on a label; see ``NodeSelectorRequirement`` of Kubernetes."""

    key: str
    operator: str
    values: tuple[str, ...]

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether labels meet it; no labels meet an unknown operator."""
        value = labels.get(self.key)
        if self.operator == "In":
            return value in self.values
        if self.operator == "NotIn":
            return value not in self.values
        if self.operator == "Exists":
            return value is not None
        if self.operator == "DoesNotExist":
            return value is None
        return value is not None and len(self.values) == 1 and _compared(value, self.operator, self.values[0])


class Nature(NamedTuple):
    """The properties of a node that decide which pods may go to it; thousands of nodes share the same ones."""

    labels: tuple[tuple[str, str], ...] = ()
    """Sorted, without the host name where that is the node's name."""
    taints: tuple[NodeTaint, ...] = ()
    """Including that of a cordoned node."""
    devices: tuple[tuple[str, int], ...] = ()
    """How much it has of each resource other than CPU, memory and pods, in thousandths."""


class AdmissionShape(NamedTuple):
    """What one of a pod's alternatives requires of a node, apart from the node's name."""

    required: tuple[Requirement, ...] = ()
    """Requirements on the node's labels, all of which must hold."""
    tolerations: tuple[Toleration, ...] = ()
    devices: tuple[tuple[str, int], ...] = ()
    """How much it asks for of each resource other than CPU, memory and pods, in thousandths."""

    def admits(self, nature: Nature) -> bool:
        """Whether such a node could take it if the node were empty."""
        has, labels = dict(nature.devices), dict(nature.labels)
        return (
            all(each.holds(labels) for each in self.required)
            and all(has.get(name, 0) >= amount for name, amount in self.devices)
            and not any(
                taint.effect in _KEPT_OFF and not any(each.passes(taint) for each in self.tolerations)
                for taint in nature.taints
            )
        )


class Alternative(NamedTuple):
    """One of a pod's alternatives."""

    shape: AdmissionShape
    """What it requires."""
    only: tuple[str, ...] | None = None
    """The names of the nodes that it may go to; None for any."""
    never: tuple[str, ...] = ()
    """The names of the nodes that it may not go to."""


class AdmissionRule(NamedTuple):
    """Where a pod may go."""

    ways: tuple[Alternative, ...] = (Alternative(AdmissionShape()),)
    """Alternatives; a node has to match one of them. Empty if no node ever does."""
    apart: tuple[str, ...] = ()
    """What else it asks for, in words, which is not checked here."""

    def admits(self, name: str, nature: Nature) -> bool:
        """Whether a node could take the pod if the node were empty."""
        return any(
            (way.only is None or name in way.only) and name not in way.never and way.shape.admits(nature)
            for way in self.ways
        )


ORDINARY = Nature()
"""A node without labels, taints or devices."""

ANYWHERE = AdmissionRule()
"""A pod that requires nothing."""


def nature_of(message: Any) -> Nature:
    """The properties of a ``Node`` of :mod:`kumulus.kube.messages` that decide which pods may go to it."""
    name, spec = message.metadata.name, message.spec
    labels = sorted((key, value) for key, value in message.metadata.labels.items() if (key, value) != (HOSTNAME, name))
    taints = [NodeTaint(each.key, each.value, each.effect) for each in spec.taints]
    if spec.unschedulable and not any(each.key == _UNSCHEDULABLE for each in taints):
        taints.append(NodeTaint(_UNSCHEDULABLE, "", "NoSchedule"))
    amounts = ((key, quantity.string) for key, quantity in message.status.allocatable.items())
    return _shared(Nature(tuple(labels), tuple(taints), _devices(amounts)))


def rule_of(spec: Any, asked: Iterable[tuple[str, int]]) -> AdmissionRule:
    """Where a pod with such a ``PodSpec`` may go that requests as much, in thousandths."""
    selector = tuple(sorted((key, (value,)) for key, value in spec.nodeSelector.items()))
    chosen = tuple(Requirement(key, "In", values) for key, values in selector)
    tolerations = tuple(Toleration(each.key, each.operator, each.value, each.effect) for each in spec.tolerations)
    devices = tuple(sorted((name, amount) for name, amount in asked if name not in _ELSEWHERE))
    affinity = spec.affinity
    terms: tuple[tuple[Requirement, ...], ...] = ((),)
    if affinity.nodeAffinity.HasField("requiredDuringSchedulingIgnoredDuringExecution"):
        required = affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution
        # An empty term matches no node.
        terms = tuple(filter(None, map(_term, required.nodeSelectorTerms)))
    ways = tuple(_way((*chosen, *term), tolerations, devices) for term in terms)
    return _shared(AdmissionRule(ways, _apart(spec)))


def _term(message: Any) -> tuple[Requirement, ...]:
    fields = (Requirement(_NAME, each.operator, tuple(each.values)) for each in message.matchFields)
    return (*(Requirement(each.key, each.operator, tuple(each.values)) for each in message.matchExpressions), *fields)


def _way(
    required: tuple[Requirement, ...], tolerations: tuple[Toleration, ...], devices: tuple[tuple[str, int], ...]
) -> Alternative:
    """An alternative, with node names kept separately, because thousands of pods would differ by them."""
    only: set[str] | None = None
    never: set[str] = set()
    rest = []
    for each in required:
        if each.key not in (_NAME, HOSTNAME):
            rest.append(each)
        elif each.operator == "In":
            only = set(each.values) if only is None else only & set(each.values)
        elif each.operator == "NotIn":
            never.update(each.values)
        elif each.operator != "Exists":
            only = set()
    shape = AdmissionShape(tuple(rest), tolerations, devices)
    return Alternative(shape, None if only is None else tuple(sorted(only)), tuple(sorted(never)))


def _apart(spec: Any) -> tuple[str, ...]:
    affinity = spec.affinity
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    spread = any(each.whenUnsatisfiable == "DoNotSchedule" for each in spec.topologySpreadConstraints)
    found = {
        "pod affinity": bool(getattr(affinity.podAffinity, required)),
        "pod anti-affinity": bool(getattr(affinity.podAntiAffinity, required)),
        "topology spread": spread,
        "devices by claims": bool(spec.resourceClaims),
    }
    return tuple(name for name, there in found.items() if there)


def _devices(amounts: Iterable[tuple[str, str]]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted((name, _thousandths(written)) for name, written in amounts if name not in _ELSEWHERE))


@lru_cache(maxsize=8192)
def _thousandths(written: str) -> int:
    try:
        return parse(written).nanos // 1_000_000
    except QuantityError:
        return 0


def _compared(value: str, operator: str, bound: str) -> bool:
    try:
        found, limit = int(value), int(bound)
    except ValueError:
        return False
    return found > limit if operator == "Gt" else operator == "Lt" and found < limit


def _shared(found: _Found) -> _Found:
    """The first of several equal values, so that thousands of nodes and pods share it."""
    return _first_of(found)  # type: ignore[return-value]


@lru_cache(maxsize=16384)
def _first_of(found: tuple[Any, ...]) -> tuple[Any, ...]:
    return found
