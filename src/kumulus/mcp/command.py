"""Serve clusters to an agent, by the Model Context Protocol on stdin and stdout.

    kumulus mcp -s mine                   # look at a stack's cluster: nodes, pods, events, why a pod waits
    kumulus mcp --kubeconfig FILE         # … or at any other
    kumulus mcp --write                   # make clusters, break them, measure in them, reset and destroy them

It is started by the agent's program, not by hand. Without --write it changes nothing; with it, only clusters that it
has made itself, which end with it. More: docs/agents.md.
"""

import argparse
import asyncio
from pathlib import Path

from kumulus.cli import project, stack, which
from kumulus.cli.errors import UserError
from kumulus.host import interrupts


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    stack.add_option(parser)
    which.add_option(parser)
    parser.add_argument("--kubeconfig", type=Path, metavar="FILE", help="a cluster to look at, instead of a stack's")
    parser.add_argument("--write", action="store_true", help="make clusters, and change those; nobody else's")


def run(args: argparse.Namespace) -> int:
    """Serve until the agent's program closes the connection."""
    from kumulus.kube import KubeconfigError
    from kumulus.mcp.server import serve

    if args.kubeconfig and (args.stack or args.cluster):
        raise UserError("--kubeconfig and -s both name a cluster to look at; leave one out")
    if args.cluster and not args.stack:
        raise UserError("--cluster is for a stack's clusters; write -s STACK, too")
    seen = {args.kubeconfig.stem: args.kubeconfig} if args.kubeconfig else {}
    if args.stack:
        found = which.chosen(project.chosen(args.stack), args.cluster)
        seen = {found.label: found.require_up()}
    try:
        with interrupts.like_ctrl_c():
            asyncio.run(serve(seen, write=args.write))
    except KubeconfigError as error:
        raise UserError(str(error)) from None
    return 0
