"""The options of `kumulus fault inject`: where a fault is, and what it does."""

import argparse
from typing import Any

from kumulus.cli.errors import UserError

_LEVELS = ("rack", "leaf", "block", "spine")


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare them."""
    _declare_target(parser)
    _declare_effects(parser)


def _declare_target(parser: argparse.ArgumentParser) -> None:
    target = parser.add_argument_group("where", "nodes that match all of these; every node if none is given")
    target.add_argument("--group", dest="nodeGroup", metavar="NAME", help="the nodes of this node group")
    target.add_argument("--zone", help="the nodes of this availability zone")
    target.add_argument("--region", help="the nodes of this region")
    for level in _LEVELS:
        target.add_argument(
            f"--{level}", help=f"the nodes of this {level} of their group's topology, such as {level[0]}0"
        )
    target.add_argument(
        "--nvlink-domain", dest="nvlinkDomain", metavar="DOMAIN", help="the nodes of this NVLink domain (its clique)"
    )
    target.add_argument("--label", action="append", metavar="KEY=VALUE", help="the nodes that have this label")
    target.add_argument(
        "--node", action="append", dest="names", metavar="NAME", help="a node by name, or 'a100-use1-[0-99,105]'"
    )
    target.add_argument("--count", type=int, metavar="N", help="at most this many of them")
    target.add_argument("--percent", metavar="N", help="only this share of them, in per cent")
    target.add_argument("--seed", help="seed of the choice for --count and --percent")


def _declare_effects(parser: argparse.ArgumentParser) -> None:
    effects = parser.add_argument_group("what", "a kind, effects of your own, or both")
    kind = effects.add_argument("--kind", help="an entry of the catalog; `kumulus fault kinds` lists them")
    kind.completer = _kinds  # type: ignore[attr-defined]
    effects.add_argument("--condition", action="append", metavar="TYPE[=REASON]", help="a condition that is then True")
    effects.add_argument("--taint", action="append", metavar="KEY[=VALUE]:EFFECT", help="a taint to set")
    effects.add_argument("--set-label", action="append", metavar="KEY=VALUE", help="a label to set")
    effects.add_argument("--set-annotation", action="append", metavar="KEY=VALUE", help="an annotation to set")
    effects.add_argument(
        "--capacity",
        action="append",
        metavar="RESOURCE=CHANGE",
        help="how much of a resource is lost, nvidia.com/gpu=-1, or left, nvidia.com/gpu=7",
    )
    effects.add_argument("--kubelet", metavar="STATE", help="silent, notReady, reboot or gone")
    effects.add_argument("--devices", metavar="HOW", help="lost GPUs in ResourceSlices: remove or taint")
    effects.add_argument("--down-for", dest="downFor", metavar="DURATION", help="how long a reboot takes, such as 2m")
    pods = parser.add_argument_group("for faults of pods")
    pods.add_argument("--pod-label", action="append", metavar="KEY=VALUE", help="the pods that have this label")
    pods.add_argument("--namespace", action="append", help="the pods in this namespace")
    pods.add_argument("--owner-kind", action="append", metavar="KIND", help="the pods that such an object owns: Job")
    pods.add_argument("--image", action="append", help="the pods of which a container has it; * is any characters")
    pods.add_argument("--container", metavar="NAME", help="the container that fails (default: the first)")
    pods.add_argument("--exit-code", dest="exitCode", type=int, metavar="N", help="what it exits with")
    pods.add_argument("--reason", help="the status's reason, such as OOMKilled")
    pods.add_argument("--message", help="the status's message")
    pods.add_argument("--delay", metavar="DURATION", help="from the pod's start to its fault, such as 30s")
    pods.add_argument("--jitter", metavar="DURATION", help="up to this much later, evenly spread")
    pods.add_argument("--share", metavar="N", help="only this share of the pods, in per cent")
    pods.add_argument("--once", action="store_true", help="only the pods that are there, each once")
    offers = parser.add_argument_group("for faults of an autoscaler's offerings")
    offers.add_argument("--offer-zone", action="append", metavar="ZONE", help="what is offered in this zone")
    offers.add_argument("--instance-type", action="append", metavar="TYPE", help="what is of this type, or 'e2-*'")
    offers.add_argument("--capacity-type", action="append", metavar="TYPE", help="on-demand or spot")
    offers.add_argument(
        "--price-factor", dest="priceFactor", type=float, metavar="N", help="what the price is multiplied by"
    )
    offers.add_argument(
        "--limit", action="append", metavar="RESOURCE=AMOUNT", help="how much a quota allows: cpu=64, nodes=10"
    )
    offers.add_argument("--notice", metavar="DURATION", help="from a spot interruption's notice to its end, such as 2m")


def _kinds(**_: object) -> list[str]:
    """For the shell's completion."""
    from kumulus.nodes.catalog.faults import names

    return list(names())


def described_options(args: argparse.Namespace) -> dict[str, Any]:
    """The fault on a command line, as an item of the stack file's `faults`."""
    target = {
        key: getattr(args, key)
        for key in ("nodeGroup", "zone", "region", *_LEVELS, "nvlinkDomain", "names", "count", "seed")
    }
    target |= {"labels": _pairs("--label", args.label), "percent": args.percent}
    pods = {
        "labels": _pairs("--pod-label", args.pod_label),
        "namespaces": args.namespace,
        "ownerKinds": args.owner_kind,
        "images": args.image,
    }
    found = {key: getattr(args, key) for key in ("name", "kind", "kubelet", "devices", "downFor", "container")}
    found |= {key: getattr(args, key) for key in ("exitCode", "reason", "message", "delay", "jitter", "share")}
    offers = {
        "zones": args.offer_zone,
        "instanceTypes": args.instance_type,
        "capacityTypes": args.capacity_type,
    }
    found |= {
        "offers": _present(offers),
        "priceFactor": args.priceFactor,
        "limits": _pairs("--limit", args.limit),
        "notice": args.notice,
        "target": _present(target),
        "conditions": dict(_condition(text) for text in args.condition or ()),
        "taints": [_taint(text) for text in args.taint or ()],
        "labels": _pairs("--set-label", args.set_label),
        "annotations": _pairs("--set-annotation", args.set_annotation),
        "capacity": _pairs("--capacity", args.capacity),
        "pods": _present(pods),
        "repeat": False if args.once else None,
    }
    return _present(found)


def _present(raw: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in raw.items() if value not in (None, {}, [])}


def _condition(text: str) -> tuple[str, dict[str, str]]:
    kind, _, reason = text.partition("=")
    return kind, {"reason": reason} if reason else {}


def _pairs(option: str, texts: list[str] | None) -> dict[str, str]:
    found = {}
    for text in texts or ():
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise UserError(f"{option} {text}: write it as KEY=VALUE")
        found[key] = value
    return found


def _taint(text: str) -> dict[str, str]:
    place, colon, effect = text.rpartition(":")
    if not colon:
        raise UserError(f"--taint {text}: write it as KEY=VALUE:EFFECT, such as example.com/broken=yes:NoSchedule")
    key, _, value = place.partition("=")
    return {"key": key, "value": value, "effect": effect}
