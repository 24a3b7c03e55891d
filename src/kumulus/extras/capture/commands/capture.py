"""Save what your own cluster's scheduler sees as files, from which you can create a clone on this machine.

    kumulus capture --context prod --to capture/                 # reads only: pages of lists, 20 requests a second
    kumulus capture --context prod --to shared.tar.gz            # to send: words for names; their table stays here
    kumulus capture --from nodes.yaml --from pods.yaml --to capture/
    kumulus capture --from snapshot.db --to capture/             # of `etcdctl snapshot save`
    kumulus capture --rbac | kubectl apply -f -                  # only the permissions that it needs

Writes stack.yaml (the nodes), workload.yaml (pods, and what they refer to) and left-out.md, into a directory or, to be
sent, into an archive. A capture that was cut off continues when you run it again. `kumulus clone capture/ -s mine`
brings it up. More: docs/your-cluster.md.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kumulus.cli import which
from kumulus.cli.errors import UserError, refuse_others, taken
from kumulus.model.words import counted

if TYPE_CHECKING:
    from kumulus.extras.capture.spool import Spool
    from kumulus.extras.capture.writing import WrittenCapture
    from kumulus.kube import Connection

RATE = 20.0
"""Requests a second, unless --rate says otherwise."""
_PATIENCE = 30.0
_TABLE = "translation.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--context", help="which context of the kubeconfig (default: its current one)")
    parser.add_argument("--kubeconfig", metavar="FILE", help="default: KUBECONFIG, or ~/.kube/config")
    parser.add_argument("-s", "--stack", help="a stack on this machine, instead of a context")
    which.add_option(parser)
    parser.add_argument(
        "--from",
        dest="files",
        metavar="FILE",
        action="append",
        type=Path,
        help=(
            "read files instead: kubectl get -o yaml or json, kwokctl snapshot export, etcdctl snapshot save, "
            "a must-gather directory"
        ),
    )
    parser.add_argument("--to", metavar="PLACE", type=Path, help="a directory, or an archive: NAME.tar.gz")
    parser.add_argument("--rate", type=float, default=RATE, help=f"the most requests a second (default: {RATE:g})")
    parser.add_argument(
        "--anonymise",
        action=argparse.BooleanOptionalAction,
        help="whether to replace every name by a word (default: yes in an archive, no in a directory)",
    )
    parser.add_argument(
        "--table",
        metavar="FILE",
        type=Path,
        help=f"the words' table, kept for the next capture (default: PLACE-{_TABLE}, next to it, mode 0600)",
    )
    parser.add_argument("--json", action="store_true", help="print what was captured, for programs")
    parser.add_argument("--restart", action="store_true", help="discard what an interrupted capture has read")
    parser.add_argument("--rbac", action="store_true", help="print the ClusterRole that it needs, and exit")


def run(args: argparse.Namespace) -> int:
    """Capture."""
    from kumulus.extras.capture import archive, writing
    from kumulus.extras.capture.dumps import FileRefused
    from kumulus.extras.capture.kinds import cluster_role
    from kumulus.extras.capture.words import Words, WrongTable

    if args.rbac:
        print(cluster_role(), end="")
        return 0
    if args.to is None:
        raise UserError("where to? Write --to DIRECTORY, or --to NAME.tar.gz to send it")
    if not 0 < args.rate < math.inf:
        raise UserError(f"--rate {args.rate:g} is no number of requests a second")
    packed = archive.is_meant(args.to)
    if packed and args.to.is_dir():
        raise UserError(f"{args.to} is a directory, and by its name the place of an archive\n  Write another --to")
    if args.anonymise is None:
        args.anonymise = packed
    folder = archive.next_to(args.to) if packed else args.to
    try:
        refuse_others(writing.first_lines(folder), "a capture")
        if packed and archive.is_others(args.to):
            raise taken(args.to, "a capture")
        table = _table(args)
        words = (Words.read(table) if table.exists() else Words()) if args.anonymise else None
        spool = _read_files(args, folder) if args.files else _read_cluster(args, folder)
        written = writing.write(spool, folder, words)
        if words is not None:
            words.save(table)
        if packed:
            archive.pack(folder, args.to, private=words is None)
        # Only now: until the last file is written, the same command continues from what has been read.
        spool.remove()
        if packed:
            archive.remove(folder)
    except OSError as error:
        again = "" if args.files else "\n  What has been read is kept: the same command continues from there"
        raise UserError(f"{error.filename or args.to}: {error.strerror or error}{again}") from None
    except (FileRefused, WrongTable) as error:
        raise UserError(str(error)) from None
    _tell(args, written, table)
    return 0


def _tell(args: argparse.Namespace, written: WrittenCapture, table: Path) -> None:
    counts = written.counts
    if args.json:
        about = {"to": str(args.to), "groups": written.groups, "shapes": written.shapes, "objects": dict(counts)}
        words = {"table": str(table)} if args.anonymise else {}
        print(json.dumps({**about, "leftOut": written.missing, **words}, indent=2))
        return
    print(
        f"captured {counted(counts['Node'], 'node')} in {counted(written.groups, 'group')} and "
        f"{counted(counts['Pod'], 'pod')} of {counted(written.shapes, 'shape')} into {args.to}"
    )
    for kind, why in sorted(written.missing.items()):
        print(f"  left out: {kind}: {why}")
    if args.anonymise:
        print(f"  every name is a word; what each stands for is in {table}: keep it to yourself")
    else:
        print("  names are unchanged: to pass it on, capture into an archive (--to NAME.tar.gz), which replaces them")


def _table(args: argparse.Namespace) -> Path:
    from kumulus.extras.capture import archive

    to: Path = args.to.absolute()
    return Path(args.table) if args.table else to.parent / f"{archive.stem(to)}-{_TABLE}"


def _spool(args: argparse.Namespace, folder: Path, source: str) -> Spool:
    from kumulus.extras.capture.spool import AnotherSource, Spool

    folder.mkdir(parents=True, exist_ok=True)
    try:
        spool = Spool(folder, source)
        # Files are read again whole.
        if args.restart or args.files:
            spool.remove()
            spool = Spool(folder, source)
    except AnotherSource as error:
        raise UserError(
            f"{args.to} has the beginning of a capture of {error}\n  To forget it: delete {folder}/.unfinished"
        ) from None
    return spool


def _read_files(args: argparse.Namespace, folder: Path) -> Spool:
    from kumulus.extras.capture import dumps
    from kumulus.extras.capture.kinds import kind_of
    from kumulus.extras.capture.reading import captured

    files = dumps.files(args.files)
    spool = _spool(args, folder, "files")
    seen: set[tuple[str, str, str]] = set()
    for file in files:
        pages: dict[str, list[dict[str, object]]] = {}
        for raw in _objects(file):
            version = str(raw.get("apiVersion") or "v1")
            kind, metadata = kind_of(str(raw.get("kind")), version), raw.get("metadata")
            if kind is None or not isinstance(metadata, dict):
                continue
            place = kind.kept_as, str(metadata.get("namespace") or ""), str(metadata.get("name"))
            try:
                kept = captured(kind.name, raw, kind.api_version(version.rpartition("/")[2]))
            except dumps.FileRefused as error:
                raise dumps.FileRefused(f"{file}: {error}") from None
            if kept and place not in seen:
                seen.add(place)
                pages.setdefault(kind.kept_as, []).append(kept)
                if len(pages[kind.kept_as]) >= 1000:
                    spool.add(kind.kept_as, pages.pop(kind.kept_as), "more")
        for name, items in pages.items():
            spool.add(name, items, "more")
    show("")
    if not seen:
        raise UserError(f"no node or pod in {', '.join(map(str, args.files))}")
    return spool


def _objects(file: Path) -> Iterator[dict[str, Any]]:
    """The objects in a file, whichever format it has."""
    from kumulus.extras.capture import dumps, snapshot
    from kumulus.extras.capture.bolt import is_bolt

    if not is_bolt(file):
        return dumps.objects(file)
    return snapshot.objects(file, lambda what, count: show(f"{file.name}: {count:,} {what}"))


def show(text: str) -> None:
    """Show progress on a terminal, in one line; an empty text clears the line."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def _read_cluster(args: argparse.Namespace, folder: Path) -> Spool:
    from kumulus.extras.capture.live import Expired, read_cluster
    from kumulus.kube import ApiError, KubeconfigError, Unreachable

    again = "\n  What has been read is kept: the same command continues from there"
    try:
        found = _connection(args)
        spool = _spool(args, folder, found.server)
        if spool.resumed:
            print("continuing an interrupted capture", file=sys.stderr)
        asyncio.run(read_cluster(found, spool, args.rate, _PATIENCE, lambda kind, count: show(f"{count:,} {kind}")))
        show("")
    except KubeconfigError as error:
        raise UserError(str(error)) from None
    except Expired as error:
        raise UserError(f"the cluster does not take these credentials: {error}{again}") from None
    except (ApiError, Unreachable) as error:
        raise UserError(f"{error}{again}") from None
    return spool


def _connection(args: argparse.Namespace) -> Connection:
    from kumulus.kube import load_kubeconfig

    if args.stack:
        return load_kubeconfig(which.chosen(args.stack, args.cluster).require_up())
    return connection(args.kubeconfig, args.context)


def connection(kubeconfig: str | None, context: str | None) -> Connection:
    """The connection to the cluster that kubectl would use.

    Raises:
        KubeconfigError: there is no such file or context.
    """
    from kumulus.kube import load_kubeconfig

    first = os.environ.get("KUBECONFIG", "").split(os.pathsep)[0]
    return load_kubeconfig(kubeconfig or first or Path.home() / ".kube" / "config", context)
