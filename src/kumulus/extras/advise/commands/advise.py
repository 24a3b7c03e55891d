"""Say which machines run a workload for the least money: the mix, its price, and the least that any mix can cost.

    kumulus advise web.yaml batch.yaml --zones us-central1-a,us-central1-b
    kumulus advise experiments/mine.yaml --types m5.xlarge,m7i.4xlarge
    kumulus advise --pods-of mine --spot             # the pods that are in a stack's cluster now
    kumulus advise experiments/mine.yaml --groups mine --region us-central1

Workloads are manifests, as kubectl takes them, or experiment files. The machines are the catalog's, or the node groups
of a stack. Prints node groups for a stack file. `--verify` brings them up, runs the workload and takes them down
again; it ends with 1 where a pod stays pending. More: docs/prices.md.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from kumulus.cli import stack_file, which
from kumulus.cli.errors import UserError

if TYPE_CHECKING:
    from kumulus.extras.advise.demand import WorkloadDemand
    from kumulus.extras.advise.offers import MachineOffers
    from kumulus.extras.advise.workloads import Workloads
    from kumulus.nodes.catalog.prices import Prices

_PATIENCE = 10.0
_MOST_TYPES = 12
_SECONDS = 20.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("workloads", metavar="WORKLOAD", type=Path, nargs="*", help="manifests or experiment files")
    parser.add_argument("--pods-of", metavar="STACK", help="the pods of a stack's cluster, with the files or alone")
    which.add_option(parser)
    parser.add_argument("--types", metavar="TYPE,…", help="instance types (default: all with a price there)")
    parser.add_argument("--zones", metavar="ZONE,…", help="the nodes' zones, which also tell the region of prices")
    parser.add_argument("--groups", metavar="STACK", help="the node groups of a stack's file instead of the catalog")
    parser.add_argument("--region", default="", help="region of the prices for groups whose zones do not name one")
    parser.add_argument("--spot", action="store_true", help="spot machines")
    parser.add_argument("--prices", metavar="FILE", type=Path, help="prices of your own, which win over the catalog's")
    parser.add_argument("--max-types", metavar="N", type=int, default=_MOST_TYPES, help="types at most (default: 12)")
    parser.add_argument(
        "--seconds", metavar="S", type=float, default=_SECONDS, help="for each part of the search (default: 20)"
    )
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.add_argument(
        "--verify", action="store_true", help="bring the fleet up, run the workload on it, take it down"
    )


def run(args: argparse.Namespace) -> int:
    """Advise."""
    from kumulus.extras.advise.advice import advise, lines, plain
    from kumulus.extras.advise.demand import Unadvisable
    from kumulus.extras.capture.dumps import FileRefused
    from kumulus.extras.lab.errors import LabError
    from kumulus.model.errors import SpecError

    _refused(args)
    try:
        demand = _demand(args)
        offers = _offers(args, _prices(args))
        advice = advise(demand, offers, most_types=args.max_types, seconds=args.seconds)
    except (Unadvisable, LabError, FileRefused, SpecError) as error:
        raise UserError(str(error)) from None
    print(json.dumps(plain(advice), indent=2) if args.json else "\n".join(lines(advice)))
    if not args.verify:
        return 0
    from kumulus.extras.advise.commands import verify as advise_verify

    return advise_verify.verify(advice, demand)


def _refused(args: argparse.Namespace) -> None:
    if not args.workloads and not args.pods_of:
        raise UserError("no workload is named; write manifests or experiment files, or --pods-of STACK")
    if args.json and args.verify:
        raise UserError("--verify prints what it does; leave --json out, or ask twice")
    if args.cluster and not args.pods_of:
        raise UserError("--cluster is for --pods-of; leave it out")
    if args.groups and (args.types or args.zones):
        raise UserError("--groups has types and zones of its own; leave --types and --zones out")
    if args.region and not args.groups:
        raise UserError("--region is for --groups; write --zones, whose names tell their region")
    if args.max_types < 1:
        raise UserError(f"--max-types {args.max_types} leaves no type; write 1 or more")
    if not args.seconds > 0:
        raise UserError(f"--seconds {args.seconds:g} leaves no time; write more")
    for name in ("types", "zones"):
        if getattr(args, name) is not None and not _listed(getattr(args, name)):
            raise UserError(f"--{name} is empty, so there is nothing to choose from")


def _demand(args: argparse.Namespace) -> WorkloadDemand:
    from kumulus.extras.advise import demand, workloads

    pods = workloads.of_files(args.workloads)
    if args.pods_of:
        pods = pods.plus(asyncio.run(_live(which.chosen(args.pods_of, args.cluster).require_up())))
    return replace(demand.made(pods.pods, pods.daemons, pods.uncounted), later=pods.later)


async def _live(path: Path) -> Workloads:
    from kumulus.extras.advise import workloads
    from kumulus.kube import ApiError, Client, KubeconfigError, Unreachable, load_kubeconfig

    try:
        async with Client(load_kubeconfig(path), patience=_PATIENCE) as client:
            return await workloads.of_cluster(client)
    except (ApiError, KubeconfigError, Unreachable) as error:
        raise UserError(str(error)) from None


def _prices(args: argparse.Namespace) -> Prices:
    from kumulus.nodes.catalog.prices import catalog, with_own

    own = args.prices or (stack_file.prices(args.groups) if args.groups else None)
    return with_own(own) if own else catalog()


def _offers(args: argparse.Namespace, prices: Prices) -> MachineOffers:
    from kumulus.extras.advise import offers

    if args.groups:
        pools = {name: each.pools for name, each in stack_file.load(args.groups).clusters.items()}
        return offers.of_pools(pools, prices, args.region, spot=args.spot)
    return offers.of_catalog(_listed(args.types), _listed(args.zones), prices, spot=args.spot)


def _listed(text: str | None) -> list[str]:
    return [each.strip() for each in (text or "").split(",") if each.strip()]
