"""A live view of a stack's fleet in the terminal: allocation, pods, what is pending and why, the control plane.

    kumulus watch -s dev                # until q is pressed
    kumulus watch -s dev --once         # one summary, as text
    kumulus watch -s dev --json | jq .  # one summary, for programs

If the output is not a terminal, it prints one summary. Keys and columns: docs/console.md.
"""

import argparse
import asyncio
import json
import sys

from kumulus.cli import cluster
from kumulus.extras.watch.commands import look


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    cluster.add_arguments(parser)
    parser.add_argument("--once", action="store_true", help="print one summary as text and exit")
    parser.add_argument("--json", action="store_true", help="print one summary as JSON and exit")


def run(args: argparse.Namespace) -> int:
    """Watch."""
    from kumulus.kube import ApiError, KubeconfigError, Unreachable

    found = cluster.named(args)
    try:
        if args.once or args.json or not (sys.stdout.isatty() and sys.stdin.isatty()):
            asyncio.run(_once(found, as_json=args.json))
        else:
            asyncio.run(_live(found))
        return 0
    except (ApiError, KubeconfigError, Unreachable) as error:
        raise cluster.not_answering(found.stack, error) from None


async def _once(found: cluster.NamedCluster, *, as_json: bool) -> None:
    from kumulus.extras.watch.console.text import text
    from kumulus.extras.watch.live.summary import summary

    async with look.live(found) as live:
        now = summary(live)
    print(json.dumps({"stack": found.name, **now.to_plain()}, indent=2) if as_json else text(found.name, now))


async def _live(found: cluster.NamedCluster) -> None:
    from kumulus.extras.watch.console.terminal import show

    async with look.live(found) as live:
        await show(found.name, live, cluster.how_to_start(found.stack))
