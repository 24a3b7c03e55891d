"""What a fault does, in one line for previews."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from kumulus.model.consequences import ARROW, MINUS
from kumulus.model.devices import extended_resource
from kumulus.model.fault_effects import XID_ANNOTATION, NodeEffects, OfferEffects, PodEffects, lost
from kumulus.model.names import node_name
from kumulus.model.node_sets import NodeSet, ranges, size, without
from kumulus.model.quantity import ZERO, Quantity, human, parse
from kumulus.model.words import counted

if TYPE_CHECKING:
    from kumulus.model.pools import Pool

# The most pools whose nodes are named.
_NAMED_POOLS = 3
_KUBELETS = {"silent": "the kubelet is silent", "notReady": "not ready", "reboot": "reboots", "gone": "goes"}
_ACTIONS = {
    "fail": "a container fails",
    "failInit": "an init container fails",
    "evict": "evicted",
    "imagePull": "an image cannot be pulled",
    "stuck": "a deleted pod does not go",
}


def described_fault(
    kind: str,
    node: NodeEffects,
    pods: PodEffects | None,
    before: NodeSet,
    nodes: NodeSet,
    inputs: Mapping[str, object],
    running: int | None,
    offers: OfferEffects | None = None,
) -> str:
    """One line: `gpu-fell-off-bus on 18 nodes (a100-use1-[32-49]): −18 nvidia.com/gpu; 7 running pods on them`.

    Args:
        kind: the catalog's entry; empty for a fault that is described in full.
        before: the nodes it affected until now.
        nodes: the nodes that it will affect.
        inputs: the fault's, of which `lost` is shown.
        running: how many pods run there; None when not known.
        offers: what it does to an autoscaler's offerings; if there is any, nodes are not mentioned.
    """
    if offers is not None:
        return f"{kind}: {offers.described()}"
    text = f"{kind or 'fault'} {_place(before, nodes)}"
    details = [*_amounts(MINUS, inputs.get("lost")), *_details(node, pods)]
    text += f": {', '.join(details)}" if details else ""
    return text + _running(running, pods)


def _place(before: NodeSet, nodes: NodeSet) -> str:
    """Which nodes a fault is on, after those of `before`: `on 2 nodes (a-[0-1])`, `moves from … to …`."""
    if not nodes:
        return "on every node"
    if not before or before == nodes:
        return f"on {_nodes(nodes)}"
    left, new = without(before, nodes), without(nodes, before)
    moves = f"moves from {_nodes(left)} to {_nodes(new)}"
    change = f"on {size(before):,} {ARROW} {_nodes(nodes)}"
    if left == before and new == nodes:
        return moves
    return f"{moves}, {change}" if left and new else change


def described_end(
    kind: str,
    node: NodeEffects,
    pods: PodEffects | None,
    nodes: NodeSet,
    pools: Iterable[Pool],
    running: int | None,
    offers: OfferEffects | None = None,
) -> str:
    """One line: `gpu-fell-off-bus ends on 8 nodes (a100-use1-[24-31]): +8 nvidia.com/gpu; over: taint …`.

    Args:
        pools: those of the nodes, which gain what the fault took.
        kind, running, offers: as for :func:`described_fault`.
    """
    if offers is not None:
        return f"{kind} ends; over: {offers.described()}"
    parts = [", ".join(_amounts("+", loss(node, nodes, pools)))]
    if gone := _details(node, pods):
        parts.append(f"over: {', '.join(gone)}")
    what = "; ".join(filter(None, parts))
    return f"{kind or 'fault'} ends {_place({}, nodes)}: {what}{_running(running, pods)}"


def reclaimed(machines: Collection[str]) -> str:
    """The suffix with the number of an autoscaler's machines that are taken back: `; 8 machines`; empty for none."""
    return f"; {counted(len(machines), 'machine')}" if machines else ""


def loss(effects: NodeEffects, nodes: NodeSet, pools: Iterable[Pool]) -> dict[str, str]:
    """What a fleet loses by a fault, quantities by resource; a node that is gone loses all it has."""
    sums: dict[str, Quantity] = {}
    for pool in pools:
        members = len(nodes.get(pool.name, ()))
        if not members:
            continue
        for resource, amount in offered(pool).items():
            change = "0" if effects.kubelet == "gone" else effects.capacity.get(resource)
            if change is not None and (gone := lost(amount, change)).nanos:
                sums[resource] = sums.get(resource, ZERO) + gone * members
    return {resource: str(amount) for resource, amount in sums.items()}


def offered(pool: Pool) -> dict[str, str]:
    """What a node of a pool has, quantities by resource, including devices that only its ResourceSlice has."""
    found = dict(pool.capacity)
    if pool.devices and (resource := extended_resource(pool.devices.driver)):
        found.setdefault(resource, str(pool.devices.count))
    return found


def _running(running: int | None, pods: PodEffects | None) -> str:
    if running is None:
        return ""
    if pods is None:
        return f"; {counted(running, 'running pod')} on them"
    return f"; {running:,} of the pods selected {'runs' if running == 1 else 'run'}"


def _nodes(nodes: NodeSet) -> str:
    named = [
        node_name(pool, min(members)) if len(members) == 1 else f"{pool}-[{ranges(members)}]"
        for pool, members in list(nodes.items())[:_NAMED_POOLS]
    ]
    more = f" and {counted(len(nodes) - _NAMED_POOLS, 'more pool')}" if len(nodes) > _NAMED_POOLS else ""
    shown = ", ".join(each if len(each) <= 60 else f"{each[:57]}..." for each in named)
    return f"{counted(size(nodes), 'node')} ({shown}{more})"


def _amounts(sign: str, resources: object) -> list[str]:
    if not isinstance(resources, Mapping):
        return []
    # Three fit on a preview's line; extended resources come first, since faults are about them.
    names = sorted(resources, key=lambda name: ("/" not in name, name))[:3]
    return [f"{sign}{human(name, parse(str(resources[name])))} {name}" for name in names]


def _details(node: NodeEffects, pods: PodEffects | None) -> list[str]:
    found = [_KUBELETS[node.kubelet]] if node.kubelet else []
    found += [f"{kind}={each.status}" for kind, each in node.conditions.items()]
    found += [f"taint {taint.key}:{taint.effect}" for taint in node.taints]
    found += [f"label {key}" for key in node.labels]
    found += [
        f"XID {value}" if key == XID_ANNOTATION else f"annotation {key}" for key, value in node.annotations.items()
    ]
    return [*found, _ACTIONS[pods.action]] if pods else found
