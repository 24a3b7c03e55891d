"""Save everything in a stack's cluster, and restore it: nodes, pods, faults, everything in it.

    kumulus snapshot save full -s dev       # every object of the cluster, as of one moment
    kumulus snapshot restore full -s dev    # all of them as they were, under the running control plane
    kumulus snapshot restore full -s test --of dev    # what users had in dev's cluster, put into test's
    kumulus snapshot list -s dev

For clusters of the runtime kwok. A restore removes what was created since; what is gone comes back with its UID, so
the stack still owns its nodes. With --of, nodes and all else that a stack has made stay as they are. Snapshots are in
.kumulus/snapshots, readable only by you: they contain the cluster's secrets. More: docs/your-cluster.md.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from kumulus.cli import project, stack, which
from kumulus.cli.errors import UserError

if TYPE_CHECKING:
    from kumulus.runtimes.kwok.layout import Layout

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_PATIENCE = 5.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    commands = parser.add_subparsers(dest="action", metavar="save|restore|list", required=True)
    save = commands.add_parser("save", help="save every object of the cluster")
    save.add_argument("name", nargs="?", help="what to call it (default: the time); one of that name is replaced")
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
        UserError: the cluster is not up or none of kwok's, or the snapshot cannot be used.
    """
    from kumulus.cluster.errors import ProviderError
    from kumulus.cluster.snapshots.file import Damaged

    try:
        return _ACTIONS[args.action](args)
    except (ProviderError, Damaged) as error:
        raise UserError(str(error)) from None
    except OSError as error:
        raise UserError(f"{error.filename or 'the snapshot'}: {error.strerror or error}") from None


def _save(args: argparse.Namespace) -> int:
    from kumulus.runtimes.kwok import snapshot

    name = args.name or datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    if not _NAME.fullmatch(name):
        raise UserError(f"{name!r} is no name for a snapshot\n  Write letters, digits, '-', '_' and '.'")
    found = which.chosen(project.chosen(args.stack), args.cluster)
    layout = _layout(found)
    began, file = time.monotonic(), _file(found, name)
    made = snapshot.save(layout, found.label, asyncio.run(_identity(layout)), file)
    print(
        f"saved {name}: {made.nodes:,} nodes, {made.pods:,} pods, {made.keys:,} objects in all, "
        f"{file.stat().st_size / 2**20:.1f} MiB, in {time.monotonic() - began:.1f} s"
    )
    return 0


def _restore(args: argparse.Namespace) -> int:
    from kumulus.runtimes.kwok import snapshot

    found = which.chosen(project.chosen(args.stack), args.cluster)
    source = which.chosen(project.chosen(args.of), args.cluster) if args.of else found
    layout = _layout(found)
    there = _there(source)
    if not there:
        raise UserError(f"{source.label} has no snapshot\n  To make one: kumulus snapshot save {source.options}")
    name = args.name or there[-1].stem
    file = _file(source, name)
    if file not in there:
        raise UserError(f"{source.label} has no snapshot {name}; there are {', '.join(each.stem for each in there)}")
    began = time.monotonic()
    if args.of:
        done = snapshot.restore_into(layout, file)
        name = f"{name} of {source.label} into {found.label}"
    else:
        done = snapshot.restore(layout, asyncio.run(_identity(layout)), file)
    print(
        f"restored {name} in {time.monotonic() - began:.1f} s: {done.written:,} objects put back, "
        f"{done.removed:,} removed, {done.same:,} as they were"
    )
    if done.left:
        print(f"  left as they are, with a Helm release in them or a stack's own: {', '.join(done.left)}")
    return 0


def _list(args: argparse.Namespace) -> int:
    from kumulus.cluster.snapshots.file import Damaged, about

    found = which.chosen(project.chosen(args.stack), args.cluster)
    rows = [("NAME", "TAKEN", "NODES", "PODS", "MIB")]
    for file in _there(found):
        size = f"{file.stat().st_size / 2**20:.1f}"
        try:
            said = about(file)
            rows.append((file.stem, said.taken, f"{said.nodes:,}", f"{said.pods:,}", size))
        except Damaged:
            rows.append((file.stem, "damaged", "", "", size))
    if len(rows) == 1:
        print(f"{found.label} has no snapshot")
        return 0
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    return 0


_ACTIONS = {"save": _save, "restore": _restore, "list": _list}


def _layout(found: which.Which) -> Layout:
    """The files of a cluster that is up and one of kwok's."""
    from kumulus.runtimes.kwok.layout import Layout

    layout = Layout(found.require_up().parent)
    if not layout.ports():
        raise UserError(f"{found.label} is no cluster of the runtime kwok: only of those is all of it at hand")
    return layout


async def _identity(layout: Layout) -> str:
    from kumulus.kube import ApiError, Client, KubeconfigError, Unreachable, load_kubeconfig

    try:
        async with Client(load_kubeconfig(layout.kubeconfig), patience=_PATIENCE) as client:
            return str((await client.get("/api/v1/namespaces/kube-system"))["metadata"]["uid"])
    except (ApiError, KubeconfigError, Unreachable) as error:
        raise UserError(str(error)) from None


def _folder(found: which.Which) -> Path:
    return project.home() / "snapshots" / (f"{found.stack}-{found.cluster}" if found.cluster else found.stack)


def _file(found: which.Which, name: str) -> Path:
    from kumulus.cluster.snapshots.file import SUFFIX

    return _folder(found) / f"{name}{SUFFIX}"


def _there(found: which.Which) -> list[Path]:
    """The snapshots of a cluster, the oldest first."""
    from kumulus.cluster.snapshots.file import SUFFIX

    return sorted(_folder(found).glob(f"*{SUFFIX}"), key=lambda file: (file.stat().st_mtime, file.name))
