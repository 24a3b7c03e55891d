"""What machines cost, by the catalog's prices or a file of the user's own; and what the nodes of a fleet cost together.

A type that no list has for its region has no price and is counted as such: no price is taken from another region.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from kumulus.kube.safe_yaml import FAST_LOADER
from kumulus.model.checks import mapping_problems, problem, unknown_key_problems
from kumulus.model.errors import Problem, SpecError, Where, shown
from kumulus.model.pools import INSTANCE_TYPE_LABEL, REGION_LABEL, Pool
from kumulus.model.totals import NO_ZONE
from kumulus.nodes.catalog.instances import CATALOG, clouds

ANYWHERE = "*"
"""In the user's own file: prices for every region that does not override them."""
CURRENCY = "USD"
_KEYS = ("currency", "regions")
_REGION_KEYS = ("source", "date", "onDemand", "spot")
# More than any machine costs per hour: a larger figure is a price per year, or in another currency.
_HIGHEST_PRICE = 1_000_000.0
_KARPENTER = ("karpenter.sh/capacity-type", "spot")


@dataclass(frozen=True)
class Price:
    """What a machine costs."""

    hourly: float
    """US dollars per hour of its existence."""
    source: str = ""
    """Where the figure is from."""
    date: str = ""
    """The date of that source, as YYYY-MM-DD; empty when unknown."""


@dataclass(frozen=True)
class Prices:
    """Prices by region, instance type and whether it is a spot machine."""

    table: Mapping[tuple[str, str, bool], Price]
    name: str = ""
    """The user's own file, for messages; empty for the catalog alone."""

    def of(self, instance_type: str, region: str, *, spot: bool = False) -> Price | None:
        """The price of an instance type in a region; None when no list has it."""
        return self.table.get((region, instance_type, spot)) or self.table.get((ANYWHERE, instance_type, spot))

    def of_node(self, labels: Mapping[str, str]) -> Price | None:
        """The price of a node, by its labels for type, region and spot; None when none is known for them."""
        return self.of(labels.get(INSTANCE_TYPE_LABEL, ""), labels.get(REGION_LABEL, ""), spot=is_spot(labels))

    def regions(self) -> list[str]:
        """The regions that have prices."""
        return sorted({region for region, _, _ in self.table} - {ANYWHERE})

    def types(self, region: str, *, spot: bool = False) -> list[str]:
        """The instance types that have a price in a region."""
        return sorted({kind for at, kind, is_spot in self.table if at in (region, ANYWHERE) and is_spot == spot})


def is_spot(labels: Mapping[str, str]) -> bool:
    """Whether a node's labels mark it as a spot machine."""
    marks = (_KARPENTER, *(cloud.spot for cloud in clouds().values()))
    return any(labels.get(key) == value for key, value in marks)


def spot_labels(cloud: str) -> dict[str, str]:
    """The label of a spot machine of a cloud; Karpenter's for a machine of no cloud that is known."""
    return dict((clouds()[cloud].spot if cloud in clouds() else _KARPENTER,))


@cache
def catalog() -> Prices:
    """The catalog's own prices."""
    text = (CATALOG / "prices.yaml").read_text(encoding="utf-8")
    raw = yaml.load(text, Loader=FAST_LOADER)  # noqa: S506 - a safe loader
    return Prices(_table(raw, "prices.yaml"))


def with_own(path: Path) -> Prices:
    """The catalog's prices, overridden by a file of the user's own.

    Args:
        path: YAML with `onDemand` and `spot` for each of its `regions`, as in the catalog's `prices.yaml`.

    Raises:
        SpecError: the file cannot be read, or has mistakes; the error has all of them.
    """
    try:
        raw = yaml.load(path.read_text(encoding="utf-8"), Loader=FAST_LOADER)  # noqa: S506 - a safe loader
    except OSError as error:
        remedy = "write the path of one that can be read, as kumulus:prices or --prices"
        raise SpecError([Problem("", f"{error.strerror or error}", remedy)], str(path)) from None
    # A date that no calendar has is a ValueError of PyYAML's, as is a text in another encoding.
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        remedy = "write regions: with onDemand: and spot: prices by machine (docs/prices.md)"
        raise SpecError([Problem("", f"is no YAML: {place}{str(error).splitlines()[0]}", remedy)], str(path)) from None
    if problems := _problems(raw):
        raise SpecError(problems, str(path))
    return replace(catalog(), table={**catalog().table, **_table(raw, path.name)}, name=str(path))


def _table(raw: Mapping[str, Any], name: str) -> dict[tuple[str, str, bool], Price]:
    found = {}
    for region, entry in raw["regions"].items():
        source, dated = entry.get("source") or name, str(entry.get("date") or "")
        for key, spot in (("onDemand", False), ("spot", True)):
            for kind, hourly in (entry.get(key) or {}).items():
                found[(region, kind, spot)] = Price(float(hourly), source, dated)
    return found


def _problems(raw: object) -> list[Problem]:
    example = "write regions: {us-east-1: {onDemand: {m5.xlarge: 0.192}}}"
    if not isinstance(raw, Mapping) or not isinstance(raw.get("regions"), Mapping):
        return [Problem("regions", "is missing", example)]
    found = unknown_key_problems((), raw, _KEYS)
    if raw.get("currency") not in (None, CURRENCY):
        found.append(problem(("currency",), f"is {shown(raw['currency'])}", f"write prices in {CURRENCY}"))
    if not raw["regions"]:
        found.append(problem(("regions",), "has no region, so that there is no price", example))
    found += mapping_problems(("regions",), raw["regions"])
    for region, entry in raw["regions"].items():
        found += _region_problems(("regions", str(region)), entry)
    return found


def _region_problems(where: Where, entry: object) -> list[Problem]:
    if not isinstance(entry, Mapping):
        return [problem(where, f"is {shown(entry)}", "write onDemand: {TYPE: PRICE} below it")]
    found = unknown_key_problems(where, entry, _REGION_KEYS)
    dated = entry.get("date")
    if dated is not None and not isinstance(dated, date):
        found.append(problem((*where, "date"), f"is {shown(dated)}", "write it as 2026-11-22"))
    for key in ("onDemand", "spot"):
        prices = entry.get(key)
        if prices is None:
            continue
        if wrong := mapping_problems((*where, key), prices):
            found += wrong
            continue
        for kind, hourly in prices.items():
            found += _price_problems((*where, key, kind), hourly)
    return found


def _price_problems(where: Where, hourly: object) -> list[Problem]:
    remedy = "write US dollars for an hour, such as 0.192"
    if isinstance(hourly, bool) or not isinstance(hourly, int | float) or not math.isfinite(hourly):
        return [problem(where, f"is {shown(hourly)}, which is no price", remedy)]
    if hourly < 0:
        return [problem(where, f"is {shown(hourly)}, a negative price", remedy)]
    if hourly > _HIGHEST_PRICE:
        return [problem(where, f"is {shown(hourly)}, more than any machine costs", remedy)]
    return []


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
    """The part of `hourly` that spot machines cost."""
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
        """JSON-able; amounts in US dollars, rounded to a ten-thousandth, None where nodes have no price at all."""
        amounts = {
            "hourly": self.hourly,
            "monthly": self.monthly,
            "spotHourly": self.spot,
            "allOnDemandHourly": self.all_on_demand,
            "allSpotHourly": self.all_spot,
        }
        known = self.priced or not self.nodes
        rounded = {name: round(each, 4) if known and each is not None else None for name, each in amounts.items()}
        return {"nodes": self.nodes, "nodesWithoutPrice": self.unpriced, **rounded}

    def add(self, labels: Mapping[str, str], count: int, prices: Prices) -> None:
        """Add nodes with these labels."""
        kind, region = labels.get(INSTANCE_TYPE_LABEL, ""), labels.get(REGION_LABEL, "")
        self.nodes += count
        price = prices.of_node(labels)
        if price is None:
            self.unpriced += count
            return
        self.hourly += count * price.hourly
        if is_spot(labels):
            self.spot += count * price.hourly
        self.all_on_demand = _plus(self.all_on_demand, count, prices.of(kind, region))
        self.all_spot = _plus(self.all_spot, count, prices.of(kind, region, spot=True))


@dataclass
class FleetCost:
    """What a fleet costs.

    Args:
        by_group, by_zone: the nodes of each, in the order of the stack file.
        without: how many nodes have no known price, by type and region; an empty text for a label that they lack.
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
    """What the nodes of pools cost, by group and zone in their order; of an autoscaler's pools, the current nodes."""
    found = FleetCost()
    for pool in pools:
        group = found.by_group.setdefault(pool.group, Cost())
        zone = found.by_zone.setdefault(pool.zone or NO_ZONE, Cost())
        for labels, count in _alike(pool):
            for each in (group, zone, found.total):
                each.add(labels, count, prices)
            if prices.of_node(labels) is None:
                found.without[labels.get(INSTANCE_TYPE_LABEL, ""), labels.get(REGION_LABEL, "")] += count
    return found


def _alike(pool: Pool) -> Iterable[tuple[Mapping[str, str], int]]:
    """The labels of a pool's nodes, and how many have them; named nodes may have labels of their own."""
    own = [node.labels for node in pool.nodes[: pool.replicas] if node.labels]
    yield from (({**pool.labels, **labels}, 1) for labels in own)
    # Nodes that do not exist have no price that could be unknown.
    if others := pool.count - len(own):
        yield pool.labels, others


def _plus(total: float | None, count: int, price: Price | None) -> float | None:
    return None if total is None or price is None else total + count * price.hourly
