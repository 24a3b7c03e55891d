"""Show what a fleet of a size costs its control plane, before you create it.

    kumulus plan --nodes 10000
    kumulus plan -s gcp-large

A model of measured figures gives the answer: docs/scale.md says how accurate it is and how to go beyond one machine.
"""

import argparse
import json
import math
from dataclasses import asdict

from kumulus.cli import project, stack_file, which
from kumulus.cli.errors import UserError
from kumulus.model import scale

_MOST = 1_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--nodes", type=int, metavar="N", help=f"how many nodes, up to {_MOST:,}")
    which.add_argument("-s", "--stack", help="the nodes of that stack (default: the current one)")
    parser.add_argument("--cluster", metavar="NAME", help="which of its clusters, where it has several (default: all)")
    parser.add_argument("--heartbeat-factor", type=int, metavar="F", help="as kwok.heartbeatFactor in the stack file")
    parser.add_argument("--cores", type=int, metavar="C", help="of the machine it will run on (default: this one's)")
    parser.add_argument("--memory", type=float, metavar="GB", help="of that machine, in GB")
    parser.add_argument("--json", action="store_true", help="for programs")


def run(args: argparse.Namespace) -> int:
    """Ask the model and print its answer."""
    import psutil

    from kumulus.host.machine import memory_bytes

    for name in ("nodes", "heartbeat_factor", "cores", "memory"):
        value = getattr(args, name)
        if value is not None and not 0 < value < math.inf:
            raise UserError(f"--{name.replace('_', '-')} is {value:g}; write a number above 0")
    if args.nodes is not None and args.nodes > _MOST:
        raise UserError(f"--nodes is {args.nodes:,}; the model is not asked beyond {_MOST:,}")
    if args.nodes is not None and args.cluster is not None:
        raise UserError("--cluster is for the clusters of a stack, not for --nodes; leave one of the two out")
    fleets, what, costs = [(args.nodes, args.heartbeat_factor)], "", ""
    if args.nodes is None:
        fleets, what, costs = _fleets(args)
    machine = scale.MachineSize(
        cores=args.cores or psutil.cpu_count() or 1,
        memory_mb=args.memory * 1000 if args.memory else memory_bytes() / 1e6,
    )
    found = scale.together([scale.cost(nodes, machine, factor) for nodes, factor in fleets])
    factor = next((factor for _, factor in fleets if factor), None)
    problems, most = scale.limits(found, machine), scale.most_nodes(machine, factor)
    if args.json:
        answer = {**asdict(found), "machine": asdict(machine), "limits": problems, "most_nodes": most}
        print(json.dumps(answer, indent=2))
    else:
        print(what + "\n".join([*_report(found, machine, problems, most), *([costs] if costs else [])]))
    return 1 if problems else 0


def _fleets(args: argparse.Namespace) -> tuple[list[tuple[int, int | None]], str, str]:
    """The number of nodes and the heartbeat factor of each cluster in question, what to call them, and their cost."""
    from kumulus.extras.advise.commands import price
    from kumulus.nodes.catalog.prices import fleet_cost

    stack = project.chosen(args.stack)
    clusters = stack_file.load(stack).clusters
    what = f"{stack}: "
    if args.cluster is not None:
        found = which.chosen(stack, args.cluster)
        clusters, what = {found.cluster: clusters[found.cluster]}, f"{found.label}: "
    elif "" not in clusters:
        what = f"{stack}: {len(clusters)} clusters, "
    fleets = [
        (sum(pool.replicas for pool in each.pools), args.heartbeat_factor or each.spec.kwok.heartbeatFactor)
        for each in clusters.values()
    ]
    prices = next(iter(clusters.values())).known_prices()
    cost = fleet_cost([pool for each in clusters.values() for pool in each.pools], prices)
    return fleets, what, f"such machines would cost {price.short(cost)}" if cost.total.priced else ""


def _report(found: scale.FleetFootprint, machine: scale.MachineSize, problems: list[str], most: int) -> list[str]:
    parts = ", ".join(f"{name} {size / 1000:.2f}" for name, size in found.memory_mb.items())
    lease = scale.LEASE_S * found.heartbeat_factor
    lines = [
        f"{found.nodes:,} nodes on {machine.cores} cores, {machine.memory_mb / 1000:,.1f} GB:",
        f"  memory       {found.total_memory_mb / 1000:,.2f} GB ({parts})",
        f"  creation     {found.creation_s:,.1f} s until all are Ready",
        f"  leases       {found.leases_per_s:,.0f} renewals/s (leases of {lease:,} s)",
        f"  CPU          {found.standing_cores:,.2f} cores while nothing changes",
        f"  etcd         {found.etcd_mb:,.0f} MB",
        f"  controllers  {found.controllers} kwok-controller{'s' if found.controllers > 1 else ''}",
    ]
    if problems:
        return [*lines, "too much for this machine:", *(f"  {line}" for line in problems), f"it holds {most:,} nodes"]
    return [*lines, f"it fits: this machine holds {most:,} nodes with half of its CPUs to spare"]
