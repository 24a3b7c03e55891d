"""Save everything in a stack's cluster, and restore it: nodes, pods, faults, everything in it.

    kumulus snapshot save full -s dev       # every object of the cluster, as of one moment
    kumulus snapshot restore full -s dev    # all of them as they were, under the running control plane
    kumulus snapshot restore full -s test --of dev    # what users had in dev's cluster, put into test's
    kumulus snapshot save full -s shared -n team-a    # of an existing cluster: what is in these namespaces
    kumulus snapshot list -s dev

A restore brings back what is gone, and removes what was created since. An interrupted one is finished by the next
command.

  runtime kwok      everything comes back with its UID, so the stack still owns its nodes; with --of, nodes and
                    whatever else a stack has made stay as they are
  other runtimes    what users have in namespaces; nodes and volume claims stay as they are
  an existing one   likewise, and you are asked before anything is deleted

Snapshots are in .kumulus/snapshots, readable only by you: they contain the cluster's secrets.
More: docs/your-cluster.md.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from kumulus.cli import cluster, project, stack, which
from kumulus.cli.errors import UserError
from kumulus.model.words import aligned

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from kumulus.extras.snapshots.file import SnapshotSummary
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
    restore.add_argument(
        "--yes", action="store_true", help="do not ask, on an existing cluster, before anything is deleted there"
    )
    listed = commands.add_parser("list", help="list the snapshots")
    listed.add_argument("--json", action="store_true", help="for programs")
    for each in (save, restore, listed):
        stack.add_option(each)
        which.add_option(each)


def run(args: argparse.Namespace) -> int:
    """Save, restore or list."""
    from kumulus.extras.journal.errors import JournalError
    from kumulus.extras.snapshots.file import DamagedSnapshot
    from kumulus.nodes.errors import ProviderError

    try:
        return _ACTIONS[args.action](args)
    except (ProviderError, DamagedSnapshot, JournalError) as error:
        raise UserError(str(error)) from None
    except OSError as error:
        raise UserError(f"{error.filename or 'the snapshot'}: {error.strerror or error}") from None


def _save(args: argparse.Namespace) -> int:
    from kumulus.extras.snapshots import clusters as snapshots

    name = args.name or datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    if not _NAME.fullmatch(name):
        raise UserError(f"{name!r} is no name for a snapshot\n  Write letters, digits, '-', '_' and '.'")
    found = which.chosen(project.chosen(args.stack), args.cluster)
    kubeconfig, file = found.require_up(), file_of(found, name)
    began = time.monotonic()

    async def made_by(client: Client) -> SnapshotSummary:
        # What a restore has left half done is no state to go back to.
        await put_back(client)
        return await snapshots.save(client, kubeconfig, found.label, file, args.namespace or ())

    made = with_client(found, made_by)
    print(
        f"saved {name}: {made.nodes:,} nodes, {made.pods:,} pods, {made.keys:,} objects in all, "
        f"{file.stat().st_size / 2**20:.1f} MiB, in {time.monotonic() - began:.1f} s"
    )
    if made.forbidden:
        print(f"  left out: the right to list them is missing: {', '.join(made.forbidden)}")
    return 0


def _restore(args: argparse.Namespace) -> int:
    from kumulus.extras.snapshots.commands import restore

    return restore.restore(args)


async def put_back(client: Client) -> None:
    """Restore what runs that are gone have left, and finish their restores."""
    from kumulus.extras.journal import recover

    for line in await recover.recover(client):
        say(line)


def say(line: str) -> None:
    """Print a line about what goes on."""
    print(line, file=sys.stderr, flush=True)


def with_client(found: which.StackCluster, action: Callable[[Client], Awaitable[T]]) -> T:
    """Run an action with a client of a cluster that is up."""
    from kumulus.kube import ApiError, Client, KubeconfigError, Unreachable, load_kubeconfig

    async def done() -> T:
        async with Client(load_kubeconfig(found.require_up()), patience=_PATIENCE) as client:
            return await action(client)

    try:
        return asyncio.run(done())
    except (ApiError, KubeconfigError, Unreachable) as error:
        raise cluster.not_answering(found.stack, error) from None


def _list(args: argparse.Namespace) -> int:
    found = which.chosen(project.chosen(args.stack), args.cluster)
    files = there(found)
    if not files and not found.kubeconfig.exists():
        project.require_stack(found.stack)
    plain = [_plain(file) for file in files]
    if args.json:
        print(json.dumps(plain, indent=2))
        return 0
    rows = [("NAME", "TAKEN", "NODES", "PODS", "MIB")]
    for file, one in zip(files, plain, strict=True):
        size = f"{file.stat().st_size / 2**20:.1f}"
        is_damaged = "damaged" in one
        contents = ("damaged", "", "") if is_damaged else (one["taken"], f"{one['nodes']:,}", f"{one['pods']:,}")
        rows.append((file.stem, *contents, size))
    print(aligned(rows) if files else f"{found.label} has no snapshot")
    return 0


def _plain(file: Path) -> dict[str, Any]:
    from kumulus.extras.snapshots.file import DamagedSnapshot, about

    found: dict[str, Any] = {"name": file.stem, "bytes": file.stat().st_size}
    try:
        contents = about(file)
    except DamagedSnapshot:
        return {**found, "damaged": True}
    return {**found, "taken": contents.taken, "nodes": contents.nodes, "pods": contents.pods, "objects": contents.keys}


_ACTIONS = {"save": _save, "restore": _restore, "list": _list}


def file_of(found: which.StackCluster, name: str) -> Path:
    """Where a snapshot of a cluster is."""
    from kumulus.extras.snapshots.file import SUFFIX

    return found.snapshots / f"{name}{SUFFIX}"


def there(found: which.StackCluster) -> list[Path]:
    """The snapshots of a cluster, the oldest first."""
    from kumulus.extras.snapshots.file import SUFFIX

    return sorted(found.snapshots.glob(f"*{SUFFIX}"), key=lambda file: (file.stat().st_mtime, file.name))
