"""Check whether a workload fits into a cluster: how many pods, where, what the limit is, and what would make all fit.

    kumulus fit training.yaml -s mine                 # into a clone: as many pods as the file says
    kumulus fit training.yaml -s mine --count 500
    kumulus fit training.yaml --on capture/           # on a clone of a capture, which stays up for the next question
    kumulus fit training.yaml --on capture/ --watch --context prod   # the clone follows prod; a line when it changes

The file has a Pod, Deployment, ReplicaSet, StatefulSet or Job. The scheduler of the clone decides: pods are created
and removed again, and none of them preempts. Your own cluster is never asked, only its clone. Of a stack of your own,
which `fit` refuses, write `kumulus capture -s dev --to dev-capture`, then --on dev-capture: it starts a second cluster
of the same size. The exit code is 0 if all fit, else 1. More: docs/your-cluster.md.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from kumulus.cli import project, stack, stack_file, which
from kumulus.cli.errors import UserError
from kumulus.extras.capture.commands import capture, catching_up, clone
from kumulus.host import installation, interrupts
from kumulus.model.words import counted

if TYPE_CHECKING:
    from kumulus.extras.capture.fit import FitAnswer
    from kumulus.extras.capture.probe import Probe
    from kumulus.kube import Connection

_LONGEST = 12


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("workload", metavar="WORKLOAD", type=Path, help="a manifest, as for kubectl")
    stack.add_option(parser)
    parser.add_argument("--on", metavar="DIRECTORY", type=Path, help="a capture: use its clone, created if necessary")
    parser.add_argument("--count", type=int, help="how many pods (default: as many as the file says)")
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.add_argument("--no-changes", action="store_true", help="do not look for what would make all fit")
    parser.add_argument(
        "--watch", action="store_true", help="keep the clone as its source is, with a line when the answer changes"
    )
    parser.add_argument("--context", help="with --watch: the source, a context of the kubeconfig")
    parser.add_argument("--kubeconfig", metavar="FILE", help="with --watch: default: KUBECONFIG, or ~/.kube/config")
    parser.add_argument(
        "--every", type=float, default=60.0, metavar="SECONDS", help="with --watch: how often to look (default: 60)"
    )


def run(args: argparse.Namespace) -> int:
    """Ask the scheduler, and print the answer."""
    from kumulus.extras.capture.dry import Undecided
    from kumulus.extras.capture.dumps import FileRefused
    from kumulus.extras.capture.mark import NotTheClone
    from kumulus.extras.journal.errors import JournalError
    from kumulus.kube import ApiError, KubeconfigError, Unreachable

    if args.count is not None and args.count < 1:
        raise UserError(f"--count {args.count} is no number of pods")
    if args.watch and args.on is None:
        raise UserError("--watch needs the capture that the clone is of\n  Write --on DIRECTORY")
    if not args.watch and (args.context or args.kubeconfig):
        raise UserError("--context and --kubeconfig name the source that --watch follows\n  Write --watch, or -s STACK")
    if args.watch and args.json:
        raise UserError("--watch prints a line for each change; leave --json out")
    if not 0 < args.every < math.inf:
        raise UserError(f"--every {args.every:g} is no number of seconds")
    try:
        wanted = _wanted(args)
        with interrupts.like_ctrl_c():
            found = _cluster(args)
            if args.watch:
                return watch(args, found, wanted)
            answer = ask(found, wanted, args.on, changes=not args.no_changes)
    except NotTheClone as error:
        raise _no_clone(args, str(error)) from None
    except (FileRefused, Undecided, ApiError, JournalError, KubeconfigError, Unreachable) as error:
        raise UserError(str(error)) from None
    text = json.dumps(plain(found.label, wanted, answer), indent=2) if args.json else ""
    print(text or "\n".join(lines(found.label, wanted, answer)))
    if args.on is not None and not args.json:
        end = f"`{installation.command()} down {found.stack}`"
        print(f"{found.stack} stays up for the next question; {end} takes it down")
    return 0 if answer.verdict.all_fit else 1


def lines(name: str, wanted: Probe, answer: FitAnswer) -> list[str]:
    """The answer as text for people."""
    verdict = answer.verdict
    found = [f"{wanted.name}: {verdict.fitted:,} of {wanted.count:,} pods fit into {name}"]
    found += [f"  {number:,} on {group}" for group, number in answer.groups.most_common(_LONGEST)]
    if verdict.all_fit:
        return found
    found.append(f"  limit: {verdict.reason or 'the scheduler does not say'}")
    taints = answer.untolerated.most_common(_LONGEST)
    found += [f"  not tolerated: {taint} of {counted(number, 'node')}" for taint, number in taints]
    found += [f"  to fit all: {change.what}" for change in answer.changes]
    found += [f"  tried: {each}" for each in answer.tried]
    return found


def plain(name: str, wanted: Probe, answer: FitAnswer) -> dict[str, object]:
    """The answer as data for programs."""
    verdict = answer.verdict
    return {
        "workload": wanted.name,
        "cluster": name,
        "pods": wanted.count,
        "fitted": verdict.fitted,
        "byGroup": dict(answer.groups.most_common()),
        "limit": verdict.reason,
        "untolerated": dict(answer.untolerated.most_common()),
        "changes": [change.what for change in answer.changes],
        "tried": answer.tried,
    }


def ask(found: which.StackCluster, wanted: Probe, capture: Path | None, *, changes: bool) -> FitAnswer:
    """The answer of a clone's scheduler; the rest as of :func:`kumulus.extras.capture.fit.fit`."""
    from kumulus.extras.capture.fit import fit
    from kumulus.model.errors import SpecError
    from kumulus.nodes.catalog.prices import with_own

    def say(line: str) -> None:
        print(line, file=sys.stderr)

    here = project.found()
    own = stack_file.prices(found.stack) if here and here.stack_file(found.stack).exists() else None
    try:
        prices = with_own(own) if own else None
    except SpecError as error:
        raise UserError(str(error)) from None
    return catching_up.ask(found, lambda client: fit(client, wanted, capture, changes=changes, prices=prices, say=say))


def _wanted(args: argparse.Namespace) -> Probe:
    from kumulus.extras.capture import probe
    from kumulus.stackfile.location import other_path

    try:
        return probe.read(args.workload, args.count)
    except FileNotFoundError:
        raise UserError(f"there is no file {args.workload}; {other_path(args.workload)}") from None
    except OSError as error:
        raise UserError(f"{args.workload}: {error.strerror or error}") from None


def _cluster(args: argparse.Namespace) -> which.StackCluster:
    """The cluster to ask: the one named, or a capture's clone."""
    from kumulus.model.names import dns_safe
    from kumulus.runtimes.existing.source import outlives_by_note

    if args.on is not None:
        return clone.whole(args.on, args.stack or dns_safe(args.on.absolute().name, 40) or "clone")
    found = which.chosen(project.chosen(args.stack))
    if outlives_by_note(found.require_up()):
        raise _no_clone(args, "the cluster is no clone: it outlives its stack, and what fit creates would run there")
    return found


def _no_clone(args: argparse.Namespace, why: str) -> UserError:
    """The error for a cluster that is not asked."""
    name, command = project.chosen(args.stack), installation.command()
    return UserError(
        f"{name}: {why}\n  Capture it, and ask the clone: {command} capture -s {name} --to {name}-capture, then "
        f"{command} fit {args.workload} --on {name}-capture"
    )


def watch(args: argparse.Namespace, clone: which.StackCluster, wanted: Probe) -> int:
    """Follow the source until Ctrl-C; the clone stays, without the pods that were tried in it.

    Raises:
        UserError: there is no such source, it is another cluster, or the clone's stack file was changed.
        NotTheClone: the clone is no longer that of the capture.
    """
    source = capture.connection(args.kubeconfig, args.context)
    report = Said(wanted)
    while True:
        began = time.monotonic()
        report.of(*_look(args.on, source, clone, wanted))
        time.sleep(max(0.0, began + args.every - time.monotonic()))


class Said:
    """Prints answers and troubles, but not the same one twice in a row."""

    def __init__(self, wanted: Probe) -> None:
        self._wanted = wanted
        self._troubles: list[str] = []
        self._last: int | None = None

    def of(self, answer: FitAnswer | None, troubles: list[str]) -> None:
        """Print an answer if it differs from the last one, and troubles that are new."""
        now = time.strftime("%H:%M:%S")
        for each in troubles:
            if each not in self._troubles:
                print(f"{now}  {each}; going on", flush=True)
        self._troubles = troubles
        if answer is None or answer.verdict.fitted == self._last:
            return
        verdict = answer.verdict
        before = "" if self._last is None else f", before {self._last:,}"
        why = "" if verdict.all_fit else f": {verdict.reason or 'the scheduler does not say'}"
        print(f"{now}  {self._wanted.name}: {verdict.fitted:,} of {verdict.wanted:,} pods fit{before}{why}", flush=True)
        self._last = verdict.fitted


def _look(
    directory: Path, source: Connection, clone: which.StackCluster, wanted: Probe
) -> tuple[FitAnswer | None, list[str]]:
    """The answer from a clone brought up to date with its source, and what is wrong, if anything."""
    from kumulus.extras.capture.dry import Undecided
    from kumulus.extras.capture.live import Expired
    from kumulus.extras.journal.errors import JournalError
    from kumulus.kube import ApiError, Unreachable

    try:
        lacks = catching_up.catch_up(directory, source, clone)
        return ask(clone, wanted, directory, changes=False), lacks
    except Expired as error:
        return None, [f"the source does not take these credentials: {error}"]
    except (Undecided, ApiError, JournalError, Unreachable) as error:
        return None, [str(error)]
    except OSError as error:
        return None, [f"{error.filename or directory}: {error.strerror or error}"]
