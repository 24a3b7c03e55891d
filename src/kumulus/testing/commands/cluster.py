"""Start a cluster without a stack, for tests in any language, and take it down.

    kumulus cluster up --nodes 30                        # until Ctrl-C
    kumulus cluster up --json --detach --ends-with $$    # goes on; ends with that process, or by `down`
    kumulus cluster up --json --detach                   # ends by `down` only, such as in a later step of CI
    kumulus cluster down FOLDER

The JSON object has `kubeconfig`, `server`, `folder` (for `down`), `name`, `nodes` and `kubernetesVersion`. Nothing is
written outside the folder, and nothing into ~/.kube/config. More: docs/testing.md.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kumulus.cli.errors import UserError
from kumulus.host import installation, interrupts

if TYPE_CHECKING:
    from kumulus.testing import Cluster
    from kumulus.testing.wanted import Nodes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    up = actions.add_parser("up", help="start one, and wait until its nodes are Ready")
    up.add_argument("file", nargs="?", type=Path, metavar="FILE", help="a stack file that says what it is like")
    up.add_argument(
        "--nodes", action="append", metavar="N|MACHINE=N", help="plain nodes, or nodes of an instance type or GPU"
    )
    up.add_argument("--cluster", default="", metavar="NAME", help="which of the file's clusters, if it has several")
    up.add_argument("--kubernetes", metavar="VERSION", help="such as 1.36.4, if not the default one")
    up.add_argument("--json", action="store_true", help="print one JSON object")
    up.add_argument("--detach", action="store_true", help="leave it running; it ends by `down`, or as --ends-with says")
    up.add_argument("--ends-with", type=int, metavar="PID", help="with --detach: it ends with that process, too")
    down = actions.add_parser("down", help="take one down; no error if it is gone")
    down.add_argument("folder", type=Path, metavar="FOLDER", help="what `up` printed; its kubeconfig will do as well")


def run(args: argparse.Namespace) -> int:
    """Run the action."""
    from kumulus.testing import ClusterError

    try:
        return _up(args) if args.action == "up" else _down(args.folder)
    except ClusterError as error:
        raise UserError(str(error)) from None


def _up(args: argparse.Namespace) -> int:
    from kumulus.testing import Cluster

    if args.ends_with is not None and not args.detach:
        raise UserError("--ends-with is for a cluster that goes on: add --detach, or leave it out")
    sections: dict[str, Any] = {"kubernetesVersion": args.kubernetes} if args.kubernetes else {}
    nodes = _nodes(args.nodes or []) if args.nodes or not args.file else None
    more: dict[str, Any] = {"ends_with": args.ends_with} if args.ends_with is not None else {}
    # Progress belongs to people, and stdout to programs.
    cluster = Cluster(args.file, nodes=nodes, cluster=args.cluster, say=_say, **more, **sections)
    with interrupts.like_ctrl_c(), cluster:
        _print(cluster, as_json=args.json)
        if args.detach:
            cluster.keep(guarded=args.ends_with is not None)
            return 0
        print("Ctrl-C takes it down", file=sys.stderr, flush=True)
        signal.pause()
    return 0


def _down(named: Path) -> int:
    from kumulus.testing.plane import CLUSTERS, PREFIX, remove

    folder = next((each for each in (named, *named.parents) if each.name.startswith(PREFIX)), None)
    if folder is None or (folder.exists() and not (folder / CLUSTERS).is_dir()):
        raise UserError(f"{named} is no cluster's folder\n  Name what `kumulus cluster up` printed as folder")
    remove(folder.absolute())
    return 0


def _print(cluster: Cluster, *, as_json: bool) -> None:
    found = cluster.described()
    if as_json:
        print(json.dumps(found), flush=True)
        return
    print(f"export KUBECONFIG={found['kubeconfig']}")
    print(f"# {found['nodes']:,} nodes, Kubernetes {found['kubernetesVersion']}")
    print(f"# to remove it: {installation.command()} cluster down {found['folder']}", flush=True)


def _nodes(written: list[str]) -> Nodes:
    """The nodes on a command line."""
    from kumulus.testing.wanted import nodes_of

    try:
        return nodes_of(written)
    except ValueError:
        raise UserError(f"--nodes {' '.join(written)}: write a number, or h100=100 for each machine") from None


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
