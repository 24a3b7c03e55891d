"""What nodes cost together, by node group and by zone, as far as their prices are known. Pure functions."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kumulus.model.pools import INSTANCE_TYPE_LABEL, REGION_LABEL, Pool
from kumulus.model.totals import NO_ZONE
from kumulus.nodes.catalog.prices import Prices, is_spot

HOURS_A_MONTH = 730
"""As the clouds reckon: 365 days of 24 hours, in twelve parts."""


@dataclass
class Cost:
    """What some nodes cost."""

    nodes: int = 0
    """How many."""
    unpriced: int = 0
    """How many of them have no known price, and so are in none of the sums."""
    hourly: float = 0.0
    """US dollars an hour of the others."""
    spot: float = 0.0
    """What of `hourly` is of spot machines."""
    all_on_demand: float | None = 0.0
    """US dollars an hour if each of the others was on demand; None if one has no such price."""
    all_spot: float | None = 0.0
    """Likewise if each was a spot machine."""

    @property
    def priced(self) -> int:
        """How many have a price."""
        return self.nodes - self.unpriced

    @property
    def monthly(self) -> float:
        """US dollars a month."""
        return self.hourly * HOURS_A_MONTH

    def to_plain(self) -> dict[str, Any]:
        """JSON-able; amounts in US dollars, rounded to a ten-thousandth."""
        amounts = {
            "hourly": self.hourly,
            "monthly": self.monthly,
            "spotHourly": self.spot,
            "allOnDemandHourly": self.all_on_demand,
            "allSpotHourly": self.all_spot,
        }
        rounded = {name: None if each is None else round(each, 4) for name, each in amounts.items()}
        return {"nodes": self.nodes, "nodesWithoutPrice": self.unpriced, **rounded}

    def _add(self, labels: Mapping[str, str], count: int, prices: Prices) -> None:
        kind, region = labels.get(INSTANCE_TYPE_LABEL, ""), labels.get(REGION_LABEL, "")
        self.nodes += count
        price = prices.of_node(labels)
        if price is None:
            self.unpriced += count
            return
        self.hourly += count * price.hourly
        self.spot += count * price.hourly if is_spot(labels) else 0.0
        self.all_on_demand = _plus(self.all_on_demand, count, prices.of(kind, region))
        self.all_spot = _plus(self.all_spot, count, prices.of(kind, region, spot=True))


@dataclass
class FleetCost:
    """What a fleet costs.

    Args:
        by_group, by_zone: the nodes of each, in the order of the stack file.
        without: the nodes whose price is not known, by their type and region; an empty text for a label they lack.
    """

    total: Cost = field(default_factory=Cost)
    by_group: dict[str, Cost] = field(default_factory=dict)
    by_zone: dict[str, Cost] = field(default_factory=dict)
    without: Counter[tuple[str, str]] = field(default_factory=Counter)

    def outputs(self) -> dict[str, Any]:
        """The outputs of a stack: nothing if no node has a price."""
        if not self.total.priced:
            return {}
        missing = {"nodesWithoutPrice": self.total.unpriced} if self.total.unpriced else {}
        return {"costPerHour": round(self.total.hourly, 4), **missing}


def fleet_cost(pools: Iterable[Pool], prices: Prices) -> FleetCost:
    """What the nodes of pools cost.

    Args:
        pools: in the order in which to list groups and zones; with an autoscaler's pools, their current nodes.
    """
    found = FleetCost()
    for pool in pools:
        for labels, count in _alike(pool):
            zone = pool.zone or NO_ZONE
            into = (found.by_group.setdefault(pool.group, Cost()), found.by_zone.setdefault(zone, Cost()), found.total)
            for each in into:
                each._add(labels, count, prices)
            if prices.of_node(labels) is None:
                found.without[labels.get(INSTANCE_TYPE_LABEL, ""), labels.get(REGION_LABEL, "")] += count
    return found


def _alike(pool: Pool) -> Iterable[tuple[Mapping[str, str], int]]:
    """The labels of a pool's nodes, and how many have them; named nodes may have labels of their own."""
    own = [node.labels for node in pool.nodes[: pool.replicas] if node.labels]
    yield from (({**pool.labels, **labels}, 1) for labels in own)
    yield pool.labels, pool.count - len(own)


def _plus(total: float | None, count: int, price: Any) -> float | None:
    return None if total is None or price is None else total + count * price.hourly
