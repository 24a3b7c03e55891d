"""The advised fleet for a workload and some offers: solved, checked by placing pod by pod, and corrected if needed.

Pods are placed one by one as kube-scheduler does by default, since it may not find a packing that exists. The scores
are those of NodeResourcesFit with LeastAllocated and of NodeResourcesBalancedAllocation; ties are random. Source:
k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources, least_allocated.go and balanced_allocation.go.
Offline runs of experiments place by policies for GPUs, and know neither selectors nor the limit of pods on a node.
"""

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from kumulus.extras.advise.demand import ORDERS, PodShape, Unadvisable, WorkloadDemand, largest_first
from kumulus.extras.advise.offers import MachineOffers, Offer, useful, without
from kumulus.extras.advise.programme import Programme
from kumulus.kube import safe_yaml
from kumulus.model.gfd import GPU_PRODUCT_LABEL, GPU_RESOURCE
from kumulus.model.names import dns_safe
from kumulus.model.pools import REGION_LABEL
from kumulus.model.words import counted, listed
from kumulus.stackfile.groups import region_of

_ROUNDS = 40
# If an order of the pods costs this much more than the best so far, removing unneeded nodes will not make up for it.
_HOPELESS = 1.25
# A packing found with only one random choice among equal nodes would be luck.
_SEEDS = (0, 1, 2)
_SCORED = ("cpu", "memory")
# What the scheduler's scores assume for a container that requests nothing: 100m and 200 MiB.
_LEAST = {"cpu": 100, "memory": 200 << 20}
# Below every score.
_NONE = -1.0
_NAMED = 4
_FIRST = {"share": "the largest pods", "cpu": "pods of the most CPU", "memory": "pods of the most memory"}


@dataclass(frozen=True)
class Advice:
    """The advised fleet."""

    nodes: tuple[tuple[Offer, int], ...]
    """How many of each offer, none of them 0; the offers have what the pods of DaemonSets leave."""
    packed: float
    """US dollars per hour of the best packing, before pods were placed one by one."""
    bound: float
    """Lower bound of the price of any fleet, in US dollars per hour."""
    pods: int
    unmodelled: tuple[str, ...] = ()
    """Rules between pods that only the scheduler enforces."""
    unpriced: tuple[str, ...] = ()
    """Types that have no price and were not considered."""
    order: str = "share"
    """How the pods are ordered, one of :data:`kumulus.extras.advise.demand.ORDERS`."""
    in_file_order: int = 0
    """How many pods find no node in the files' order, rather than the largest first."""
    uncounted: tuple[str, ...] = ()
    """Objects with pods that are not in it, as it is not known how many they are."""
    at_once: bool = False
    """Whether pods that come one after the other are taken as there at once."""

    @property
    def hourly(self) -> float:
        """The price of the fleet, in US dollars per hour."""
        return sum(number * offer.hourly for offer, number in self.nodes)

    @property
    def gap(self) -> float:
        """How far the fleet's price is above the bound, as a fraction of the bound."""
        return self.hourly / self.bound - 1 if self.bound > 0 else 0.0


def advise(demand: WorkloadDemand, offers: MachineOffers, *, most_types: int = 12, seconds: float = 20.0) -> Advice:
    """The cheapest fleet on which a scheduler places every pod; the programme's two parts take ``seconds`` each."""
    if most_types < 1:
        raise Unadvisable(f"a fleet of {most_types} types has no nodes; write --max-types 1 or more")
    left = without(offers.found, demand.everywhere)
    if not left:
        raise Unadvisable("no type has room for the pods of the DaemonSets alone; name larger ones with --types")
    found = useful(left, demand, offers.unpriced)
    as_written, demand = demand, replace(demand, shapes=largest_first(demand.shapes))
    solution = Programme(found, demand.shapes, most_types, seconds).solve()
    nodes = [0] * len(found)
    for column, number in solution.columns:
        nodes[column.offer] += number
    packed = _cost(found, nodes)
    nodes, order = _best_ordered(found, nodes, demand, most_types, seconds)
    return Advice(
        tuple((offer, number) for offer, number in zip(found, nodes, strict=True) if number),
        packed,
        min(solution.bound, packed),
        demand.pods,
        demand.unmodelled,
        offers.unpriced,
        order,
        sum(place(found, nodes, as_written.shapes).pending),
        demand.uncounted,
        demand.later,
    )


def _best_ordered(
    offers: list[Offer], nodes: list[int], demand: WorkloadDemand, most_types: int, seconds: float
) -> tuple[list[int], str]:
    """The cheapest fleet that fits the pods in one of several orders, with the order's name.

    The order with the fewest pods left over on the packed fleet is tried first; the others only while they may win.
    """
    orders: dict[str, WorkloadDemand] = {}
    for by in ORDERS:
        ordered = largest_first(demand.shapes, by)
        if all(ordered != each.shapes for each in orders.values()):
            orders[by] = replace(demand, shapes=ordered)
    left = {by: sum(place(offers, nodes, each.shapes).pending) for by, each in orders.items()}
    best: tuple[float, list[int], str] | None = None
    for by in sorted(left, key=lambda by: (left[by], ORDERS.index(by))):
        limit = best[0] * _HOPELESS if best else float("inf")
        found = _placed(offers, list(nodes), orders[by], most_types, seconds, limit)
        if found is not None and (best is None or _cost(offers, found) < best[0]):
            best = (_cost(offers, found), found, by)
    if best is None:
        raise Unadvisable("the pods could not be placed one by one, however many nodes were added")
    return best[1], best[2]


def _placed(
    offers: list[Offer], nodes: list[int], demand: WorkloadDemand, most_types: int, seconds: float, limit: float
) -> list[int] | None:
    """Add nodes until every pod, placed one by one, finds one; then remove nodes that are not needed.

    None if that would cost more than a limit, or nodes were added too often.
    """
    shapes = demand.shapes
    for _ in range(_ROUNDS):
        # For each shape, the most pods that any seed leaves over.
        pending = tuple(map(max, zip(*(place(offers, nodes, shapes, seed).pending for seed in _SEEDS), strict=True)))
        if not any(pending):
            return _trimmed(offers, nodes, demand)
        if _cost(offers, nodes) > limit:
            return None
        over = [replace(shape, count=number) for shape, number in zip(shapes, pending, strict=True) if number]
        # More of the types in the fleet; a further type only if the fleet may have one.
        kinds = {offer.kind for offer, number in zip(offers, nodes, strict=True) if number}
        mine = [at for at, offer in enumerate(offers) if offer.kind in kinds or len(kinds) < most_types]
        room = most_types if len(kinds) >= most_types else most_types - len(kinds)
        if not all(any(offers[at].takes(shape) for at in mine) for shape in over):
            mine, room = list(range(len(offers))), most_types
        for column, number in Programme([offers[at] for at in mine], over, room, min(seconds, 5.0)).solve().columns:
            nodes[mine[column.offer]] += number
    return None


def _trimmed(offers: list[Offer], nodes: list[int], demand: WorkloadDemand) -> list[int]:
    """The fleet without nodes that no seed needs, the most expensive first: one, then twice as many each time."""
    for at in sorted(range(len(offers)), key=lambda at: -offers[at].hourly):
        step = 1
        while nodes[at] and step:
            step = min(step, nodes[at])
            fewer = [number - step * (other == at) for other, number in enumerate(nodes)]
            if any(any(place(offers, fewer, demand.shapes, seed).pending) for seed in _SEEDS):
                step //= 2
            else:
                nodes, step = fewer, step * 2
    return nodes


def _cost(offers: Sequence[Offer], nodes: Sequence[int]) -> float:
    return sum(number * offer.hourly for offer, number in zip(offers, nodes, strict=True))


@dataclass(frozen=True)
class Packing:
    """The result of placing pods."""

    pending: tuple[int, ...]
    """How many of each shape found no node."""
    used: int


def place(offers: Sequence[Offer], nodes: Sequence[int], shapes: Sequence[PodShape], seed: int = 0) -> Packing:
    """Place pods, one shape after the other; ``nodes`` counts each, ``seed`` chooses among equal ones."""
    kinds = np.repeat(np.arange(len(offers)), nodes)
    resources = sorted({resource for shape in shapes for resource in shape.wants} | set(_SCORED))
    has = np.array([[offer.has.get(resource, 0) for resource in resources] for offer in offers], dtype=np.int64)
    free = has[kinds]
    scored = [resources.index(resource) for resource in _SCORED]
    there = np.maximum(free[:, scored], 1).astype(float)
    counted = np.zeros_like(there)
    source = random.Random(seed)
    pending = []
    touched = np.zeros(len(kinds), dtype=bool)
    # By group, the nodes that have their one pod of it.
    taken = {shape.apart: np.zeros(len(kinds), dtype=bool) for shape in shapes if shape.apart}
    for shape in shapes:
        wants = np.array([shape.wants.get(resource, 0) for resource in resources], dtype=np.int64)
        weight = np.array([shape.wants.get(resource) or _LEAST[resource] for resource in _SCORED], dtype=float)
        open_to = np.array([offer.takes(shape) for offer in offers])[kinds]
        fitting = open_to & (free >= wants).all(axis=1)
        if shape.apart:
            fitting &= ~taken[shape.apart]
        # Among pods of one shape, only the score of the node that took the last pod changes.
        scores = np.where(fitting, _scores(counted + weight, there), _NONE)
        left = shape.count
        while left and (top := scores.max(initial=_NONE)) > _NONE:
            best = np.flatnonzero(scores == top)
            chosen = int(best[source.randrange(len(best))])
            free[chosen] -= wants
            counted[chosen] += weight
            touched[chosen] = True
            left -= 1
            if shape.apart:
                taken[shape.apart][chosen] = True
            full = bool(shape.apart) or bool((free[chosen] < wants).any())
            one = slice(chosen, chosen + 1)
            scores[chosen] = _NONE if full else _scores(counted[one] + weight, there[one])[0]
        pending.append(left)
    return Packing(tuple(pending), int(touched.sum()))


def _scores(asked: npt.NDArray[np.double], there: npt.NDArray[np.double]) -> npt.NDArray[np.double]:
    shares = np.minimum(asked / there, 1.0)
    least = np.floor(((1.0 - shares) * 100).mean(axis=1))
    scores: npt.NDArray[np.double] = least + np.floor((1.0 - shares.std(axis=1)) * 100)
    return scores


def lines(advice: Advice) -> Iterator[str]:
    """The advice for a terminal; everything else than YAML is a comment, so that all of it can be pasted."""
    nodes = sum(number for _, number in advice.nodes)
    kinds = counted(len({offer.kind for offer, _ in advice.nodes}), "type")
    yield f"# {counted(advice.pods, 'pod')} on {counted(nodes, 'node')} of {kinds}"
    for offer, number in advice.nodes:
        if product := offer.labels.get(GPU_PRODUCT_LABEL):
            yield f"# {number:,} × {offer.kind}, each {offer.has.get(GPU_RESOURCE, 0)} × {product}"
    yield f"# price        ${advice.hourly:,.2f}/h"
    yield f"# lower bound  ${advice.bound:,.2f}/h: no fleet of these types costs less"
    yield f"# gap          {advice.gap:.1%}".replace("%", " %")
    yield f"# packed as tightly as the solver knows: ${advice.packed:,.2f}/h"
    if advice.at_once:
        yield "# for all pods at once, also those that come when others have ended: at any one time, fewer may do"
    if advice.in_file_order:
        first = _FIRST[advice.order]
        yield f"# {first} are placed first; in the files' order {advice.in_file_order:,} would find no node"
    if advice.unmodelled:
        yield f"# left to the scheduler: {', '.join(advice.unmodelled)}"
    if advice.unpriced:
        yield f"# not looked at, no price is known: {listed(advice.unpriced, _NAMED)}"
    if advice.uncounted:
        yield f"# not counted, as it is not known how many pods they have: {listed(advice.uncounted, _NAMED)}"
    yield safe_yaml.written(json.loads(json.dumps({"nodeGroups": groups(advice)}))).rstrip()


def plain(advice: Advice) -> dict[str, Any]:
    """The advice for programs."""
    return {
        "pods": advice.pods,
        "nodes": sum(number for _, number in advice.nodes),
        "hourly": advice.hourly,
        "lowerBound": advice.bound,
        "gap": advice.gap,
        "packed": advice.packed,
        "unmodelled": advice.unmodelled,
        "unpriced": advice.unpriced,
        "uncounted": advice.uncounted,
        "nodeGroups": groups(advice),
    }


def groups(advice: Advice) -> list[dict[str, Any]]:
    """The node groups of a stack file; nodes are spread over the zones of their offer."""
    found: dict[str, dict[str, Any]] = {}
    for offer, number in advice.nodes:
        group = found.setdefault(offer.kind, {"name": dns_safe(offer.kind, 40), **offer.group, "placement": []})
        region = offer.labels.get(REGION_LABEL, "")
        for zone, replicas in _spread(number, offer.zones):
            # Without its region, a node would have no price, and not be where the pods are to be.
            there = {"region": region} if region and region != region_of(zone) else {}
            group["placement"].append({"availabilityZone": zone, "replicas": replicas, **there})
    return list(found.values())


def _spread(number: int, zones: Sequence[str]) -> Iterator[tuple[str, int]]:
    for at, zone in enumerate(zones):
        if replicas := number // len(zones) + (at < number % len(zones)):
            yield zone, replicas
