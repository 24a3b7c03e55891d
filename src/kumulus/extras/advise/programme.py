"""The integer programme: the cheapest set of nodes with pods on them, and a lower bound of the price of any fleet.

A column is a node of an offer with pods that fit on it, so a solution is a packing, not just sums that add up.
Columns are generated where they pay (column generation): the linear programme over all possible columns gives the
lower bound. Source: Gilmore and Gomory 1961 for columns, Farley 1990 for the bound before the last column is found.
"""

import itertools
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kumulus.extras.advise.demand import PodShape
from kumulus.extras.advise.offers import Offer
from kumulus.extras.advise.solver import Row, solve

_EPSILON = 1e-7
# Up to this many sets of pods on a node are all enumerated: then only the solver's own gap remains.
_MOST_LISTED = 3000
_GOOD_ENOUGH = 1e-4
# A solver's tolerances allow for amounts of so many units: the capacity of the largest machine has no more.
_MOST_UNITS = 1 << 26


@dataclass(frozen=True)
class PackedNode:
    """A node with pods on it."""

    offer: int
    """The index of the offer."""
    pods: tuple[int, ...]
    """How many of each shape."""


@dataclass(frozen=True)
class Solution:
    """The fleet found."""

    columns: tuple[tuple[PackedNode, int], ...]
    """Nodes with their pods, each with the number of such nodes."""
    bound: float
    """Lower bound of the price of any fleet, in US dollars per hour."""


class Programme:
    """A workload and the machines it may run on.

    Each shape fits on some offer. In ``seconds`` it looks for columns, and then as long for an integer solution.
    """

    def __init__(self, offers: Sequence[Offer], shapes: Sequence[PodShape], most_types: int, seconds: float) -> None:
        self._offers, self._shapes, self._most_types, self._seconds = offers, shapes, most_types, seconds
        self._demand = [shape.count for shape in shapes]
        self._most = [[self._alone(offer, shape) for shape in shapes] for offer in offers]
        groups = {shape.apart for shape in shapes if shape.apart}
        # The shapes of each group of which a node takes one pod.
        self._apart = [[at for at, shape in enumerate(shapes) if shape.apart == group] for group in sorted(groups)]
        self._units = {
            name: _unit([each.wants.get(name, 0) for each in shapes], [each.has.get(name, 0) for each in offers])
            for name in {name for shape in shapes for name in shape.wants}
        }
        self._columns: dict[PackedNode, None] = {}

    def solve(self) -> Solution:
        """The cheapest fleet that can be made of the generated columns."""
        for offer, most in enumerate(self._most):
            for shape, number in enumerate(most):
                if number:
                    self._columns[PackedNode(offer, _only(len(most), shape, number))] = None
        listed = self._all()
        if listed is not None:
            self._columns |= dict.fromkeys(listed)
        bound = self._relaxed(complete=listed is not None)
        return Solution(self._whole(), max(bound, self._by_sums()))

    def _alone(self, offer: Offer, shape: PodShape) -> int:
        """How many pods of a shape fit on an empty node, at most as many as there are."""
        if not offer.takes(shape):
            return 0
        number = min(offer.has[resource] // much for resource, much in shape.wants.items())
        return min(number, 1 if shape.apart else number, shape.count)

    def _relaxed(self, *, complete: bool) -> float:
        """Generate columns until none pays, or the time is up; returns the lower bound."""
        deadline, best = time.monotonic() + self._seconds, 0.0
        while True:
            columns = list(self._columns)
            found = solve([self._offers[column.offer].hourly for column in columns], self._covering(columns))
            if complete:
                return found.value
            worth, fresh, exact = 1.0, [], time.monotonic() < deadline
            for offer in range(len(self._offers)):
                pods, value = self._priced(offer, found.duals, exact=exact)
                hourly = self._offers[offer].hourly
                if value > hourly + _EPSILON:
                    fresh.append(PackedNode(offer, pods))
                if value > 0:
                    worth = min(worth, hourly / value)
            if exact:
                # Scaled so that no column's pods are worth more than its price, the duals bound the price of any fleet.
                paid = sum(dual * wanted for dual, wanted in zip(found.duals, self._demand, strict=True))
                best = max(best, worth * paid)
            before = len(self._columns)
            self._columns |= dict.fromkeys(fresh)
            if not exact or len(self._columns) == before or best >= found.value * (1 - _GOOD_ENOUGH):
                return best

    def _priced(self, offer: int, duals: Sequence[float], *, exact: bool) -> tuple[tuple[int, ...], float]:
        """The set of pods on a node of an offer that is worth the most at these prices for pods, and its worth."""
        most = self._most[offer]
        can = [shape for shape, number in enumerate(most) if number and duals[shape] > 0]
        if not can or not exact:
            return _only(len(most), 0, 0), 0.0
        has = self._offers[offer].has
        resources = {resource for shape in can for resource in self._shapes[shape].wants}
        rows = [
            (
                # Rounded down if at all, so that what is worth the most here is worth no less than what fits.
                {
                    at: -float(self._shapes[shape].wants.get(resource, 0) // self._units[resource])
                    for at, shape in enumerate(can)
                },
                -float(has[resource] // self._units[resource]),
            )
            for resource in sorted(resources)
        ]
        rows += [({at: -1.0 for at, shape in enumerate(can) if shape in group}, -1.0) for group in self._apart]
        found = solve(
            [-duals[shape] for shape in can], rows, upper=[float(most[shape]) for shape in can], whole=True, seconds=5.0
        )
        pods = [0] * len(most)
        for at, shape in enumerate(can):
            pods[shape] = round(found.values[at])
        # If the answer may not be optimal, the bound can rely only on the worth that the solver has proven.
        return tuple(self._fitting(offer, pods, duals)), -found.proven

    def _fitting(self, offer: int, pods: list[int], duals: Sequence[float]) -> list[int]:
        """Pods without those for which there is no room, as their amounts were rounded; the least worth goes first."""
        for resource, much in self._offers[offer].has.items():
            wants = [shape.wants.get(resource, 0) for shape in self._shapes]
            while sum(number * want for number, want in zip(pods, wants, strict=True)) > much:
                least = min((at for at, number in enumerate(pods) if number and wants[at]), key=duals.__getitem__)
                pods[least] -= 1
        return pods

    def _whole(self) -> tuple[tuple[PackedNode, int], ...]:
        """The best integer numbers of the generated columns."""
        columns = list(self._columns)
        costs = [self._offers[column.offer].hourly for column in columns]
        rows = self._covering(columns)
        upper = [
            float(max(-(-wanted // number) for wanted, number in zip(self._demand, column.pods, strict=True) if number))
            for column in columns
        ]
        kinds = sorted({offer.kind for offer in self._offers})
        if len(kinds) > self._most_types:
            # One switch for each type: its columns are used only if it is on, and the number of switches is limited.
            costs += [0.0] * len(kinds)
            upper_of = dict(zip(range(len(columns)), upper, strict=True))
            for index, column in enumerate(columns):
                switch = len(columns) + kinds.index(self._offers[column.offer].kind)
                rows.append(({switch: upper_of[index], index: -1.0}, 0.0))
            rows.append(({len(columns) + at: -1.0 for at in range(len(kinds))}, -float(self._most_types)))
            upper += [1.0] * len(kinds)
        found = solve(costs, rows, upper=upper, whole=True, seconds=self._seconds)
        return tuple(
            (column, number) for index, column in enumerate(columns) if (number := round(found.values[index])) > 0
        )

    def _covering(self, columns: Sequence[PackedNode]) -> list[Row]:
        """The rows that put every pod on a node: for each shape, at least its count."""
        return [
            ({at: float(column.pods[shape]) for at, column in enumerate(columns) if column.pods[shape]}, float(wanted))
            for shape, wanted in enumerate(self._demand)
        ]

    def _by_sums(self) -> float:
        """The lower bound from the total capacity of each type: weaker, but available for any number of shapes."""
        pairs = [(offer, shape) for offer, most in enumerate(self._most) for shape, number in enumerate(most) if number]
        place = {pair: len(self._offers) + index for index, pair in enumerate(pairs)}
        costs = [offer.hourly for offer in self._offers] + [0.0] * len(pairs)
        rows: list[Row] = []
        for shape, wanted in enumerate(self._demand):
            rows.append(({place[offer, s]: 1.0 for offer, s in pairs if s == shape}, float(wanted)))
        for index, offer in enumerate(self._offers):
            mine = [shape for o, shape in pairs if o == index]
            for resource in {resource for shape in mine for resource in self._shapes[shape].wants}:
                unit = self._units[resource]
                row = {place[index, shape]: -self._shapes[shape].wants.get(resource, 0) / unit for shape in mine}
                rows.append(({index: offer.has[resource] / unit, **row}, 0.0))
            for group in self._apart:
                rows.append(({index: 1.0, **{place[index, shape]: -1.0 for shape in mine if shape in group}}, 0.0))
        return solve(costs, rows).value

    def _all(self) -> list[PackedNode] | None:
        """Every column that is not part of another; None if there are too many."""
        found: list[PackedNode] = []
        for offer in range(len(self._offers)):
            some = list(itertools.islice(self._maximal(offer), _MOST_LISTED + 1))
            found += [PackedNode(offer, pods) for pods in some]
            if len(found) > _MOST_LISTED:
                return None
        return found

    def _maximal(self, offer: int) -> Iterator[tuple[int, ...]]:
        """The sets of pods on a node of an offer to which no pod can be added."""
        has, most = self._offers[offer].has, self._most[offer]
        wants = [shape.wants for shape in self._shapes]

        def fits(left: dict[str, int], shape: int, chosen: tuple[int, ...]) -> int:
            group = self._shapes[shape].apart
            if group and any(number and self._shapes[s].apart == group for s, number in enumerate(chosen)):
                return 0
            return min([most[shape], *(left[resource] // much for resource, much in wants[shape].items())])

        def extend(shape: int, chosen: tuple[int, ...], left: dict[str, int]) -> Iterator[tuple[int, ...]]:
            if shape == len(most):
                grown = any(most[s] > chosen[s] and fits(left, s, chosen) > 0 for s in range(len(most)))
                if not grown and any(chosen):
                    yield chosen
                return
            for number in range(fits(left, shape, chosen) if most[shape] else 0, -1, -1):
                rest = {resource: much - number * wants[shape].get(resource, 0) for resource, much in left.items()}
                yield from extend(shape + 1, (*chosen, number), rest)

        # This many shapes always have too many sets, and enumerating them would take long.
        if sum(1 for number in most if number) > 8:
            yield from itertools.repeat(_only(len(most), 0, 0), _MOST_LISTED + 1)
        else:
            yield from extend(0, (), dict(has))


def _unit(wants: Sequence[int], has: Sequence[int]) -> int:
    """What to count a resource in: what all requests are multiples of, unless that is too small for the solver."""
    return max(1, math.gcd(*wants), -(-max(has, default=0) // _MOST_UNITS))


def _only(shapes: int, shape: int, number: int) -> tuple[int, ...]:
    return tuple(number if at == shape else 0 for at in range(shapes))
