"""From the faults of a stack file to the nodes they affect, and what they do there. Pure functions.

The selected nodes depend only on the pools, including every node's own labels, so that no cluster has to be queried and
a preview names the same nodes as the update. A count or a share takes the first nodes in a random order given by the
seed and the nodes' names: a pool that grows or shrinks changes as few of them as possible.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kumulus.model.checks import problem
from kumulus.model.errors import Problem, Where, shown
from kumulus.model.fault_consequences import described_fault, loss, offered
from kumulus.model.fault_effects import TAINT, Condition, NodeEffects, OfferEffects, PodEffects
from kumulus.model.names import instead, nearest
from kumulus.model.node_sets import NodeSet, clashes
from kumulus.model.nodes import owned_fields
from kumulus.model.pools import POOL_LABEL, Pool
from kumulus.model.topology import place_name
from kumulus.nodes.catalog.faults import fault_kinds
from kumulus.stackfile.fault_checks import split_node_name
from kumulus.stackfile.faults import NODE_KEYS, OFFER_KEYS, POD_KEYS, FaultSpec, Target, offer_effects, offer_problems
from kumulus.stackfile.missed_targets import label_remedy, narrowed, place_remedy

_REBOOT_S = 120.0
# The reason in the status of a pod or container that neither the fault nor its kind gives.
_ACTION_REASONS = {"fail": "Error", "failInit": "Error", "evict": "Evicted", "imagePull": "ErrImagePull", "stuck": ""}


@dataclass(frozen=True)
class ResolvedFault:
    """A fault with the nodes that it affects."""

    name: str
    kind: str
    """The catalog's entry, or empty."""
    nodes: NodeSet
    """Which nodes; empty for a fault of pods anywhere."""
    node: NodeEffects
    """What it does to each of them."""
    pods: PodEffects | None
    """What it does to pods; None for a fault of nodes."""
    lost: Mapping[str, str]
    """What the fleet loses by it, quantities by resource."""
    offers: OfferEffects | None = None
    """What it does to an autoscaler's offerings; None for other faults."""

    def described(self, running: int | None = None) -> str:
        """One line, for when it begins; `running` is how many pods run on its nodes, None if that is not known."""
        lost = {"lost": self.lost}
        return described_fault(self.kind, self.node, self.pods, {}, self.nodes, lost, running, self.offers)


def resolve(
    faults: Sequence[FaultSpec], pools: Sequence[Pool], before: Sequence[ResolvedFault] = ()
) -> tuple[list[ResolvedFault], list[Problem]]:
    """The faults with the nodes that they affect, and every problem, at its place in the file.

    Args:
        before: faults that are already declared, with which the new ones must not conflict.
    """
    found: list[ResolvedFault] = []
    problems: list[Problem] = []
    names: dict[str, int] = {}
    for index, fault in enumerate(faults):
        here: Where = ("faults", index)
        if fault.name in names:
            message = f"{shown(fault.name)} is already faults[{names[fault.name]}].name"
            problems.append(problem((*here, "name"), message, "write another name"))
        names.setdefault(fault.name, index)
        problems += list(_key_problems(here, fault))
        kind = fault.kind or ""
        if (offers := offer_effects(fault)) is not None:
            found.append(ResolvedFault(fault.name, kind, {}, NodeEffects(), pods=None, lost={}, offers=offers))
            continue
        nodes, wrong = chosen(fault.target, fault.name, pools, (*here, "target"))
        problems += wrong
        node, pods = effects_of(fault)
        if not wrong:
            problems += _conflicts(here, node, nodes, pools, [*before, *found])
        if pods is not None and fault.target == Target():
            # Pods anywhere, also on nodes that come later.
            nodes = {}
        found.append(ResolvedFault(fault.name, kind, nodes, node, pods, lost=loss(node, nodes, pools)))
    return found, problems


def _conflicts(
    here: Where, node: NodeEffects, nodes: NodeSet, pools: Iterable[Pool], others: Iterable[ResolvedFault]
) -> Iterator[Problem]:
    """Resources that no node of the target has, and what another fault decides."""
    has = {name for pool in pools if nodes.get(pool.name) for name in (*pool.capacity, *offered(pool))}
    for resource in node.capacity:
        if resource not in has:
            message = f"no node of the target has {resource}"
            yield problem((*here, "capacity", resource), message, "choose nodes that have it, or leave it out")
    for other in others:
        if what := clashes(node, nodes, other.node, other.nodes):
            message = f"{what} is decided by the fault {other.name} too"
            yield problem((*here, "target"), message, "choose other nodes, or make one fault of the two")
            return


def effects_of(fault: FaultSpec) -> tuple[NodeEffects, PodEffects | None]:
    """What a fault does: the catalog's entry, overridden by the fault's own fields."""
    kind = fault_kinds()[fault.kind] if fault.kind else None
    base = kind.node if kind else NodeEffects()
    kubelet = fault.kubelet or base.kubelet
    down = base.down or (_REBOOT_S if kubelet == "reboot" else 0.0)
    node = NodeEffects(
        conditions={**base.conditions, **{name: _condition(name, raw) for name, raw in fault.conditions.items()}},
        taints=(*(each for each in base.taints if each not in fault.taints), *fault.taints),
        labels=dict(fault.labels),
        annotations={**base.annotations, **fault.annotations},
        capacity={**base.capacity, **fault.capacity},
        kubelet=kubelet,
        devices=fault.devices or "",
        down=down if fault.downFor is None else fault.downFor,
    )
    if kind is None or kind.pods is None:
        return node, None
    return node, _pod_effects(kind.pods, fault)


def chosen(target: Target, name: str, pools: Iterable[Pool], where: Where) -> tuple[NodeSet, list[Problem]]:
    """The nodes that a target selects, or what is wrong with it.

    Args:
        name: the fault's, which seeds count and percent unless the target has a seed.
    """
    pools = list(pools)
    if wrong := list(_unknown(target, pools, where)):
        return {}, wrong
    fitting = [(pool, ordinal) for pool in _fitting(target, pools) for ordinal in _members(target, pool)]
    if not fitting:
        message = "matches no node: " + narrowed(target, pools, lambda part: _count(part, pools))
        remedy = label_remedy(target, pools) or "leave out what is too narrow, or remove the fault"
        return {}, [problem(where, message, remedy)]
    wanted = len(fitting)
    if target.percent is not None:
        wanted = max(1, round(wanted * target.percent / 100))
    if target.count is not None:
        if target.count > len(fitting):
            message = f"is {target.count}, more than the {len(fitting)} nodes there are"
            return {}, [problem((*where, "count"), message, f"write {len(fitting)} or fewer")]
        wanted = min(wanted, target.count)
    if wanted < len(fitting):
        seed = target.seed or name
        fitting = sorted(fitting, key=lambda each: _draw(seed, each[0].node_name(each[1])))[:wanted]
    found: dict[str, set[int]] = {}
    for pool, ordinal in fitting:
        found.setdefault(pool.name, set()).add(ordinal)
    return {pool: frozenset(members) for pool, members in sorted(found.items())}, []


def _count(target: Target, pools: Iterable[Pool]) -> int:
    return sum(len(_members(target, pool)) for pool in _fitting(target, pools))


def _draw(seed: str, node: str) -> bytes:
    return hashlib.blake2b(f"{seed}/{node}".encode(), digest_size=8).digest()


def _fitting(target: Target, pools: Iterable[Pool]) -> Iterator[Pool]:
    for pool in pools:
        if target.nodeGroup not in (None, pool.group) or target.zone not in (None, pool.zone):
            continue
        if target.region in (None, pool.region):
            yield pool


def _members(target: Target, pool: Pool) -> list[int]:
    """The ordinals of a pool that a target selects, regardless of its count and percent."""
    among: Iterable[int] = range(pool.replicas)
    if target.names:
        named = [ordinals for name, ordinals in _located(target, [pool]) if name == pool.name]
        among = sorted(n for n in frozenset().union(*named) if n < pool.replicas)
    for level_name, place in target.places().items():
        level = pool.topology.level(level_name) if pool.topology else None
        if level is None:
            return []
        among = [n for n in among if place in (level.place(n), place_name(pool.name, level.place(n)))]
    if target.labels:
        # Labels that all nodes of the pool share are not checked again on each node.
        of_nodes = pool.topology is not None or any(node.labels for node in pool.nodes)
        varying = of_nodes or "kubernetes.io/hostname" in target.labels or POOL_LABEL in target.labels
        if not varying and any(pool.labels.get(key) != value for key, value in target.labels.items()):
            return []
        if varying:
            among = [n for n in among if target.labels.items() <= owned_fields(pool, n).labels.items()]
    return list(among)


def _located(target: Target, pools: Iterable[Pool]) -> list[tuple[str, frozenset[int]]]:
    """The pool and the ordinals of each of a target's names: a node with its own name, or nodes by ordinal."""
    own = {node.name: (pool.name, frozenset({n})) for pool in pools for n, node in enumerate(pool.nodes)}

    def counted(name: str) -> tuple[str, frozenset[int]]:
        try:
            return split_node_name(name)
        except ValueError:
            # One without ordinals is no pool's.
            return name, frozenset({0})

    return [own.get(name) or counted(name) for name in target.names]


def _unknown(target: Target, pools: Sequence[Pool], where: Where) -> Iterator[Problem]:
    """Names in a target that nothing in the stack has."""
    known = {
        "nodeGroup": {pool.group for pool in pools},
        "zone": {pool.zone for pool in pools if target.nodeGroup in (None, pool.group)} - {""},
        "region": {pool.region for pool in pools} - {""},
    }
    for key, names in known.items():
        value = getattr(target, key)
        if value is not None and names and value not in names:
            yield problem((*where, key), f"{shown(value)} matches no node", instead(value, sorted(names), most=3))
    sizes = {pool.name: pool.replicas for pool in pools}
    own = {node.name for pool in pools for node in pool.nodes}
    for index, (written, (pool, ordinals)) in enumerate(zip(target.names, _located(target, pools), strict=True)):
        here, message = (*where, "names", index), f"{shown(written)} is no node of the stack"
        if pool not in sizes and own and (similar := nearest(written, own)):
            yield problem(here, message, f"write {' or '.join(similar)}")
        elif pool not in sizes or written == pool:
            # There is no such pool, or the name is a pool's and no node's.
            remedy = f"write POOL-NUMBER; the pools are {', '.join(sorted(sizes)) or 'none'}"
            if near := nearest(pool, sizes):
                remedy = f"write {near[0]}-…"
            yield problem(here, message, remedy)
        elif not sizes[pool]:
            message = f"{shown(written)} is no node: {pool} has none"
            yield problem(here, message, "give it replicas, or leave the name out")
        elif max(ordinals) >= sizes[pool]:
            message = f"{shown(written)} is beyond the {sizes[pool]} nodes of {pool}"
            yield problem(here, message, f"write up to {sizes[pool] - 1}")
    for level, place in target.places().items():
        there = [pool for pool in _fitting(target, pools) if pool.topology and pool.topology.level(level)]
        if not there:
            message = f"{shown(place)} matches no node: no such group has a topology with it"
            yield problem((*where, level), message, f"give the group's topology a {level}, or write labels")
        elif (other := place_remedy(level, place, there)) is not None:
            yield problem((*where, level), f"{shown(place)} matches no node", other)


def _key_problems(here: Where, fault: FaultSpec) -> Iterator[Problem]:
    """Keys of another type of fault, of nodes, pods or offerings; and a fault that does nothing."""
    kind = fault_kinds()[fault.kind] if fault.kind else None
    present = fault.model_fields_set
    if kind is not None and kind.offers is not None:
        yield from offer_problems(here, fault)
        return
    for key in OFFER_KEYS:
        if key in present:
            message = f"is for what an autoscaler is offered, and {fault.kind or 'this'} is another fault"
            yield problem((*here, key), message, f"leave it out, or write kind: {OFFER_KEYS[key]}")
    if kind is not None and kind.pods is not None:
        for key in NODE_KEYS:
            if key in present:
                remedy = "leave it out, or declare a second fault for the nodes"
                yield problem((*here, key), f"is for nodes, and {fault.kind} is a fault of pods", remedy)
        return
    for key in POD_KEYS:
        if key in present:
            message = f"is for pods, and {fault.kind} is a fault of nodes" if kind else "needs a kind that hits pods"
            yield problem((*here, key), message, "leave it out, or write a kind such as container-fails")
    if kind is None and not any(getattr(fault, key) for key in NODE_KEYS):
        remedy = "write a kind, or conditions, taints, labels, annotations, capacity or kubelet"
        yield problem(here, "does nothing", remedy)
    if fault.devices == TAINT and not (fault.capacity or (kind and kind.node.capacity)):
        remedy = 'write capacity: {nvidia.com/gpu: "-1"} for one GPU, or leave it out'
        yield problem((*here, "devices"), "has no effect, as the fault takes no device", remedy)
    kubelet = fault.kubelet or (kind.node.kubelet if kind else "")
    if fault.downFor is not None and kubelet != "reboot":
        yield problem((*here, "downFor"), "has no effect without a reboot", "leave it out, or write kubelet: reboot")


def _condition(name: str, raw: Mapping[str, str]) -> Condition:
    return Condition(raw.get("status", "True"), raw.get("reason", name), raw.get("message", ""))


def _pod_effects(base: PodEffects, fault: FaultSpec) -> PodEffects:
    pods = fault.pods
    return replace(
        base,
        container=fault.container or base.container,
        exit_code=base.exit_code if fault.exitCode is None else fault.exitCode,
        reason=fault.reason or base.reason or _ACTION_REASONS[base.action],
        message=fault.message or base.message,
        delay=base.delay if fault.delay is None else fault.delay,
        jitter=base.jitter if fault.jitter is None else fault.jitter,
        repeat=base.repeat if fault.repeat is None else fault.repeat,
        percent=base.percent if fault.share is None else fault.share,
        labels=pods.labels if pods else base.labels,
        namespaces=pods.namespaces if pods else base.namespaces,
        owner_kinds=pods.ownerKinds if pods else base.owner_kinds,
        images=tuple(pods.images) if pods else base.images,
    )
