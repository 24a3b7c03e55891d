"""What a stack's fleet costs, by node group and by zone, an hour and a month.

    kumulus price -s dev            # as text
    kumulus price -s dev --json     # for programs

It needs only the stack file: no cluster has to be up, but that of a program of your own. Prices are the catalog's or
those of kumulus:prices (docs/prices.md). Nodes without a known price are counted and cost nothing.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kumulus.cli import cluster, project, stack, which

if TYPE_CHECKING:
    from kumulus.nodes.catalog.prices import Cost, FleetCost

_SHOWN = 8
_TAKES = "a group's instanceType, as e2-standard-4, and its availabilityZone, as us-central1-a"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    stack.add_option(parser)
    which.add_option(parser)
    parser.add_argument("--json", action="store_true", help="for programs")


def run(args: argparse.Namespace) -> int:
    """Show it."""
    from kumulus.nodes.catalog.prices import fleet_cost

    found = which.chosen(project.require_stack(project.chosen(args.stack)), args.cluster)
    fleet = cluster.fleet(found)
    cost = fleet_cost(fleet.pools, fleet.prices)
    if args.json:
        source = cluster.READ_FROM_CLUSTER if fleet.from_cluster else {}
        print(json.dumps(_plain(found.label, cost) | source, indent=2))
    else:
        print("\n".join(lines(f"{found.label}{cluster.AS_UP if fleet.from_cluster else ''}", cost)))
    return 0


def lines(name: str, cost: FleetCost) -> Iterator[str]:
    """What a fleet costs, for people."""
    from kumulus.model.words import aligned, counted, listed

    total = cost.total
    yield f"{name}: {counted(total.nodes, 'node')}, {_sum(total)}"
    if total.priced:
        rows = [("", "NODES", "AN HOUR", "A MONTH", "WITHOUT A PRICE")]
        for what, parts in (("group", cost.by_group), ("zone", cost.by_zone)):
            rows += [(f"{what} {each}", *_row(part)) for each, part in parts.items()]
        yield from aligned([*rows, ("total", *_row(total))]).splitlines()
        for what, hourly in (("all on demand", total.all_on_demand), ("all spot", total.all_spot)):
            yield f"{what}: {_dollars(hourly)}/h" if hourly is not None else f"{what}: not known of every machine"
    if cost.without:
        each = [
            f"{counted(number, 'node')} of {kind or 'no instance type'} in {region or 'no known region'}"
            for (kind, region), number in cost.without.most_common()
        ]
        yield f"without a known price: {listed(each, _SHOWN, '; ')}"
        yield f"  A price takes {_TAKES}; your own: kumulus:prices (docs/prices.md)"


def short(cost: FleetCost) -> str:
    """What a fleet costs, in half a line; says of nodes without a price that they have none.

    Where none has one, as the machines of an imported trace, it says what a price takes.
    """
    return _sum(cost.total) + (f"; it takes {_TAKES}" if cost.without and not cost.total.priced else "")


def _sum(cost: Cost) -> str:
    if not cost.priced:
        return "price not known"
    without = f", without {cost.unpriced:,} whose price is not known" if cost.unpriced else ""
    return f"{_dollars(cost.hourly)}/h, {_dollars(cost.monthly)} a month{without}"


def _row(cost: Cost) -> tuple[str, str, str, str]:
    money = (_dollars(cost.hourly), _dollars(cost.monthly)) if cost.priced else ("not known", "not known")
    return f"{cost.nodes:,}", *money, f"{cost.unpriced:,}" if cost.unpriced else ""


def _dollars(amount: float) -> str:
    return f"${amount:,.2f}"


def _plain(name: str, cost: FleetCost) -> dict[str, object]:
    return {
        "stack": name,
        "currency": "USD",
        **cost.total.to_plain(),
        "byGroup": {each: part.to_plain() for each, part in cost.by_group.items()},
        "byZone": {each: part.to_plain() for each, part in cost.by_zone.items()},
        "withoutPrice": [
            {"instanceType": kind, "region": region, "nodes": number} for (kind, region), number in cost.without.items()
        ],
    }
