"""Save everything in a stack's cluster, and restore it: nodes, pods, faults, everything in it.

    kumulus snapshot save full -s dev       # every object of the cluster, as of one moment
    kumulus snapshot restore full -s dev    # all of them as they were, under the running control plane
    kumulus snapshot restore full -s test --of dev    # what users had in dev's cluster, put into test's
    kumulus snapshot save full -s shared -n team-a    # of an existing cluster: what is in these namespaces
    kumulus snapshot list -s dev

A restore removes what was created since. In a cluster of the runtime kwok, what is gone comes back with its UID, so the
stack still owns its nodes; of others, what users have in namespaces is saved and put back through the API, and nodes
stay as they are. With --of, for clusters of kwok, nodes and all else that a stack has made stay, too. Snapshots are in
.kumulus/snapshots, readable only by you: they contain the cluster's secrets. More: docs/your-cluster.md.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from kumulus.cli import project, stack, which
from kumulus.cli.errors import UserError
from kumulus.model.words import aligned

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from kumulus.extras.snapshots.restored import Restored
    from kumulus.kube import Client

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_PATIENCE = 15.0
T = TypeVar("T")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    commands = parser.add_subparsers(dest="action", metavar="save|restore|list", required=True)
    save = commands.add_parser("save", help="save every object of the cluster")
    save.add_argument("name", nargs="?", help="what to call it (default: the time); one of that name is replaced")
    save.add_argument(
        "-n",
        "--namespace",
        action="append",
        metavar="NAME",
        help="which namespaces, of a cluster that is not kwok's (default: all, of one that the stack has made)",
    )
    restore = commands.add_parser("restore", help="restore every object")
    restore.add_argument("name", nargs="?", help="which one (default: the newest)")
    restore.add_argument(
        "--of",
        metavar="STACK",
        help="whose snapshot it is, where it is another stack's, or of a cluster that was made again",
    )
    listed = commands.add_parser("list", help="list the snapshots")
    for each in (save, restore, listed):
        stack.add_option(each)
        which.add_option(each)


def run(args: argparse.Namespace) -> int:
    """Save, restore or list.

    Raises:
        UserError: the cluster is not up, or the snapshot cannot be used.
    """
    from kumulus.extras.snapshots.file import Damaged
    from kumulus.nodes.errors import ProviderError

    try:
        return _ACTIONS[args.action](args)
    except (ProviderError, Damaged) as error:
        raise UserError(str(error)) from None
    except OSError as error:
        raise UserError(f"{error.filename or 'the snapshot'}: {error.strerror or error}") from None


def _save(args: argparse.Namespace) -> int:
    from kumulus.runtimes import snapshots

    name = args.name or datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    if not _NAME.fullmatch(name):
        raise UserError(f"{name!r} is no name for a snapshot\n  Write letters, digits, '-', '_' and '.'")
    found = which.chosen(project.chosen(args.stack), args.cluster)
    kubeconfig, file = found.require_up(), _file(found, name)
    began = time.monotonic()
    made = _with_client(
        kubeconfig, lambda client: snapshots.save(client, kubeconfig, found.label, file, args.namespace or ())
    )
    print(
        f"saved {name}: {made.nodes:,} nodes, {made.pods:,} pods, {made.keys:,} objects in all, "
        f"{file.stat().st_size / 2**20:.1f} MiB, in {time.monotonic() - began:.1f} s"
    )
    _say_forbidden(made.forbidden)
    return 0


def _restore(args: argparse.Namespace) -> int:
    from kumulus.runtimes import snapshots

    found = which.chosen(project.chosen(args.stack), args.cluster)
    source = which.chosen(project.chosen(args.of), args.cluster) if args.of else found
    kubeconfig = found.require_up()
    there = _there(source)
    if not there:
        raise UserError(f"{source.label} has no snapshot\n  To make one: kumulus snapshot save {source.options}")
    name = args.name or there[-1].stem
    file = _file(source, name)
    if file not in there:
        raise UserError(f"{source.label} has no snapshot {name}; there are {', '.join(each.stem for each in there)}")
    began = time.monotonic()
    if args.of:
        done = _into(found, kubeconfig, file)
        name = f"{name} of {source.label} into {found.label}"
    else:
        done = _with_client(kubeconfig, lambda client: snapshots.restore(client, kubeconfig, file))
    print(
        f"restored {name} in {time.monotonic() - began:.1f} s: {done.written:,} objects put back, "
        f"{done.removed:,} removed, {done.same:,} as they were"
    )
    if done.left:
        print(f"  left as they are, with a Helm release in them or a stack's own: {', '.join(done.left)}")
    _say_forbidden(done.forbidden)
    if done.remade:
        print(f"  their controllers recreate what these own, under other names: {', '.join(done.remade)}")
    return 0


def _say_forbidden(kinds: Sequence[str]) -> None:
    if kinds:
        print(f"  left out: the right to list them is missing: {', '.join(kinds)}")


def _into(found: which.Which, kubeconfig: Path, file: Path) -> Restored:
    """Put what users had in another stack's cluster into this one."""
    from kumulus.extras.snapshots.file import about
    from kumulus.runtimes.kwok import snapshot
    from kumulus.runtimes.snapshots import of_kwok

    layout = of_kwok(kubeconfig)
    if layout is None or about(file).form != "etcd":
        raise UserError("--of needs two clusters of the runtime kwok: only snapshots of those are complete")
    return snapshot.restore_into(layout, file)


def _with_client(kubeconfig: Path, action: Callable[[Client], Awaitable[T]]) -> T:
    """Run an action with a client of a cluster.

    Raises:
        UserError: the cluster does not answer, or refuses a request; names the missing right.
    """
    from kumulus.kube import ApiError, Client, KubeconfigError, Unreachable, load_kubeconfig

    async def done() -> T:
        async with Client(load_kubeconfig(kubeconfig), patience=_PATIENCE) as client:
            return await action(client)

    try:
        return asyncio.run(done())
    except (ApiError, KubeconfigError, Unreachable) as error:
        raise UserError(str(error)) from None


def _list(args: argparse.Namespace) -> int:
    from kumulus.extras.snapshots.file import Damaged, about

    found = which.chosen(project.chosen(args.stack), args.cluster)
    rows = [("NAME", "TAKEN", "NODES", "PODS", "MIB")]
    for file in _there(found):
        size = f"{file.stat().st_size / 2**20:.1f}"
        try:
            contents = about(file)
            rows.append((file.stem, contents.taken, f"{contents.nodes:,}", f"{contents.pods:,}", size))
        except Damaged:
            rows.append((file.stem, "damaged", "", "", size))
    if len(rows) == 1:
        print(f"{found.label} has no snapshot")
        return 0
    print(aligned(rows))
    return 0


_ACTIONS = {"save": _save, "restore": _restore, "list": _list}


def _file(found: which.Which, name: str) -> Path:
    from kumulus.extras.snapshots.file import SUFFIX

    return found.snapshots / f"{name}{SUFFIX}"


def _there(found: which.Which) -> list[Path]:
    """The snapshots of a cluster, the oldest first."""
    from kumulus.extras.snapshots.file import SUFFIX

    return sorted(found.snapshots.glob(f"*{SUFFIX}"), key=lambda file: (file.stat().st_mtime, file.name))
