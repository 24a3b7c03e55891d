"""Create a cluster from a capture: its nodes as a stack, its pods on the same nodes.

    kumulus clone capture/ -s mine      # writes the stack's file, brings it up, creates the pods
    kumulus clone capture/ -s mine      # again: creates what is missing

The stack is like any other: `kumulus watch`, `fault`, `experiment`, `down`. More: docs/your-cluster.md.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from kumulus.cli import beforehand, needs, project, stack, stack_file, which
from kumulus.cli.errors import UserError
from kumulus.extras.capture.commands import clone_file

if TYPE_CHECKING:
    from kumulus.extras.capture.putting import Put
    from kumulus.stackfile.load import Loaded


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("capture", metavar="DIRECTORY", type=Path, help="what `kumulus capture` wrote")
    parser.add_argument("-s", "--stack", required=True, help="the stack to create from it")


def run(args: argparse.Namespace) -> int:
    """Clone.

    Raises:
        UserError: it is no capture, the stack's file is another's, or the cluster refused.
    """
    made = clone(args.capture, args.stack)
    pods = made.made.get("Pod", 0)
    print(f"{args.stack} has the capture's nodes and {pods:,} of its pods")
    for kind, number in made.unserved.items():
        print(f"  not there: {number:,} {kind}: {made.undefined.get(kind, 'the cluster has no such kind')}")
    for kind, messages in made.refused.items():
        print(f"  refused: {len(messages):,} {kind}, such as {messages[0]}", file=sys.stderr)
    return 1 if made.refused else 0


def clone(capture: Path, name: str) -> Put:
    """Bring a capture up as a stack.

    Raises:
        UserError: as for `run`.
    """
    from kumulus.extras.capture.dumps import Refused
    from kumulus.extras.capture.writing import STACK, WORKLOAD
    from kumulus.kube import ApiError, KubeconfigError, Unreachable

    for file in (STACK, WORKLOAD):
        if not (capture / file).is_file():
            raise UserError(f"{capture} is no capture: it has no {file}")
    _declare(capture / STACK, name)
    if not which.chosen(name).kubeconfig.exists():
        bring_up(name)
    try:
        return asyncio.run(_put(name, capture / WORKLOAD))
    except (Refused, KubeconfigError) as error:
        raise UserError(str(error)) from None
    except (ApiError, Unreachable) as error:
        raise UserError(f"{error}\n  Run the same command again to continue") from None


def _declare(source: Path, name: str) -> None:
    """Write the stack's file; an existing one has to describe the same nodes and faults."""
    beforehand.of_name(name)
    file, wanted = project.current().stack_file(name), _described(source, name)
    if not file.exists():
        clone_file.write(file, source.read_text(encoding="utf-8"))
        return
    described = stack_file.described(name)
    there = described.only if described else None
    if there is None or [_nodes(wanted), wanted.faults] != [_nodes(there), there.faults]:
        shown = project.current().shown(file)
        raise UserError(f"{shown} is another stack's, or has been changed\n  Name another with -s, or delete that file")


def _described(source: Path, name: str) -> Loaded:
    """The cluster in a capture's stack file, which may be larger than a stack's file: all nodes' names are in it.

    Raises:
        UserError: it cannot be read, or has mistakes.
    """
    import yaml

    try:
        config = clone_file.config_of(source.read_text(encoding="utf-8"))
    except (ValueError, yaml.YAMLError) as error:
        raise UserError(f"{source} cannot be read: {' '.join(str(error).split())}") from None
    described = stack_file.StackFile(name, source.parent, str(source), config).described
    if described is None or described.only is None:
        raise UserError(f"{source} does not describe a cluster\n  Capture it again")
    return described.only


def _nodes(loaded: Loaded) -> list[tuple[str, list[str]]]:
    return [(pool.name, pool.node_names()) for pool in loaded.pools]


def bring_up(name: str) -> None:
    """Create a stack whose file exists, and bring it up.

    Raises:
        UserError: it did not come up.
    """
    stack.make_ready(needs.of_stack, name)
    stack.create(name)
    beforehand.of_update(name)
    if stack.run(["up", "-s", name, "--yes", "--skip-preview"]) != 0:
        raise UserError(f"{name} did not come up; what went wrong is said above")


async def _put(name: str, workload: Path) -> Put:
    from kumulus.extras.capture.putting import put
    from kumulus.kube import Client, load_kubeconfig

    def show(kind: str, count: int) -> None:
        if sys.stderr.isatty() and count % 100 == 0:
            print(f"\r\033[K{count:,} {kind}", end="", file=sys.stderr, flush=True)

    async with Client(load_kubeconfig(which.chosen(name).kubeconfig)) as client:
        found = await put(client, workload, show)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    return found
