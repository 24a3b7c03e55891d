"""Where a stack's cluster is, for commands that look at it while it is up."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kumulus.cli import project, stack, stack_file, which
from kumulus.cli.errors import UserError
from kumulus.host import installation

if TYPE_CHECKING:
    from kumulus.kube import Client
    from kumulus.model.pools import Pool
    from kumulus.nodes.catalog.prices import Prices

_PATIENCE = 5.0

AS_UP = " as it is up"
"""Put after a cluster's name if its nodes were read from the cluster itself, as no file declares them."""
READ_FROM_CLUSTER = {"source": "cluster"}
"""Says so in JSON output."""

# The scheme of each component's health check.
_HEALTH = {"kube-scheduler": "https", "kube-controller-manager": "https", "kwok-controller": "http"}


@dataclass(frozen=True)
class NamedCluster:
    """A cluster to look at."""

    name: str
    """What to call it: its stack's name, and its own where that has several."""
    kubeconfig: Path
    """The file with its address."""
    context: str | None = None
    """Of the kubeconfig; None for its current one."""
    stack: str = ""
    """The stack's name; empty where it is known by its kubeconfig alone."""
    member: str = ""
    """What its stack's file calls it among several."""
    endpoints: dict[str, str] = field(default_factory=dict)
    """Addresses of its components' health checks; none where they are not on this machine."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments that name a cluster."""
    stack.add_option(parser)
    which.add_option(parser)
    parser.add_argument("--kubeconfig", metavar="FILE", help="of a cluster that is not on this machine")
    parser.add_argument("--context", help="of that kubeconfig, if not its current one")


def named(args: argparse.Namespace) -> NamedCluster:
    """The cluster that the arguments name."""
    if args.kubeconfig is not None:
        if args.cluster is not None:
            raise UserError("--cluster is of a stack; with --kubeconfig, leave it out")
        file = Path(args.kubeconfig)
        return NamedCluster(args.stack or args.context or file.stem, file, args.context)
    if args.context is not None:
        raise UserError("--context belongs to a --kubeconfig; write that too, or leave it out")
    found = which.chosen(project.chosen(args.stack), args.cluster)
    kubeconfig = found.kubeconfig
    if not kubeconfig.exists():
        raise UserError(f"{found.not_up()}\n  One that is elsewhere: --kubeconfig FILE")
    endpoints = health_endpoints(kubeconfig.parent)
    return NamedCluster(found.label, kubeconfig, None, found.stack, found.cluster, endpoints)


def client(found: NamedCluster) -> Client:
    """A client for a cluster."""
    from kumulus.kube import Client, load_kubeconfig

    # A user is waiting for the first screen, so a cluster that does not answer is reported quickly.
    return Client(load_kubeconfig(found.kubeconfig, found.context), patience=_PATIENCE)


@dataclass(frozen=True)
class DeclaredNodes:
    """The nodes of a cluster, and what such machines cost."""

    pools: Sequence[Pool]
    """Those that are declared."""
    prices: Prices
    """What machines cost."""
    from_cluster: bool = False
    """Whether the cluster was asked, since the user's own program declares the nodes and no file lists them."""


def fleet(found: which.StackCluster) -> DeclaredNodes:
    """The nodes of a cluster: by its stack's file, or by the cluster itself where that does not declare them."""
    if not stack_file.by_users_program(found.stack):
        loaded = stack_file.load_one(found.stack, found.cluster)
        return DeclaredNodes(loaded.pools, loaded.known_prices())
    if not found.kubeconfig.exists():
        raise UserError(f"{found.not_up()}\n  Its nodes are declared by your own program, and known while it is up")
    from kumulus.kube import ApiError, KubeconfigError, Unreachable
    from kumulus.model.names import SYSTEM_GROUP
    from kumulus.nodes.catalog import prices
    from kumulus.nodes.faults import records
    from kumulus.runtimes.place import cluster_owner

    async def recorded() -> records.ClusterRecords:
        async with client(NamedCluster(found.label, found.kubeconfig)) as asked:
            # Other stacks may have nodes in it, too.
            return (await records.read(asked)).of(cluster_owner(found.kubeconfig))

    try:
        known = asyncio.run(recorded())
    except (ApiError, KubeconfigError, Unreachable) as error:
        raise not_answering(found.stack, error) from None
    own = stack_file.prices(found.stack)
    pools = [pool for pool in known.pools.values() if pool.group != SYSTEM_GROUP]
    return DeclaredNodes(pools, prices.with_own(own) if own else prices.catalog(), from_cluster=True)


def not_answering(stack_name: str, error: Exception) -> UserError:
    """The error to show when a cluster of a stack does not answer or refuses a request.

    Args:
        stack_name: empty where no stack is known.
    """
    from kumulus.kube import KubeconfigError, Unreachable

    again = how_to_start(stack_name) if isinstance(error, KubeconfigError | Unreachable) else ""
    return UserError(f"{error}\n  {again}" if again else str(error))


def how_to_start(stack_name: str) -> str:
    """What starts a stack's clusters that are down, in words; empty where no stack is known."""
    return f"To start one that is down: {installation.command()} up {stack_name}" if stack_name else ""


def health_endpoints(directory: Path) -> dict[str, str]:
    """The URLs of the health checks of a local cluster's components, by component; none if it has no such files."""
    from kumulus.runtimes.kwok.layout import Layout

    ports = Layout(directory).ports()
    return {name: f"{_HEALTH[name]}://127.0.0.1:{ports[name]}/healthz" for name in _HEALTH if name in ports}
