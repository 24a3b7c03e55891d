"""Change nodes from one set of faults to another: active faults are applied, ended ones undone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from kumulus.kube import ApiError, objects
from kumulus.kube.bulk import BulkOutcome, for_each
from kumulus.kube.codecs import STRATEGIC_MERGE_PATCH
from kumulus.kube.errors import tolerating
from kumulus.kube.objects import NODES
from kumulus.model.active_faults import ActiveFault
from kumulus.model.applied import posted_node, record_of
from kumulus.model.identity import STACK_ID
from kumulus.model.node_changes import NodePatch, taints_after
from kumulus.model.node_sets import NodeSet
from kumulus.model.pools import POOL_LABEL, Pool
from kumulus.model.words import counted
from kumulus.nodes.faults import devices, leases, pods
from kumulus.nodes.faults.changes import NodePatches, NodeStep, steps_of
from kumulus.nodes.faults.new_pods import wait_until_managed
from kumulus.nodes.pools.live import LiveNode
from kumulus.nodes.pools.observe import get_node
from kumulus.nodes.pools.others import is_anothers

if TYPE_CHECKING:
    from kumulus.kube import Client


# Until kwok-controller has seen a change.
_SEEN_AFTER_S = 1.0


class Foreign(Exception):
    """A node under one of a pool's names is not the pool's; the message says which."""


async def foreign(client: Client, steps: Sequence[NodeStep]) -> dict[str, str]:
    """The nodes that have the name of a step's node but are not its pool's, by name, each with a sentence.

    Only names are listed, and only of nodes without the stack's mark: of 10,000 nodes that are the stack's, none.
    """
    by_name = {step.name: step for step in steps}
    pools = {step.bare.name: step.bare for step in steps}
    unmarked: set[str] = set()
    for selector in sorted({selector for pool in pools.values() for selector in _selectors_of_unmarked(pool)}):
        unmarked.update(await objects.names(client, NODES, {"labelSelector": selector}))
    found: dict[str, str] = {}
    for name in sorted(unmarked.intersection(by_name)):
        try:
            await own_node(client, by_name[name])
        except Foreign as error:
            found[name] = str(error)
    return found


async def own_node(client: Client, step: NodeStep) -> LiveNode | None:
    """The live node of a step; None if it does not exist. Raises Foreign if it is not its pool's."""
    node = await get_node(client, step.name)
    if node is None:
        return None
    if node.real:
        raise Foreign(f"a real node carries the name {node.name}; nothing was done to it")
    if is_anothers(step.bare, node):
        raise Foreign(f"node {node.name} is not this stack's; nothing was done to it")
    return node


def _selectors_of_unmarked(pool: Pool) -> list[str]:
    """Selectors of the nodes that are perhaps not a pool's: they do not carry its stack's identity.

    A stack without an identity can tell its nodes from real ones only by the pool's label.
    """
    identity = pool.labels.get(STACK_ID)
    return [f"{STACK_ID}!={identity}"] if identity else [STACK_ID, f"!{POOL_LABEL}"]


@dataclass
class FaultsApplied:
    """What was done.

    Attributes:
        changed, removed, created: how many nodes.
        pods: how many pods went with removed nodes.
        problems: one line per kind of failure.
        undone: how many nodes are left to do.
        foreign: one line for each node that is not the pool's, although its name is: nothing was done to it.
    """

    changed: int = 0
    removed: int = 0
    created: int = 0
    pods: int = 0
    problems: list[str] = field(default_factory=list)
    undone: int = 0
    foreign: list[str] = field(default_factory=list)

    def left(self) -> str:
        """What is left to do, and why, in words; empty when nothing is."""
        if not self.problems and not self.undone:
            return ""
        reason = self.problems[0] if self.problems else "stopped on request"
        return f"{counted(self.undone, 'node')} left to do: {reason}" if self.undone else f"not all is done: {reason}"

    def add(self, outcome: BulkOutcome[Any]) -> None:
        """Add what a bulk operation failed at."""
        self.problems += sorted({str(error) for _, error in outcome.failed})


async def apply_steps(
    client: Client,
    pools: Mapping[str, Pool],
    nodes: NodeSet,
    befores: Sequence[list[ActiveFault]],
    after: list[ActiveFault],
    *,
    now: str,
    stop: asyncio.Event | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> FaultsApplied:
    """Change nodes to what they should be under other faults.

    Args:
        pools, nodes, befores, after: as for :func:`steps_of`.
        now: the time, RFC 3339 in UTC.
        stop: when set, nothing new is begun.
        progress: called with the number of nodes done and of all nodes.
    """
    steps = steps_of(pools, nodes, befores, after)
    left_alone = await foreign(client, steps)
    steps = [step for step in steps if step.name not in left_alone]
    result, patches = FaultsApplied(), NodePatches(now)
    woken = [step.name for step in steps if _wakes(step)]
    silenced = [step.name for step in steps if step.becomes == "silent"]
    seen = await leases.look(client) if woken or silenced else leases.LeaseSnapshot()
    not_taken = set(silenced)
    if silenced:
        take = partial(leases.take, client, seen=seen)
        taken = await for_each(silenced, take, workers=client.connections, stop=stop)
        result.add(taken)
        not_taken.difference_update(taken.done)
        # KWOK will lose the nodes by their label. If it lost one while it renews its lease, and got it back soon, it
        # could stop renewing all leases (docs/decisions/kwok-leases.md).
        await asyncio.sleep(_SEEN_AFTER_S)

    async def apply(step: NodeStep) -> None:
        try:
            await _apply_step(client, step, seen, result, patches, now)
        except Foreign as error:
            left_alone[step.name] = str(error)

    show = (lambda done: progress(done, len(steps))) if progress else None
    outcome = await for_each(steps, apply, workers=client.connections, stop=stop, progress=show)
    result.add(outcome)
    # A node whose lease was not taken is left to do, but only once.
    result.undone = len(steps) - len({step.name for step in outcome.done} - not_taken)
    result.foreign = sorted(left_alone.values())
    done = [step for step in outcome.done if step.name not in left_alone]
    await devices.report(client, done)
    gone = {step.name for step in done if step.becomes == "gone"}
    if gone:
        result.pods, left = await pods.remove_orphans(client, gone, stop)
        if left:
            result.problems.append(f"stopped on request, and {left:,} pods of nodes that are gone are left")
    if silenced:
        # Until KWOK no longer manages the nodes: it then drops the stages that it had planned for pods that change.
        await asyncio.sleep(_SEEN_AFTER_S)
    if silenced or woken:
        await pods.resume(client, await pods.on(client, [*silenced, *woken]))
    if result.created:
        await wait_until_managed(client, [step.name for step in done if step.may_have_been("gone")], stop)
    return result


def _wakes(step: NodeStep) -> bool:
    """Whether a silent kubelet may report again."""
    return step.may_have_been("silent") and step.becomes != "silent"


async def _apply_step(
    client: Client, step: NodeStep, seen: leases.LeaseSnapshot, result: FaultsApplied, patches: NodePatches, now: str
) -> None:
    if step.becomes == "gone":
        await _remove(client, step)
        result.removed += 1
        return
    if _wakes(step):
        await leases.give_back(client, step.name, seen)
    if step.may_have_been("gone") and await _bring_back(client, step, now):
        result.created += 1
        return
    # If it is not there, its pool creates it, with the faults that are active then.
    with tolerating(404):
        await _apply(client, step.name, patches.of(step))
        result.changed += 1
    for before in step.befores:
        await devices.change(client, before, step.after, step.ordinal)


async def _remove(client: Client, step: NodeStep) -> None:
    async def attempt() -> bool:
        node = await own_node(client, step)
        if node is not None:
            # One that has been created under this name since then is not deleted.
            await objects.remove(client, f"{NODES}/{step.name}", {"preconditions": {"uid": node.uid}})
        return True

    await objects.persist(attempt, f"{NODES}/{step.name}", f"node {step.name}")


async def _bring_back(client: Client, step: NodeStep, now: str) -> bool:
    """Post a node that was gone; False if there is one of its name, as after a post whose answer was lost."""
    after, ordinal = step.after, step.ordinal
    body = posted_node(after, ordinal, now, record_of(after, ordinal))
    try:
        made = await client.create(NODES, body)
    except ApiError as error:
        if error.status != 409:
            raise
        if (node := await own_node(client, step)) is not None:
            await devices.publish(client, after, ordinal, node.uid)
        return False
    await devices.publish(client, after, ordinal, str(made["metadata"]["uid"]))
    return True


async def _apply(client: Client, name: str, patch: NodePatch) -> None:
    path = f"{NODES}/{name}"
    if patch.status is not None:
        await client.write("PATCH", f"{path}/status", patch.status, content_type=STRATEGIC_MERGE_PATCH)
    if not patch.taints:
        return

    async def taint() -> bool:
        node = await client.get(path)
        had = {taint.place for before in patch.befores for taint in before.taints}
        taints = taints_after(node["spec"].get("taints") or [], had, patch.after.taints)
        body = {"metadata": {"resourceVersion": node["metadata"]["resourceVersion"]}, "spec": {"taints": taints}}
        await client.write("PATCH", path, body, content_type=STRATEGIC_MERGE_PATCH)
        return True

    await objects.persist(taint, path, f"node {name}")
