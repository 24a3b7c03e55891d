"""What `kumulus fault` does in a live cluster."""

import argparse
import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path

from kumulus.cli import project
from kumulus.cli.errors import UserError
from kumulus.cli.fault import described_options
from kumulus.cli.which import StackCluster
from kumulus.host import installation
from kumulus.kube import ApiError, Client, Unreachable, load_kubeconfig
from kumulus.model.checks import problem
from kumulus.model.durations import duration_problems, seconds, timestamp
from kumulus.model.errors import SpecError
from kumulus.model.fault_consequences import reclaimed
from kumulus.model.identity import Owner
from kumulus.model.node_sets import size
from kumulus.model.words import aligned, counted
from kumulus.nodes import runs
from kumulus.nodes.faults import operations, records, stages
from kumulus.nodes.faults.nodes import FaultsApplied
from kumulus.nodes.faults.records import Record
from kumulus.nodes.ownership import NotOurs
from kumulus.runtimes.existing.source import outlives_by_note
from kumulus.runtimes.place import cluster_owner
from kumulus.stackfile.fault_now import NoPools, resolved
from kumulus.stackfile.fault_targets import ResolvedFault
from kumulus.stackfile.faults import fault_from

# The directory that this package is in.
_PACKAGES = Path(__file__).resolve().parents[2]
_FOR_EVER = 10 * 365 * 86_400.0


async def inject(found: StackCluster, args: argparse.Namespace) -> int:
    """Inject a fault; see the command's help."""
    lasts, kubeconfig = _lasts(args.lasts), found.kubeconfig
    async with _client(kubeconfig) as client:
        known, mine = await _known(client), cluster_owner(kubeconfig)
        fault = _resolved(args, known.of(mine))
        there = known.faults.get(fault.name)
        if there is not None and there.over(timestamp()):
            # It ends before this one begins.
            there = None
        # Another stack's is refused when this one begins.
        if there is not None and there.declared and there.is_of(mine):
            raise UserError(f"{fault.name} is declared in the stack file; choose another name")
        # Rounded up, because records have whole seconds.
        until = timestamp(datetime.now(UTC) + timedelta(seconds=lasts + 0.999)) if lasts else ""
        record = Record(
            fault.name, fault.kind, fault.nodes, fault.node, fault.pods, until=until, owner=mine, offers=fault.offers
        )
        clearing = f"{installation.command()} fault clear {fault.name} {found.options}"
        ending = _ended_with_block(client, record, clearing) if args.wait else nullcontext()
        try:
            async with ending:
                began, applied = await operations.begin(client, record)
                if lasts and not args.wait:
                    # Before anything is refused: what is recorded has to end at its time, even if a node failed.
                    _start_keeper(kubeconfig, fault.name, until)
                if there is not None:
                    print(f"{found.label}: {fault.name} was active already ({in_words(there)}): this replaces it")
                print(f"{found.label}: {fault.described()}{reclaimed(began.machines)}")
                _require_applied(applied)
                if args.wait:
                    print("Ctrl-C ends it", flush=True)
                    await asyncio.sleep(lasts or _FOR_EVER)
                    return 0
        except (operations.FaultRefused, stages.NoStages) as error:
            raise UserError(str(error)) from None
    if lasts:
        print(f"ends by itself at {until}; or: {clearing}")
    else:
        print(f"active; to end it: {clearing}")
    return 0


async def clear(found: StackCluster, args: argparse.Namespace) -> int:
    """End a fault, or all that no stack file declares."""
    both, neither = args.name and args.all, not args.name and not args.all
    if both or neither:
        raise UserError("name the fault to clear, or write --all, but not both")
    kubeconfig = found.kubeconfig
    async with _client(kubeconfig) as client:
        known, mine = await _known(client), cluster_owner(kubeconfig)
        due = await operations.settle(client, known, mine)
        if due:
            known = await records.read(client)
        over = [name for name in due if name not in known.faults]
        names = [*over, *_clearable(known, mine, kubeconfig)] if args.all else [args.name]
        for name in names:
            if name in over:
                print(f"{found.label}: {name} is over: its end was due")
                continue
            there = known.faults.get(name)
            if there is None:
                if records.map_of(name) in known.damaged:
                    raise UserError(f"the record of {name} is damaged, so what it did is not known; remove it")
                others = ", ".join(sorted(known.of(mine).faults)) or "none"
                raise UserError(f"no fault {name} is active; active are: {others}")
            if there.declared and there.is_of(mine):
                raise UserError(f"{name} is declared in the stack file: remove it there, and `pulumi up`")
            try:
                _, applied = await operations.end(client, name, owner=mine)
            except NotOurs as error:
                raise UserError(f"{error}; it is left alone: clear it where it was injected") from None
            _require_applied(applied)
            print(f"{found.label}: {name} is over; nodes restored: {applied.changed + applied.created}")
        left = sorted(name for name, each in known.faults.items() if not each.declared and name not in names)
        if args.all and left:
            print(f"{found.label}: left alone, as they are not this stack's: {', '.join(left)}")
    return 0


def _clearable(known: records.ClusterRecords, mine: Owner, kubeconfig: Path) -> list[str]:
    """The stack's undeclared faults; in a cluster of its own, also those that record no owner."""
    unowned_too = not mine.identity or not outlives_by_note(kubeconfig)
    ours = [each for each in known.of(mine).faults.values() if not each.declared]
    return sorted(each.name for each in ours if each.owner.identity or unowned_too)


async def show(found: StackCluster, args: argparse.Namespace) -> int:
    """List the active faults, after ending those whose time is up."""
    kubeconfig = found.kubeconfig
    async with _client(kubeconfig) as client:
        known, mine = await _known(client), cluster_owner(kubeconfig)
        if await operations.settle(client, known, mine):
            known = await records.read(client)
    there = sorted(known.faults.values(), key=lambda each: each.name)
    if args.json:
        print(json.dumps([each.to_plain() for each in there], indent=2))
        return 0
    rows = [("NAME", "KIND", "NODES", "SINCE", "UNTIL", "FROM")]
    rows += [
        (
            each.name,
            each.kind or "-",
            _extent(each),
            each.since,
            each.until or "-",
            ("stack" if each.declared else "command") if each.is_of(mine) else "another stack",
        )
        for each in there
    ]
    number = {0: "no active fault", 1: "one active fault"}.get(len(there), f"{len(there):,} active faults")
    print(f"{found.label}: {number}")
    if there:
        print(aligned(rows))
    return 0


def _extent(fault: Record) -> str:
    """How many nodes a fault is on; all for one of pods anywhere, none for one of offerings."""
    if fault.nodes:
        return f"{size(fault.nodes):,}"
    return "-" if fault.offers else "all"


async def active(kubeconfig: Path) -> list[str]:
    """The names of the active faults."""
    async with Client(load_kubeconfig(kubeconfig), patience=1) as client:
        return sorted((await records.read(client)).faults)


@asynccontextmanager
async def _client(kubeconfig: Path) -> AsyncIterator[Client]:
    """A client of the cluster, after reverting what killed experiment runs left in it."""
    async with Client(load_kubeconfig(kubeconfig), patience=10) as client:
        for line in await runs.put_back(client):
            print(line, file=sys.stderr)
        yield client


async def _known(client: Client) -> records.ClusterRecords:
    """What is recorded; says of each record that cannot be read how to go on."""
    known = await records.read(client)
    for name in known.damaged:
        print(f"note: {records.damage(name)}", file=sys.stderr)
    return known


def _resolved(args: argparse.Namespace, known: records.ClusterRecords) -> ResolvedFault:
    """The fault on a command line, resolved against the pools that the cluster has on record."""
    source = "the command line"
    try:
        return resolved(fault_from(described_options(args), source), known.pools, source, args.stack)
    except (SpecError, NoPools) as error:
        raise UserError(str(error)) from None


def in_words(fault: Record) -> str:
    """A description of a fault that is being replaced: `gpu-fell-off-bus on 3 nodes, since 10:03:00Z`."""
    where = f" on {counted(size(fault.nodes), 'node')}" if fault.nodes else ""
    return f"{fault.kind or 'of no kind'}{where}, since {fault.since}"


def _lasts(text: str | None) -> float:
    """The seconds of `--for`; 0 without it."""
    if text is None:
        return 0.0
    if wrong := duration_problems(("--for",), text):
        raise UserError(str(problem((), f"--for {wrong[0].message}", wrong[0].remedy)))
    if not (length := seconds(text)):
        raise UserError("--for is 0; write a duration such as 5m")
    return length


def _start_keeper(kubeconfig: Path, name: str, until: str) -> None:
    """Start a process, which outlives this one, to end the fault when its time is up."""
    subprocess.Popen(
        # -P keeps the working directory off the import path.
        [sys.executable, "-P", "-m", "kumulus.nodes.faults.keeper", str(kubeconfig.resolve()), name, until],
        cwd=project.current().root,
        env={**os.environ, "PYTHONPATH": str(_PACKAGES)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


@asynccontextmanager
async def _ended_with_block(client: Client, record: Record, clearing: str) -> AsyncIterator[None]:
    """End a fault with the block in which it begins, whatever ends that: Ctrl-C may also interrupt its beginning."""
    try:
        yield
    except (operations.FaultRefused, stages.NoStages, ApiError, Unreachable):
        # It was not recorded.
        raise
    except BaseException:
        await asyncio.shield(_end(client, record, clearing))
        raise
    await _end(client, record, clearing)


async def _end(client: Client, record: Record, clearing: str) -> None:
    there = (await records.read(client)).faults.get(record.name)
    # If the beginning was interrupted early, the fault that this one would have replaced is still there.
    if there is None or _compared(there) != _compared(record):
        return
    _, applied = await operations.end(client, record.name, owner=record.owner)
    if left := applied.left():
        raise UserError(f"{record.name} is not over: {left}\n  {clearing}")
    print(f"{record.name} is over; nodes restored: {applied.changed + applied.created}")


def _compared(record: Record) -> tuple[object, ...]:
    """What tells a fault from another of its name; `since` is not known before it begins."""
    owner = record.owner.identity
    return owner, record.kind, record.until, record.nodes, record.node, record.pods, record.offers


def _require_applied(applied: FaultsApplied) -> None:
    """Refuse to go on if something is left to do on some nodes."""
    if left := applied.left():
        raise UserError(f"{left}\n  Run the same command again")
