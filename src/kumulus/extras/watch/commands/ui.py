"""A live map of a stack's fleet, served to your browser from this machine.

    kumulus ui -s dev
    kumulus ui -s dev --port 8800
    kumulus ui -s dev --allow-changes

The page is served on 127.0.0.1 only. Its address contains a token, new each time; without it nothing is shown. Ctrl-C
ends it. What the page shows, and its keys: docs/console.md.
"""

import argparse
import asyncio

from kumulus.cli import cluster
from kumulus.cli.errors import UserError
from kumulus.cli.registry import port
from kumulus.extras.watch.commands import look


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    cluster.add_arguments(parser)
    parser.add_argument("--port", type=port, default=0, help="where to listen (default: any port that is free)")
    parser.add_argument(
        "--allow-changes", action="store_true", help="let the page cordon nodes, delete pods, inject and clear faults"
    )


def run(args: argparse.Namespace) -> int:
    """Serve the page."""
    from kumulus.extras.watch.console.serving import PortInUse
    from kumulus.kube import ApiError, KubeconfigError, Unreachable

    found = cluster.named(args)
    try:
        asyncio.run(_serve(found, args.port, args.allow_changes))
    except (ApiError, KubeconfigError, Unreachable) as error:
        raise cluster.not_answering(found.stack, error) from None
    except PortInUse as error:
        raise UserError(str(error)) from None
    except PermissionError:
        raise UserError(f"port {args.port} is not yours to listen on\n  Choose one from 1024 to 65535") from None
    return 0


async def _serve(found: cluster.NamedCluster, wanted: int, allowed: bool) -> None:
    from kumulus.extras.watch.console.changes import ClusterChanges
    from kumulus.extras.watch.console.page import Page
    from kumulus.runtimes.place import cluster_owner

    async with look.live(found) as live:
        changes = ClusterChanges(live, cluster_owner(found.kubeconfig)) if allowed else None
        page = Page(found.name, live, changes, cluster.how_to_start(found.stack))
        page.follow()
        async with page.served(wanted) as address:
            print(f"{found.name}: {address}\nCtrl-C ends it", flush=True)
            await live.ended()
