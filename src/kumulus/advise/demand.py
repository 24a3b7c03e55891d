"""A workload's requests: its pods, grouped by shape, as amounts that a solver and a placement can add up."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kumulus.advise.errors import Unadvisable
from kumulus.model.pod_requests import spec_requests
from kumulus.model.quantity import NANO, Quantity, QuantityError, parse

Object = Mapping[str, Any]
HOST = "kubernetes.io/hostname"
# Units that keep amounts whole and small enough for a solver: thousandths of a core, MiB.
_UNITS = {"cpu": NANO // 1000, "memory": NANO << 20, "ephemeral-storage": NANO << 20}
# Resources that every machine has.
_EVERYWHERE = {"pods", "cpu", "memory", "ephemeral-storage"}
# The fields of a pod's spec that a scheduler considers besides its requests.
_RULES = ("nodeSelector", "affinity", "topologySpreadConstraints", "tolerations")
# Rules between pods, which are left to the scheduler except for "one on each node".
_LEFT = ("podAffinity", "topologySpreadConstraints", "podAntiAffinity")


@dataclass(frozen=True)
class Shape:
    """Pods that are the same for a scheduler.

    Args:
        name: the first workload with such pods.
        wants: amounts by resource, in whole units: `cpu` in thousandths, `memory` and `ephemeral-storage` in MiB.
        count: how many pods.
        spec: the part of the pod's spec that says where it may run.
        alone: whether no two of them may be on one node.
        labels: those of the pods, if rules may select them.
    """

    name: str
    wants: Mapping[str, int]
    count: int
    spec: Mapping[str, Any] = field(default_factory=dict)
    alone: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Demand:
    """A workload.

    Args:
        shapes: its pods, in the order in which they are created.
        everywhere: amounts that each node needs for the pods of DaemonSets.
        unmodelled: rules between pods that are left to the scheduler, by name.
        whole: the pods again, with all their rules, including those that are left to the scheduler.
    """

    shapes: tuple[Shape, ...]
    everywhere: Mapping[str, int]
    unmodelled: tuple[str, ...] = ()
    whole: tuple[Shape, ...] = ()

    @property
    def pods(self) -> int:
        """How many pods there are, without those of DaemonSets."""
        return sum(shape.count for shape in self.shapes)


ORDERS = ("share", "cpu", "memory")
"""How pods may be ordered, see :func:`largest_first`."""


def largest_first(shapes: Iterable[Shape], by: str = "share") -> tuple[Shape, ...]:
    """Shapes in an order in which a scheduler packs them well: those that request the most come first.

    Pods that request what only some machines have, such as GPUs, come before all others: the scheduler would spread the
    others over these machines, too, and leave no CPUs to go with the GPUs.

    Args:
        shapes: the pods.
        by: `share` for the largest request of any resource, relative to the largest one of any shape, so that units do
            not matter; or the resource that decides after those that only some machines have. If that runs short first,
            `share` would put pods that need little of it and much of another before those that need much of it.
    """
    known = list(shapes)
    most: dict[str, int] = {}
    for shape in known:
        for resource, much in shape.wants.items():
            most[resource] = max(most.get(resource, 0), much)

    def size(shape: Shape) -> float:
        return max((much / most[name] for name, much in shape.wants.items() if name != "pods"), default=0.0)

    def rare(shape: Shape) -> float:
        return sum(much / most[name] for name, much in shape.wants.items() if name not in _EVERYWHERE)

    if by == "share":
        return tuple(sorted(known, key=lambda shape: (set(shape.wants) <= _EVERYWHERE, -size(shape))))
    return tuple(sorted(known, key=lambda shape: (-rare(shape), -shape.wants.get(by, 0), -size(shape))))


def amount(resource: str, quantity: Quantity, *, up: bool) -> int:
    """A quantity in the whole units of this package.

    Args:
        resource: which one.
        quantity: how much of it.
        up: whether to round up, as for a request; a capacity is rounded down.
    """
    unit = _UNITS.get(resource, NANO)
    return -(-quantity.nanos // unit) if up else quantity.nanos // unit


def made(pods: Iterable[tuple[str, Object, Object, int]], daemons: Iterable[Object] = ()) -> Demand:
    """The demand of some pods.

    Args:
        pods: the name, spec, labels and number of each kind of pod.
        daemons: the specs of pods that run once on each node.

    Raises:
        Unadvisable: there are no pods, or a request is invalid.
    """
    shapes: dict[str, Shape] = {}
    whole: dict[str, Shape] = {}
    left: set[str] = set()
    pods = list(pods)
    # If no rule selects pods, those that differ only in their labels are the same.
    selected = any(
        rule in each for _, spec, _, _ in pods for each in (spec, spec.get("affinity") or {}) for rule in _LEFT
    )
    for name, spec, labels, count in pods:
        if count <= 0:
            continue
        wants = {"pods": 1, **_wants(name, spec)}
        alone, unmodelled = _alone(spec, labels)
        left |= unmodelled
        where = {key: spec[key] for key in ("nodeSelector",) if spec.get(key)}
        required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
            "requiredDuringSchedulingIgnoredDuringExecution"
        )
        if required:
            where["nodeAffinity"] = required
        key = json.dumps([wants, where, alone and [labels, spec.get("affinity")]], sort_keys=True)
        _add(shapes, key, Shape(name, wants, count, where, alone))
        rules = {rule: spec[rule] for rule in _RULES if spec.get(rule)}
        marks = {str(key): str(value) for key, value in labels.items()} if selected else {}
        key = json.dumps([wants, rules, marks], sort_keys=True)
        _add(whole, key, Shape(name, wants, count, rules, alone, marks))
    if not shapes:
        raise Unadvisable("the workload has no pods\n  Write a Pod, Deployment, StatefulSet, Job or JobSet")
    everywhere: dict[str, int] = {}
    for spec in daemons:
        for resource, much in {"pods": 1, **_wants("a DaemonSet", spec)}.items():
            everywhere[resource] = everywhere.get(resource, 0) + much
    return Demand(tuple(shapes.values()), everywhere, tuple(sorted(left)), tuple(whole.values()))


def _add(known: dict[str, Shape], key: str, shape: Shape) -> None:
    there = known.get(key)
    known[key] = replace(there, count=there.count + shape.count) if there else shape


def _wants(name: str, spec: Object) -> dict[str, int]:
    def read(written: Mapping[str, Any]) -> dict[str, Quantity]:
        try:
            return {str(key): parse(value) for key, value in written.items()}
        except QuantityError as error:
            raise Unadvisable(f"{name}: a request is no quantity: {error}") from None

    asked = spec_requests(_defaulted(spec), read)
    wants = {resource: amount(resource, quantity, up=True) for resource, quantity in asked.items()}
    if wrong := next((resource for resource, much in wants.items() if much < 0), None):
        raise Unadvisable(f"{name}: asks for a negative amount of {wrong}")
    return {resource: much for resource, much in wants.items() if much}


def _defaulted(spec: Object) -> Object:
    """The spec with missing requests set to the limits, as the API server does it."""

    def with_requests(container: Object) -> Object:
        resources = container.get("resources") or {}
        requests = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
        return {**container, "resources": {**resources, "requests": requests}}

    containers = {
        key: [with_requests(each) for each in spec[key]] for key in ("containers", "initContainers") if spec.get(key)
    }
    return {**spec, **containers}


def _alone(spec: Object, labels: Object) -> tuple[bool, set[str]]:
    """Whether a pod allows no other of its kind on its node, and which other rules between pods it has."""
    affinity = spec.get("affinity") or {}
    terms = (affinity.get("podAntiAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution") or []
    own = [term for term in terms if term.get("topologyKey") == HOST and _selects(term.get("labelSelector"), labels)]
    left = {each for each in _LEFT if affinity.get(each) or spec.get(each)}
    if (
        own
        and len(own) == len(terms)
        and not (affinity.get("podAntiAffinity") or {}).get("preferredDuringSchedulingIgnoredDuringExecution")
    ):
        left.discard("podAntiAffinity")
    return bool(own), left


def _selects(selector: object, labels: Object) -> bool:
    if not isinstance(selector, Mapping) or selector.get("matchExpressions"):
        return False
    wanted = selector.get("matchLabels") or {}
    return bool(wanted) and all(labels.get(key) == value for key, value in wanted.items())
