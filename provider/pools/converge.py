"""Make a pool's nodes what is wanted: create what is missing, patch what differs, remove what is too many.

Everything is computed by name from what is there, so a run that was killed half way is finished by the next one and
nothing is done twice.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from kube import ApiError, Unreachable
from kube.bulk import Interrupted, Outcome, for_each
from kube.media import MERGE_PATCH, STRATEGIC_MERGE_PATCH
from provider.engine import Reporter
from provider.pools import pods
from provider.pools.bodies import MEDIA_TYPE, Bodies
from provider.pools.compare import field_differences, patches
from provider.pools.live import NODES, LiveNode
from provider.pools.observe import Observation, get_node
from provider.pools.slices import SLICES, converge_slices, publish, slices_of, withdraw
from spec.names import node_name
from spec.pools import Pool

if TYPE_CHECKING:
    from kube import Client

_CONFLICT_TRIES = 8


class NameTaken(Exception):
    """A real node, with a kubelet behind it, has a name that the pool wants."""


@dataclass
class Result:
    """What a convergence did.

    Attributes:
        created, changed, removed: how many nodes.
        pods: how many pods went with the removed nodes.
        slices: how many ResourceSlices of nodes that were there already were published, changed or withdrawn.
        problems: one line per kind of failure; empty when the pool is as wanted.
        undone: how many nodes and slices are left to do.
        left: what is still not as wanted, as far as the answers to our requests tell.
        certain: whether every request that was sent has been answered, so that ``left`` is what is there.
    """

    created: int = 0
    changed: int = 0
    removed: int = 0
    pods: int = 0
    slices: int = 0
    problems: list[str] = field(default_factory=list)
    undone: int = 0
    left: Observation = field(default_factory=Observation)
    certain: bool = True

    @property
    def complete(self) -> bool:
        """Whether the pool is as wanted."""
        return not self.problems and not self.undone

    def recounted(self, before: Observation, after: Observation) -> Result:
        """The same with the counts that a second look gives: requests without an answer may have taken effect."""
        return replace(
            self,
            created=len(set(before.missing) - set(after.missing)),
            changed=len(before.altered.keys() - after.altered.keys()),
            removed=len(set(before.extra) - set(after.extra)),
            undone=len(after.missing) + len(after.altered) + len(after.extra) + after.slices.count,
            left=after,
            certain=True,
        )

    def describe(self) -> str:
        """One line: what was done and what was not."""
        done = [
            f"{count:,} {word}"
            for count, word in ((self.created, "created"), (self.changed, "changed"), (self.removed, "removed"))
            if count
        ]
        text = "nodes: " + (", ".join(done) if done else "none changed")
        text += f"; resource slices: {self.slices:,} changed" if self.slices else ""
        return text + (f"; {self.undone:,} left to do" if self.undone else "")


async def converge(client: Client, pool: Pool, seen: Observation, stop: asyncio.Event, report: Reporter) -> Result:
    """Apply the difference between a pool and what was observed of it.

    Args:
        client: the cluster's API.
        pool: what is wanted.
        seen: what was observed just before.
        stop: when set, nothing new is begun.
        report: takes passing status lines.
    """
    result = Result()
    for name in seen.foreign:
        result.problems.append(f"a real node already carries the name {name}; rename the node group or its zone")
    meter = _Meter(report)
    body = Bodies(pool)

    async def create(ordinal: int) -> None:
        uid = await create_node(client, pool, ordinal, body.of(ordinal))
        if pool.devices is not None:
            await publish(client, pool, pool.devices, ordinal, uid)

    made = await for_each(
        seen.missing,
        create,
        workers=client.connections,
        stop=stop,
        lanes=client.lanes,
        progress=lambda done: meter.show("nodes", done + seen.present, pool.replicas, done),
    )
    result.created = len(made.done)

    async def change(ordinal: int) -> None:
        await change_node(client, pool, ordinal, seen.altered[ordinal][0])

    changed = await for_each(
        seen.altered,
        change,
        workers=client.connections,
        stop=stop,
        lanes=client.lanes,
        progress=lambda done: meter.show("nodes changed", done, len(seen.altered), done),
    )
    result.changed = len(changed.done)

    removed = await remove_nodes(client, seen.extra, stop, report)
    result.removed, result.pods = removed.removed, removed.pods
    result.problems += _problems(made) + _problems(changed) + removed.problems
    result.undone = _left(made) + _left(changed) + removed.undone
    if pool.devices is not None and seen.slices:
        progress = partial(_show_slices, meter, len(seen.slices.missing) + len(seen.slices.altered))
        for outcome in await converge_slices(client, pool, pool.devices, seen.slices, seen.uids, stop, progress):
            result.slices += len(outcome.done)
            result.problems += _problems(outcome)
            result.undone += _left(outcome)
    # What became of slices has to be looked at.
    sure = _certain(made) and _certain(changed) and removed.certain
    result.certain = sure and pool.devices is None
    created, altered = set(made.done), set(changed.done)
    result.left = Observation(
        missing=[ordinal for ordinal in seen.missing if ordinal not in created],
        altered={ordinal: found for ordinal, found in seen.altered.items() if ordinal not in altered},
        extra=removed.left.extra,
        foreign=seen.foreign,
        slices=seen.slices,
        matching=seen.matching + result.created + result.changed,
    )
    return result


def _show_slices(meter: _Meter, total: int, done: int) -> None:
    meter.show("resource slices", done, total, done)


async def create_node(client: Client, pool: Pool, ordinal: int, body: bytes) -> str:
    """Post a node; when one of that name exists (a repeated post, a concurrent run), make it what is wanted.

    Returns:
        The node's UID, if the pool publishes devices, whose owner it is; otherwise nothing of the answer is looked at.

    Raises:
        NameTaken: a real node has the name.
        ApiError, Unreachable: the server refused, or gave no answer.
    """
    for _ in range(_CONFLICT_TRIES):
        try:
            if pool.devices is not None:
                made = await client.request("POST", NODES, body=body, content_type=MEDIA_TYPE)
                return str(made["metadata"]["uid"])
            await client.write("POST", NODES, body, content_type=MEDIA_TYPE)
            return ""
        except ApiError as error:
            if error.status != 409:
                raise
        node = await get_node(client, node_name(pool.name, ordinal))
        if node is not None:
            await change_node(client, pool, ordinal, node)
            return node.uid
    raise ApiError(409, "AlreadyExists", f"node {node_name(pool.name, ordinal)} comes and goes", "POST", NODES)


async def change_node(client: Client, pool: Pool, ordinal: int, node: LiveNode) -> None:
    """Patch a node's owned fields; a concurrent change of its taints is read anew and kept.

    Raises:
        NameTaken: a real node has the name.
        ApiError, Unreachable: the server refused, or gave no answer.
    """
    path = f"{NODES}/{node.name}"
    current: LiveNode | None = node
    for _ in range(_CONFLICT_TRIES):
        if current is None:
            await client.write("POST", NODES, Bodies(pool).of(ordinal), content_type=MEDIA_TYPE)
            return
        if current.real:
            raise NameTaken(f"a real node already carries the name {node.name}")
        main, status = patches(pool, ordinal, current)
        try:
            if main is not None:
                await client.write("PATCH", path, main, content_type=MERGE_PATCH)
            if status is not None:
                await client.write("PATCH", f"{path}/status", status, content_type=STRATEGIC_MERGE_PATCH)
            return
        except ApiError as error:
            if error.status not in (404, 409):
                raise
        current = await get_node(client, node.name)
        if current is not None and not field_differences(pool, ordinal, current):
            return
    raise ApiError(409, "Conflict", f"node {node.name} is changed by others all the time", "PATCH", path)


async def remove_nodes(client: Client, names: Iterable[str], stop: asyncio.Event, report: Reporter) -> Result:
    """Delete nodes, then the pods bound to them; returns when both are gone.

    The nodes go first: otherwise a Job's controller would replace the pods and the scheduler put them back.
    """
    doomed = list(names)
    result = Result()
    if not doomed:
        return result
    meter = _Meter(report)

    async def remove(name: str) -> None:
        try:
            await client.delete(f"{NODES}/{name}")
        except ApiError as error:
            if error.status != 404:
                raise

    outcome = await for_each(
        doomed,
        remove,
        workers=client.connections,
        stop=stop,
        lanes=client.lanes,
        progress=lambda done: meter.show("nodes removed", done, len(doomed), done),
    )
    result.removed = len(outcome.done)
    result.problems = _problems(outcome)
    result.undone = _left(outcome)
    result.certain = _certain(outcome)
    gone = set(outcome.done)
    result.left = Observation(extra=[name for name in doomed if name not in gone])
    try:
        result.pods = await pods.remove_from(client, gone, stop, report)
    except (ApiError, Unreachable, pods.PodsRemain) as error:
        result.problems.append(str(error))
    return result


async def remove_slices(client: Client, pool_name: str, stop: asyncio.Event, result: Result) -> None:
    """Delete every ResourceSlice that carries a pool's label, and add what came of it to a result.

    Raises:
        ApiError, Unreachable: the server could not be asked.
    """
    outcome = await withdraw(client, await slices_of(client, pool_name), stop)
    result.slices += len(outcome.done)
    result.problems += _problems(outcome)
    result.undone += _left(outcome)


class _Meter:
    """Progress as ``nodes 1,250/2,550 · 910/s``."""

    def __init__(self, report: Reporter) -> None:
        self._report = report
        self._started = time.monotonic()

    def show(self, what: str, done: int, total: int, counted: int) -> None:
        last = done == total
        if counted % 20 and not last:
            return
        rate = counted / max(0.001, time.monotonic() - self._started)
        self._report.status(f"{what} {done:,}/{total:,} · {rate:,.0f}/s", last=last)


def _left(outcome: Outcome[Any]) -> int:
    return len(outcome.failed) + outcome.skipped


def _certain(outcome: Outcome[Any]) -> bool:
    """Whether it is known of each item if it took effect.

    An error of the server does not say so: etcd carries out the write that crosses its quota, and answers ErrNoSpace
    (its ``quotaApplierV3.Put``).
    """
    errors = [error for _, error in outcome.failed]
    return not any(
        isinstance(error, Interrupted | Unreachable) or (isinstance(error, ApiError) and error.status >= 500)
        for error in errors
    )


def _problems(outcome: Outcome[Any]) -> list[str]:
    """One line per kind of failure, with how often it was met; that a stop interrupted some is none of them."""
    kinds: dict[str, int] = {}
    for _, error in outcome.failed:
        if isinstance(error, Interrupted):
            continue
        text = explain(error)
        kinds[text] = kinds.get(text, 0) + 1
    return [f"{text} ({count} times)" if count > 1 else text for text, count in kinds.items()]


def explain(error: Exception) -> str:
    """Say what an API error means for the user, with the remedy where there is one."""
    if isinstance(error, ApiError) and error.quota_exceeded:
        return (
            "etcd's storage quota is reached (mvcc: database space exceeded): raise kwok.etcdQuota in the stack file, "
            "or make the fleet smaller"
        )
    if isinstance(error, ApiError):
        # The name of one node would make every message another one.
        what = "resource slice" if SLICES in error.path else "node"
        return f"{error.verb} {what}: {error.status} {error.reason}: {error.message}"
    return str(error)
