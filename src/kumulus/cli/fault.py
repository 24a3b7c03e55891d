"""Temporary faults, outside the stack file: inject one, clear it, list active ones.

    kumulus fault inject lost-gpu -s dev --kind gpu-fell-off-bus --group a100 --count 3 --for 5m
    kumulus fault inject quiet-rack -s dev --kind unreachable --rack r3
    kumulus fault inject flaky -s dev --kind container-fails --pod-label app=training --exit-code 3 --delay 30s
    kumulus fault inject none-left -s dev --kind stock-out --instance-type e2-standard-16 --offer-zone us-central1-a
    kumulus fault inject fifth -s dev --kind spot-interruption --percent 20 --notice 30s
    kumulus fault clear lost-gpu -s dev
    kumulus fault list -s dev
    kumulus fault kinds

`kumulus fault kinds` lists the kinds; docs/faults.md has what each does, with its sources. With --for, the fault ends
by itself: a small process waits for the time and clears it, or the next operation on the cluster does, if that process
was killed.

A fault of pods, such as container-fails, takes `kwok: {stageObjects: true}` in the stack's file and an `up`, unless the
file declares such a fault or podLifecycles.
"""

import argparse
import asyncio
import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from kumulus.cli import cluster, fault_options, project, stack, which
from kumulus.cli.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    commands = parser.add_subparsers(dest="action", metavar="inject|clear|list|kinds", required=True)
    inject = commands.add_parser("inject", help="inject a fault")
    inject.add_argument("name", help="what to call it")
    fault_options.declare(inject)
    inject.add_argument("--for", dest="lasts", metavar="DURATION", help="end it by itself after this time, such as 5m")
    inject.add_argument("--wait", action="store_true", help="stay until it ends; Ctrl-C ends it at once")
    clear = commands.add_parser("clear", help="end a fault")
    cleared = clear.add_argument("name", nargs="?", help="which one")
    cleared.completer = _active  # type: ignore[attr-defined]
    clear.add_argument("--all", action="store_true", help="all that no stack file declares")
    listed = commands.add_parser("list", help="list active faults")
    listed.add_argument("--json", action="store_true", help="for programs")
    kinds = commands.add_parser("kinds", help="list the kinds of faults, and what each is; needs no cluster")
    kinds.add_argument("--json", action="store_true", help="for programs")
    for each in (inject, clear, listed):
        stack.add_option(each)
        which.add_option(each)


def run(args: argparse.Namespace) -> int:
    """Run the action."""
    from kumulus.kube import ApiError, KubeconfigError, Unreachable
    from kumulus.nodes.runs import RunError

    if args.action == "kinds":
        return _list_kinds(args.json)
    args.stack = project.chosen(args.stack)
    found = which.chosen(args.stack, args.cluster)
    args.title, args.naming, kubeconfig = found.label, found.options, found.require_up()
    from kumulus.cli import fault_actions

    actions: dict[str, Callable[[Path, argparse.Namespace], Coroutine[Any, Any, int]]] = {
        "inject": fault_actions.inject,
        "clear": fault_actions.clear,
        "list": fault_actions.show,
    }
    try:
        return asyncio.run(actions[args.action](kubeconfig, args))
    except RunError as error:
        raise UserError(str(error)) from None
    except (ApiError, KubeconfigError, Unreachable) as error:
        raise UserError(f"{error}\n  {cluster.restart(args.stack)}") from None


def _list_kinds(as_json: bool) -> int:
    from kumulus.model.words import aligned
    from kumulus.nodes.catalog.faults import fault_kinds

    of = [(each, "nodes" if each.of_nodes else "pods" if each.pods else "offerings") for each in fault_kinds().values()]
    if as_json:
        listed = [{"kind": each.name, "also": each.also, "of": what, "summary": each.summary} for each, what in of]
        print(json.dumps(listed, indent=2))
        return 0
    print(aligned([("KIND", "OF", "WHAT"), *((", ".join((k.name, *k.also)), what, k.summary) for k, what in of)]))
    return 0


def _active(parsed_args: argparse.Namespace, **_: object) -> list[str]:
    """The active faults of the stack on the line so far, for the shell's completion; none if its cluster is silent."""
    from kumulus.cli.fault_actions import active
    from kumulus.kube import ApiError, KubeconfigError, Unreachable

    try:
        found = which.chosen(project.chosen(parsed_args.stack), parsed_args.cluster)
        return asyncio.run(active(found.require_up()))
    except (ApiError, KubeconfigError, Unreachable, UserError):
        return []
