"""`kumulus snapshot restore`: in a cluster that others use, too, what it would delete is shown and asked about."""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from kumulus.cli import project, which
from kumulus.cli.errors import UserError
from kumulus.extras.snapshots.commands import snapshot
from kumulus.host import installation, interrupts
from kumulus.model.words import aligned, listed

if TYPE_CHECKING:
    from kumulus.extras.snapshots.planning import RestorePlan
    from kumulus.extras.snapshots.restored import Restored
    from kumulus.kube import Client

_SHOWN = 3


def restore(args: argparse.Namespace) -> int:
    """Restore a snapshot; 1 if the user does not agree, 130 if it is cut off."""
    from kumulus.extras.snapshots.restored import CutOff
    from kumulus.runtimes.existing.source import outlives_by_note

    found = which.chosen(project.chosen(args.stack), args.cluster)
    source = which.chosen(project.chosen(args.of), args.cluster) if args.of else found
    kubeconfig = found.require_up()
    file = _file(source, args.name)
    only: Collection[str] | None = None
    if outlives_by_note(kubeconfig):
        plan = snapshot.with_client(found, lambda client: _plan(client, file))
        only = plan.touched
        if only and not args.yes and not _agreed(plan, f"{file.stem} into {found.label}"):
            print("nothing was changed")
            return 1
    began = time.monotonic()
    try:
        done = snapshot.with_client(found, lambda client: _restored(client, kubeconfig, file, only, args, found))
    except CutOff as error:
        print(f"error: {error}", file=sys.stderr)
        return interrupts.EXIT_CODE
    name = f"{file.stem} of {source.label} into {found.label}" if args.of else file.stem
    print(f"restored {name} in {time.monotonic() - began:.1f} s: {done.summary}")
    for reason, names in done.left.items():
        print(f"  left as they are, {reason}: {', '.join(names)}")
    if done.remade:
        print(f"  their controllers recreate what these own, under other names: {', '.join(done.remade)}")
    return 0


def _file(source: which.StackCluster, name: str | None) -> Path:
    """The snapshot of that name, or the newest."""
    there = snapshot.there(source)
    if not there:
        raise UserError(f"{source.label} has no snapshot\n  To make one: kumulus snapshot save {source.options}")
    file = snapshot.file_of(source, name) if name else there[-1]
    if file not in there:
        raise UserError(f"{source.label} has no snapshot {name}; there are {', '.join(each.stem for each in there)}")
    return file


async def _plan(client: Client, file: Path) -> RestorePlan:
    from kumulus.extras.snapshots import objects

    await snapshot.put_back(client)
    return await objects.plan(client, file)


def _agreed(plan: RestorePlan, what: str) -> bool:
    """Show what a restore would do, and ask whether to."""
    print(f"A restore of {what}, whose cluster is others', too:\n{aligned(_rows(plan))}")
    for reason, names in plan.left.items():
        print(f"left as they are, {reason}: {', '.join(names)}")
    if not sys.stdin.isatty():
        raise UserError("a restore would do this in a cluster that is others', too\n  If that is meant: --yes")
    try:
        return input("Do it? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False


def _rows(plan: RestorePlan) -> list[tuple[str, str, str, str]]:
    """What a restore does with how many objects of each kind, and the first of these."""
    from kumulus.extras.snapshots.planning import names

    rows = []
    for what, paths in (
        ("deleted", plan.removed),
        ("deleted, then created again", plan.replaced),
        ("changed back", plan.changed),
        ("created", plan.created),
    ):
        by_kind: dict[str, list[str]] = defaultdict(list)
        for path in paths:
            by_kind[(plan.wanted.get(path) or plan.present[path])["kind"]].append(path)
        rows += [
            (what, kind, f"{len(found):,}", listed(names(found), _SHOWN)) for kind, found in sorted(by_kind.items())
        ]
    return rows


async def _restored(
    client: Client,
    kubeconfig: Path,
    file: Path,
    only: Collection[str] | None,
    args: argparse.Namespace,
    found: which.StackCluster,
) -> Restored:
    """Restore a snapshot as a run of its own, while no other is under way."""
    from kumulus.extras.journal import recover, snapshots
    from kumulus.extras.snapshots.restored import CutOff
    from kumulus.kube import ApiError, Unreachable
    from kumulus.nodes.errors import ProviderError

    of = f" --of {args.of}" if args.of else ""
    remedy = (
        "The next command on this cluster finishes it, such as: "
        f"{installation.command()} snapshot restore {file.stem} {found.options}{of}"
    )
    stop = interrupts.stop_event(
        snapshot.say,
        "ending as soon as the cluster may be left as it is (Ctrl-C again: at once)",
        f"ended at once: the restore of {file.stem} is half done\n  {remedy}",
    )
    run = recover.run_id(datetime.now(UTC))
    journal, lines = await recover.begin(client, run, file.stem, command="snapshot restore")
    try:
        for line in lines:
            snapshot.say(line)
        return await snapshots.restore(client, journal, kubeconfig, file, stop, of_another=bool(args.of), only=only)
    except (ApiError, OSError, ProviderError, Unreachable) as error:
        if journal.changes.restoring is None:
            raise
        kind = CutOff if isinstance(error, CutOff) else UserError
        raise kind(f"{error}\n  {remedy}") from None
    finally:
        await recover.end(journal)
