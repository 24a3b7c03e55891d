"""Show where a stack's nodes are: zones, groups, blocks, racks, NVLink domains and switches.

    kumulus topology -s racks                  # a tree; similar nodes are counted, not repeated
    kumulus topology -s racks --svg racks.svg  # a picture; - writes it to the standard output

Both need only the stack file: no cluster has to be up.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from kumulus.cli import project, stack, stack_file, which
from kumulus.cli.errors import UserError

if TYPE_CHECKING:
    from kumulus.model.pools import Pool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    stack.add_option(parser)
    which.add_option(parser)
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.add_argument("--svg", metavar="FILE", help="write a picture there instead; - for the standard output")


def run(args: argparse.Namespace) -> int:
    """Show it."""
    from kumulus.cli import price, topology_svg, topology_text
    from kumulus.nodes.catalog.costs import fleet_cost

    found = which.chosen(project.require_stack(project.chosen(args.stack)), args.cluster)
    loaded = stack_file.load_one(found.stack, found.cluster)
    name, pools = found.label, loaded.pools
    if args.json:
        cost = fleet_cost(pools, loaded.known_prices()).total
        print(json.dumps({"stack": name, **cost.to_plain(), "pools": [_plain(pool) for pool in pools]}, indent=2))
        return 0
    if args.svg is None:
        print(topology_text.tree(name, pools))
        print(f"cost: {price.short(fleet_cost(pools, loaded.known_prices()))}")
        return 0
    picture = topology_svg.picture(name, pools)
    if args.svg == "-":
        print(picture, end="")
        return 0
    try:
        Path(args.svg).write_text(picture, encoding="utf-8")
    except OSError as error:
        raise UserError(f"the picture cannot be written to {args.svg}: {error.strerror}") from None
    print(f"wrote {args.svg}")
    return 0


def _plain(pool: Pool) -> dict[str, object]:
    from kumulus.model.pools import INSTANCE_TYPE_LABEL
    from kumulus.model.totals import totals

    sums = totals([pool])
    return {
        "name": pool.name,
        "group": pool.group,
        "zone": pool.zone,
        "region": pool.region,
        "instanceType": pool.labels.get(INSTANCE_TYPE_LABEL, ""),
        "nodes": sums.nodes,
        "gpus": sums.gpus,
        "levels": [{"level": each.name, "label": each.label} for each in pool.topology.levels] if pool.topology else [],
    }
