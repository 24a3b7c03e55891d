"""A workload's requests: its pods, grouped by shape, as amounts that a solver and a placement can add up."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kumulus.extras.advise.apart import Pods, groups
from kumulus.extras.schedulers.pod_requests import spec_requests
from kumulus.extras.schedulers.templates import defaulted
from kumulus.model.quantity import NANO, Quantity, QuantityError, parse

Object = Mapping[str, Any]
# The scheduler counts in thousandths of a core, and in whole units of everything else.
_UNITS = {"cpu": NANO // 1000}
# Resources that every machine has.
_EVERYWHERE = {"pods", "cpu", "memory", "ephemeral-storage"}
# The fields of a pod's spec that a scheduler considers besides its requests.
_RULES = ("nodeSelector", "affinity", "topologySpreadConstraints", "tolerations")
# Rules between pods, of which all but "one on each node" are left to the scheduler, as are claims of devices.
_SELECTING = ("podAffinity", "topologySpreadConstraints", "podAntiAffinity")
_LEFT = ("podAffinity", "topologySpreadConstraints", "resourceClaims")
ORDERS = ("share", "cpu", "memory")
"""How pods may be ordered, see :func:`largest_first`."""


class Unadvisable(Exception):
    """There is no fleet to advise; the message says why and what to do."""


@dataclass(frozen=True)
class PodShape:
    """Pods that are the same for a scheduler."""

    name: str
    """The first workload with such pods."""
    wants: Mapping[str, int]
    """Amounts by resource, in whole units: `cpu` in thousandths, `memory` and `ephemeral-storage` in bytes."""
    count: int
    spec: Mapping[str, Any] = field(default_factory=dict)
    """The part of the pod's spec that says where it may run."""
    apart: str = ""
    """What these pods have in common with all that they may not share a node with, one another first; empty if they may
    share it with any."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Those of the pods, if rules may select them."""


@dataclass(frozen=True)
class WorkloadDemand:
    """A workload."""

    shapes: tuple[PodShape, ...]
    """Its pods, in the order in which they are created."""
    everywhere: Mapping[str, int]
    """Amounts that each node needs for the pods of DaemonSets."""
    unmodelled: tuple[str, ...] = ()
    """Rules between pods that are left to the scheduler, by name."""
    whole: tuple[PodShape, ...] = ()
    """The pods again, with all their rules, including those that are left to the scheduler."""
    uncounted: tuple[str, ...] = ()
    """Objects with pods that are not in it, as it is not known how many they are."""
    later: bool = False
    """Whether some pods come later than others."""

    @property
    def pods(self) -> int:
        """How many pods there are, without those of DaemonSets."""
        return sum(shape.count for shape in self.shapes)


def largest_first(shapes: Iterable[PodShape], by: str = "share") -> tuple[PodShape, ...]:
    """Shapes in an order in which a scheduler packs them well: those that request the most come first.

    Pods that request what only some machines have, such as GPUs, come before all others: the scheduler would spread the
    others over these machines, too, and leave no CPUs to go with the GPUs.

    Args:
        by: `share` for the largest request of any resource, relative to the largest one of any shape, so that units do
            not matter; or the resource that decides after those that only some machines have. If that runs short first,
            `share` would put pods that need little of it and much of another before those that need much of it.
    """
    known = list(shapes)
    most: dict[str, int] = {}
    for shape in known:
        for resource, much in shape.wants.items():
            most[resource] = max(most.get(resource, 0), much)

    def size(shape: PodShape) -> float:
        return max((much / most[name] for name, much in shape.wants.items() if name != "pods"), default=0.0)

    def rare(shape: PodShape) -> float:
        return sum(much / most[name] for name, much in shape.wants.items() if name not in _EVERYWHERE)

    if by == "share":
        return tuple(sorted(known, key=lambda shape: (set(shape.wants) <= _EVERYWHERE, -size(shape))))
    return tuple(sorted(known, key=lambda shape: (-rare(shape), -shape.wants.get(by, 0), -size(shape))))


def amount(resource: str, quantity: Quantity, *, up: bool) -> int:
    """A quantity in the whole units of this package, rounded ``up`` as for a request, or down as for a capacity."""
    unit = _UNITS.get(resource, NANO)
    return -(-quantity.nanos // unit) if up else quantity.nanos // unit


def made(pods: Iterable[Pods], daemons: Iterable[Object] = (), uncounted: Sequence[str] = ()) -> WorkloadDemand:
    """The demand of some pods.

    Args:
        daemons: the specs of pods that run once on each node.
        uncounted: objects with more pods, of which it is not known how many.
    """
    shapes: dict[str, PodShape] = {}
    whole: dict[str, PodShape] = {}
    pods = [each for each in pods if each.count > 0]
    apart, others = groups(pods)
    left = {"podAntiAffinity"} if others else set()
    # If no rule selects pods, those that differ only in their labels are the same.
    selected = any(
        rule in each for pod in pods for each in (pod.spec, pod.spec.get("affinity") or {}) for rule in _SELECTING
    )
    for pod, kept in zip(pods, apart, strict=True):
        name, spec, count = pod.name, pod.spec, pod.count
        wants = {"pods": 1, **_wants(name, spec)}
        left |= {rule for rule in _LEFT if (spec.get("affinity") or {}).get(rule) or spec.get(rule)}
        where = {key: spec[key] for key in ("nodeSelector",) if spec.get(key)}
        required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
            "requiredDuringSchedulingIgnoredDuringExecution"
        )
        if required:
            where["nodeAffinity"] = required
        key = json.dumps([wants, where, kept], sort_keys=True)
        _add(shapes, key, PodShape(name, wants, count, where, kept))
        rules = {rule: spec[rule] for rule in _RULES if spec.get(rule)}
        marks = {str(key): str(value) for key, value in pod.labels.items()} if selected else {}
        key = json.dumps([wants, rules, marks], sort_keys=True)
        _add(whole, key, PodShape(name, wants, count, rules, labels=marks))
    if not shapes:
        more = f"\n  It is not known how many pods these have: {', '.join(uncounted)}" if uncounted else ""
        raise Unadvisable(f"the workload has no pods\n  Write a Pod, Deployment, StatefulSet, Job or JobSet{more}")
    everywhere: dict[str, int] = {}
    for spec in daemons:
        for resource, much in {"pods": 1, **_wants("a DaemonSet", spec)}.items():
            everywhere[resource] = everywhere.get(resource, 0) + much
    return WorkloadDemand(
        tuple(shapes.values()), everywhere, tuple(sorted(left)), tuple(whole.values()), tuple(uncounted)
    )


def _add(known: dict[str, PodShape], key: str, shape: PodShape) -> None:
    there = known.get(key)
    known[key] = replace(there, count=there.count + shape.count) if there else shape


def _wants(name: str, spec: Object) -> dict[str, int]:
    def read(written: Mapping[str, Any]) -> dict[str, Quantity]:
        try:
            return {str(key): parse(value) for key, value in written.items()}
        except QuantityError as error:
            raise Unadvisable(f"{name}: a request is no quantity: {error}") from None

    asked = spec_requests(defaulted(spec), read)
    wants = {resource: amount(resource, quantity, up=True) for resource, quantity in asked.items()}
    if wrong := next((resource for resource, much in wants.items() if much < 0), None):
        raise Unadvisable(f"{name}: asks for a negative amount of {wrong}")
    return {resource: much for resource, much in wants.items() if much}
