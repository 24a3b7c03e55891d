"""Show where a stack's nodes are: zones, groups, blocks, racks, NVLink domains and switches.

    kumulus topology -s racks                  # a tree; similar nodes are counted, not repeated
    kumulus topology -s racks --svg racks.svg  # a picture; - writes it to the standard output

Both need only the stack file: no cluster has to be up, but that of a program of your own.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from kumulus.cli import cluster, project, stack, which
from kumulus.cli.errors import UserError
from kumulus.model.pools import INSTANCE_TYPE_LABEL, Pool
from kumulus.model.topology import Level
from kumulus.model.totals import totals
from kumulus.model.words import counted


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    stack.add_option(parser)
    which.add_option(parser)
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.add_argument("--svg", metavar="FILE", help="write a picture there instead; - for the standard output")


def run(args: argparse.Namespace) -> int:
    """Show it."""
    from kumulus.extras.advise.commands import price
    from kumulus.extras.watch.commands import topology_svg
    from kumulus.nodes.catalog.prices import fleet_cost

    found = which.chosen(project.require_stack(project.chosen(args.stack)), args.cluster)
    fleet = cluster.fleet(found)
    name, pools = found.label, fleet.pools
    if args.json:
        cost = fleet_cost(pools, fleet.prices).total
        source = cluster.READ_FROM_CLUSTER if fleet.from_cluster else {}
        print(json.dumps({"stack": name, **source, **cost.to_plain(), "pools": list(map(_plain, pools))}, indent=2))
        return 0
    if args.svg is None:
        print(tree(f"{name}{cluster.AS_UP if fleet.from_cluster else ''}", pools))
        print(f"cost: {price.short(fleet_cost(pools, fleet.prices))}")
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


NAMES = {
    "nvlinkDomain": ("NVLink domain", "NVLink domains"),
    "rack": ("rack", "racks"),
    "leaf": ("leaf switch", "leaf switches"),
    "block": ("block", "blocks"),
    "spine": ("spine switch", "spine switches"),
}
"""The singular and plural names of the domains of each level."""


@dataclass(frozen=True)
class Branch:
    """Adjacent domains of one level that are alike."""

    level: Level
    first: int
    """The index of the first of them."""
    count: int
    nodes: int
    """How many each of them has."""
    inside: tuple[Branch, ...]
    """What each of them consists of."""


def tree(stack: str, pools: Sequence[Pool]) -> str:
    """The tree of a stack."""
    sums = totals(pools)
    lines = [f"{stack}: {counted(sums.nodes, 'node')}, {counted(sums.gpus, 'GPU')}"]
    zones = dict.fromkeys(pool.zone for pool in pools)
    for zone in zones:
        last = zone == list(zones)[-1]
        members = [pool for pool in pools if pool.zone == zone]
        nodes = counted(sum(pool.replicas for pool in members), "node")
        lines.append(f"{_fork(last)}{f'zone {zone}' if zone else 'no zone'}: {nodes}")
        for pool in members:
            lines += [f"{_trunk(last)}{line}" for line in _pool_lines(pool, pool is members[-1])]
    return "\n".join(lines)


def branches(levels: Sequence[Level], nodes: range) -> tuple[Branch, ...]:
    """The domains of the first level, with adjacent ones that are alike combined. The ``nodes`` begin with one."""
    if not levels or not nodes:
        return ()
    level, stop = levels[0], nodes.stop
    indices = range(nodes.start // level.nodes, (stop - 1) // level.nodes + 1)
    found = []
    for size, alike in groupby(indices, key=lambda index: len(level.ordinals(index, stop))):
        group = list(alike)
        inside = branches(levels[1:], level.ordinals(group[0], stop))
        found.append(Branch(level, group[0], len(group), size, inside))
    return tuple(found)


def describe(pool: Pool) -> str:
    """A pool on one line: its group, its machine, its nodes, its GPUs."""
    gpus = totals([pool]).gpus
    machine = pool.labels.get(INSTANCE_TYPE_LABEL, "")
    parts = [pool.group, *([machine] if machine not in ("", pool.group) else []), counted(pool.replicas, "node")]
    if gpus:
        parts.append(f"{gpus:,} × {pool.gpu_product}" if pool.gpu_product else counted(gpus, "GPU"))
    return " · ".join(parts)


def _pool_lines(pool: Pool, last: bool) -> Iterator[str]:
    yield _fork(last) + describe(pool)
    levels = tuple(reversed(pool.topology.levels)) if pool.topology else ()
    for line in _branch_lines(branches(levels, range(pool.replicas))):
        yield _trunk(last) + line


def _branch_lines(found: Sequence[Branch]) -> Iterator[str]:
    for branch in found:
        last = branch is found[-1]
        one, several = NAMES[branch.level.name]
        first = branch.level.place(branch.first * branch.level.nodes)
        final = branch.level.place((branch.first + branch.count - 1) * branch.level.nodes)
        if branch.count == 1:
            yield f"{_fork(last)}{one} {first}: {counted(branch.nodes, 'node')}"
        else:
            yield f"{_fork(last)}{branch.count:,} {several} {first} … {final}: {counted(branch.nodes, 'node')} each"
        for line in _branch_lines(branch.inside):
            yield _trunk(last) + line


def _fork(last: bool) -> str:
    return "└─ " if last else "├─ "


def _trunk(last: bool) -> str:
    return "   " if last else "│  "
