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

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from kumulus.cli import cluster, project, stack, which
from kumulus.cli.errors import UserError
from kumulus.cli.registry import complete_by

if TYPE_CHECKING:
    from kumulus.nodes.catalog.faults import FaultKind


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    commands = parser.add_subparsers(dest="action", metavar="inject|clear|list|kinds", required=True)
    inject = commands.add_parser("inject", help="inject a fault")
    inject.add_argument("name", help="what to call it")
    declare(inject)
    inject.add_argument("--for", dest="lasts", metavar="DURATION", help="end it by itself after this time, such as 5m")
    inject.add_argument("--wait", action="store_true", help="stay until it ends; Ctrl-C ends it at once")
    clear = commands.add_parser("clear", help="end a fault")
    complete_by(clear.add_argument("name", nargs="?", help="which one"), _active)
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
    if args.action == "kinds":
        return _list_kinds(args.json)
    # Not for `kinds`, which needs no cluster.
    from kumulus.cli import fault_actions
    from kumulus.kube import ApiError, KubeconfigError, Unreachable
    from kumulus.nodes.runs import RunError

    args.stack = project.chosen(args.stack)
    found = which.chosen(args.stack, args.cluster)
    found.require_up()
    actions: dict[str, Callable[[which.StackCluster, argparse.Namespace], Coroutine[Any, Any, int]]] = {
        "inject": fault_actions.inject,
        "clear": fault_actions.clear,
        "list": fault_actions.show,
    }
    try:
        return asyncio.run(actions[args.action](found, args))
    except RunError as error:
        raise UserError(str(error)) from None
    except (ApiError, KubeconfigError, Unreachable) as error:
        raise UserError(f"{error}\n  {cluster.how_to_start(args.stack)}") from None


def _list_kinds(as_json: bool) -> int:
    from kumulus.model.words import aligned
    from kumulus.nodes.catalog.faults import fault_kinds

    kinds = fault_kinds().values()
    if as_json:
        listed = [{"kind": kind.name, "also": kind.also, "of": _of(kind), "summary": kind.summary} for kind in kinds]
        print(json.dumps(listed, indent=2))
        return 0
    rows = [("KIND", "OF", "WHAT")]
    rows += [(", ".join((kind.name, *kind.also)), _of(kind), kind.summary) for kind in kinds]
    print(aligned(rows))
    return 0


def _of(kind: FaultKind) -> str:
    """What a fault of a kind affects."""
    if kind.of_nodes:
        return "nodes"
    return "pods" if kind.pods else "offerings"


def _active(parsed_args: argparse.Namespace, **_: object) -> list[str]:
    """The active faults of the stack on the line so far, for the shell's completion; none if its cluster is silent."""
    from kumulus.cli.fault_actions import active
    from kumulus.kube import ApiError, KubeconfigError, Unreachable

    try:
        found = which.chosen(project.chosen(parsed_args.stack), parsed_args.cluster)
        return asyncio.run(active(found.require_up()))
    except (ApiError, KubeconfigError, Unreachable, UserError):
        return []


_LEVELS = ("rack", "leaf", "block", "spine")


def declare(parser: argparse.ArgumentParser) -> None:
    """The options of `inject`: where a fault is, and what it does."""
    add = parser.add_argument_group("where", "nodes that match all of these; every node if none is given").add_argument
    add("--group", dest="nodeGroup", metavar="NAME", help="the nodes of this node group")
    add("--zone", help="the nodes of this availability zone")
    add("--region", help="the nodes of this region")
    for level in _LEVELS:
        add(f"--{level}", help=f"the nodes of this {level} of their group's topology, such as {level[0]}0")
    add("--nvlink-domain", dest="nvlinkDomain", metavar="DOMAIN", help="the nodes of this NVLink domain (its clique)")
    add("--label", action="append", metavar="KEY=VALUE", help="the nodes that have this label")
    add("--node", action="append", dest="names", metavar="NAME", help="a node by name, or 'a100-use1-[0-99,105]'")
    add("--count", type=int, metavar="N", help="at most this many of them")
    add("--percent", metavar="N", help="only this share of them, in per cent")
    add("--seed", help="seed of the choice for --count and --percent")
    add = parser.add_argument_group("what", "a kind, effects of your own, or both").add_argument
    complete_by(add("--kind", help="an entry of the catalog; `kumulus fault kinds` lists them"), _kinds)
    add("--condition", action="append", metavar="TYPE[=REASON]", help="a condition that is then True")
    add("--taint", action="append", metavar="KEY[=VALUE]:EFFECT", help="a taint to set")
    add("--set-label", action="append", metavar="KEY=VALUE", help="a label to set")
    add("--set-annotation", action="append", metavar="KEY=VALUE", help="an annotation to set")
    add(
        "--capacity",
        action="append",
        metavar="RESOURCE=CHANGE",
        help="how much of a resource is lost, nvidia.com/gpu=-1, or left, nvidia.com/gpu=7",
    )
    add("--kubelet", metavar="STATE", help="silent, notReady, reboot or gone")
    add("--devices", metavar="HOW", help="lost GPUs in ResourceSlices: remove or taint")
    add("--down-for", dest="downFor", metavar="DURATION", help="how long a reboot takes, such as 2m")
    add = parser.add_argument_group("for faults of pods").add_argument
    add("--pod-label", action="append", metavar="KEY=VALUE", help="the pods that have this label")
    add("--namespace", action="append", help="the pods in this namespace")
    add("--owner-kind", action="append", metavar="KIND", help="the pods that belong to an object of this kind: Job")
    add("--image", action="append", help="the pods with a container of this image; * is any text")
    add("--container", metavar="NAME", help="the container that fails (default: the first)")
    add("--exit-code", dest="exitCode", type=int, metavar="N", help="what it exits with")
    add("--reason", help="the status's reason, such as OOMKilled")
    add("--message", help="the status's message")
    add("--delay", metavar="DURATION", help="from the pod's start to its fault, such as 30s")
    add("--jitter", metavar="DURATION", help="up to this much later, evenly spread")
    add("--share", metavar="N", help="only this share of the pods, in per cent")
    add("--once", action="store_true", help="only the pods that are there, each once")
    add = parser.add_argument_group("for faults of an autoscaler's offerings").add_argument
    add("--offer-zone", action="append", metavar="ZONE", help="what is offered in this zone")
    add("--instance-type", action="append", metavar="TYPE", help="what is offered of this type, or of several: 'e2-*'")
    add("--capacity-type", action="append", metavar="TYPE", help="on-demand or spot")
    add("--price-factor", dest="priceFactor", type=float, metavar="N", help="what the price is multiplied by")
    add("--limit", action="append", metavar="RESOURCE=AMOUNT", help="how much a quota allows: cpu=64, nodes=10")
    add("--notice", metavar="DURATION", help="from a spot interruption's notice to the machine's end, such as 2m")


def _kinds(**_: object) -> list[str]:
    """For the shell's completion."""
    from kumulus.nodes.catalog.faults import names

    return list(names())


# Keys of a fault that options give as they are.
_AS_NAMED = (
    "name",
    "kind",
    "kubelet",
    "devices",
    "downFor",
    "container",
    "exitCode",
    "reason",
    "message",
    "delay",
    "jitter",
    "share",
    "priceFactor",
    "notice",
)


def described_options(args: argparse.Namespace) -> dict[str, Any]:
    """The fault on a command line, as an item of the stack file's `faults`."""
    target = {
        key: getattr(args, key)
        for key in ("nodeGroup", "zone", "region", *_LEVELS, "nvlinkDomain", "names", "count", "percent", "seed")
    }
    target["labels"] = _pairs("--label", args.label)
    pods = {
        "labels": _pairs("--pod-label", args.pod_label),
        "namespaces": args.namespace,
        "ownerKinds": args.owner_kind,
        "images": args.image,
    }
    offers = {"zones": args.offer_zone, "instanceTypes": args.instance_type, "capacityTypes": args.capacity_type}
    found = {key: getattr(args, key) for key in _AS_NAMED} | {
        "offers": _present(offers),
        "limits": _pairs("--limit", args.limit, form="RESOURCE=AMOUNT"),
        "target": _present(target),
        "conditions": dict(_condition(text) for text in args.condition or ()),
        "taints": [_taint(text) for text in args.taint or ()],
        "labels": _pairs("--set-label", args.set_label),
        "annotations": _pairs("--set-annotation", args.set_annotation),
        "capacity": _pairs("--capacity", args.capacity, form="RESOURCE=CHANGE"),
        "pods": _present(pods),
        "repeat": False if args.once else None,
    }
    return _present(found)


def _present(raw: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in raw.items() if value not in (None, {}, [])}


def _condition(text: str) -> tuple[str, dict[str, str]]:
    kind, _, reason = text.partition("=")
    return kind, {"reason": reason} if reason else {}


def _pairs(option: str, texts: list[str] | None, form: str = "KEY=VALUE") -> dict[str, str]:
    found = {}
    for text in texts or ():
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise UserError(f"{option} {text}: write it as {form}")
        found[key] = value
    return found


def _taint(text: str) -> dict[str, str]:
    pair, colon, effect = text.rpartition(":")
    if not colon:
        raise UserError(f"--taint {text}: write it as KEY[=VALUE]:EFFECT, such as example.com/broken=yes:NoSchedule")
    key, _, value = pair.partition("=")
    return {"key": key, "value": value, "effect": effect}
