"""`kumulus experiment why`: why a pod of a run went to its node, and of how many pods that is known."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from kumulus.cli.errors import UserError
from kumulus.extras.lab.commands.show import history_of
from kumulus.extras.lab.report import waited
from kumulus.extras.lab.report import why as text
from kumulus.extras.lab.report.decided import read
from kumulus.extras.lab.report.files import HISTORY
from kumulus.extras.lab.report.read import find
from kumulus.extras.schedulers.decisions.document import Decision, Totals

_SHOWN = 10


def why(args: argparse.Namespace) -> int:
    """Explain where a pod went.

    Raises:
        UserError: the run has not recorded decisions, or there is no such pod.
        LabError: there is no such run.
    """
    decided = read(find(args.run, args.results).parent)
    document: dict[str, Any]
    if decided is None:
        document, lines = _as_said(args)
        print(json.dumps(document, indent=1) if args.json else "\n".join(lines))
        return 0
    kept = decided.of(args.repetition)
    if args.pod is None:
        document, lines = text.sums(kept, decided.totals)
    elif (decision := _of_pod(kept, args.pod)) is not None:
        column = decided.columns.get(decision.pod)
        document, lines = asdict(decision), text.explained(decision, column)
        if column is not None:
            document["policy"] = asdict(column)
    else:
        document, lines = _waiting(decided.totals, args.pod)
    print(json.dumps(document, indent=1) if args.json else "\n".join(lines))
    return 0


def _as_said(args: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    """What is known of a run that has not recorded decisions: why pods waited, as they and their jobs said."""
    file = find(args.run, args.results).parent / HISTORY.format(args.repetition or 1)
    if not file.is_file():
        raise UserError(
            f"{args.run} has not recorded how its scheduler decided\n"
            "  Write why: true in the experiment's file, and run it again"
        )
    history = history_of(str(file), args.results, 1)
    found = waited.of_all(history) if args.pod is None else waited.of_pod(history, args.pod)
    if found is None:
        raise UserError(f"nothing is known of a pod {args.pod}\n  `kumulus experiment why RUN` says why pods waited")
    document, lines = found
    first = "how the scheduler decided was not recorded (why: true does, for kube-scheduler); this is what pods said:"
    return document, [first, *lines]


def _of_pod(kept: Sequence[Decision], wanted: str) -> Decision | None:
    """The decision about a pod: by its name, or by the start of its name if only one pod's begins so."""
    whole = [each for each in kept if wanted in (each.pod, _name(each.pod))]
    found = whole or [each for each in kept if _name(each.pod).startswith(wanted) or each.pod.startswith(wanted)]
    names = dict.fromkeys(each.pod for each in found)
    if len(names) > 1:
        shown = ", ".join(list(names)[:_SHOWN]) + (" …" if len(names) > _SHOWN else "")
        raise UserError(f"{len(names)} pods begin with {wanted}: {shown}\n  Write more of it, or --repetition N")
    return found[-1] if found else None


def _waiting(totals: Sequence[Totals], wanted: str) -> tuple[dict[str, Any], list[str]]:
    for each in totals:
        for pod, reason in each.waiting.items():
            if wanted in (pod, _name(pod)) or _name(pod).startswith(wanted):
                return {"pod": pod, "reason": reason}, [f"{pod} was never bound", f"  {reason}"]
    dropped = sum(each.dropped for each in totals)
    more = f"; {dropped} bindings were not kept, as the file had reached its limit" if dropped else ""
    raise UserError(f"nothing is known of a pod {wanted}{more}\n  `kumulus experiment why RUN` counts the known pods")


def _name(pod: str) -> str:
    return pod.partition("/")[2]
