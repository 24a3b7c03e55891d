"""The node groups whose sizes cluster-autoscaler decides: the pools with bounds that the cluster has on record.

Only nodes that are being created are remembered. Sizes are counted in the cluster, so a provider that was killed
resumes where it was, without the machines that had not arrived.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

from kumulus.kube import ApiError, Unreachable
from kumulus.kube.codecs import MERGE_PATCH
from kumulus.kube.errors import tolerating
from kumulus.kube.objects import NODES
from kumulus.kube.protobuf import encode_node
from kumulus.model.durations import timestamp
from kumulus.model.pools import POOL_LABEL, Pool
from kumulus.nodes.faults import records
from kumulus.nodes.faults.new_pods import wait_until_managed
from kumulus.nodes.pools.live import LiveNode
from kumulus.nodes.pools.removal import remove_nodes
from kumulus.nodes.pools.scaled import free, numbered
from kumulus.nodes.pools.single import Bodies, NameTaken, create_node
from kumulus.nodes.reporter import Silent

if TYPE_CHECKING:
    from kumulus.kube import Client

_LONGEST = 10.0
_SCHEME = "kumulus://"


class GroupRefused(Exception):
    """A request that a group may not fulfil; the message is for cluster-autoscaler's log."""


class UnknownGroup(GroupRefused):
    """There is no such group, or no such node in it."""


class ScalableGroups:
    """The pools with bounds of a cluster, as groups whose size can be read and changed.

    The ``delays`` are the seconds until each new machine's node exists, used in turn and repeated; empty for no delay.
    """

    def __init__(self, client: Client, delays: Sequence[float] = ()) -> None:
        self._client = client
        self._delays, self._made = list(delays), count()
        self._pools: Mapping[str, Pool] = {}
        self._coming: dict[str, dict[int, asyncio.Task[None]]] = {}
        self._lock = asyncio.Lock()
        self._at_once = asyncio.Semaphore(16)

    @property
    def pools(self) -> Mapping[str, Pool]:
        """The groups' pools by name, as of the last :meth:`refresh`."""
        return self._pools

    def pool(self, name: str) -> Pool:
        """A group's pool; raises :class:`UnknownGroup`."""
        try:
            return self._pools[name]
        except KeyError:
            raise UnknownGroup(f"there is no node group {name}") from None

    async def refresh(self) -> None:
        """Read which groups there are, and set the provider ID of those of their nodes that have none."""
        known = await records.read(self._client, _LONGEST)
        self._pools = {name: pool for name, pool in sorted(known.pools.items()) if pool.bounds}
        for pool in self._pools.values():
            for node in (await numbered(self._client, pool, _LONGEST)).values():
                if not node.provider_id:
                    await self._name(pool, node)

    async def there(self, name: str) -> Mapping[int, LiveNode]:
        """The existing nodes of a group, by number."""
        return await numbered(self._client, self.pool(name), _LONGEST)

    def coming(self, name: str) -> list[int]:
        """The numbers of a group's nodes that are being created."""
        return sorted(self._coming.get(name, {}))

    async def target(self, name: str) -> int:
        """How many nodes a group has, including those that are being created."""
        return len(await self._numbers(name))

    async def _numbers(self, name: str) -> set[int]:
        # In this order: a node that arrives in between is then counted once, not missed.
        return {*self.coming(name), *await self.there(name)}

    async def increase(self, name: str, by: int) -> None:
        """Start creating more machines."""
        pool = self.pool(name)
        async with self._lock:
            taken = await self._numbers(name)
            if by <= 0:
                raise GroupRefused(f"{name} cannot grow by {by}")
            if pool.bounds and len(taken) + by > pool.bounds.most:
                raise GroupRefused(f"{name} has {len(taken)} nodes, and may have {pool.bounds.most}: not {by} more")
            mine = self._coming.setdefault(name, {})
            for ordinal in free(taken, by):
                mine[ordinal] = asyncio.create_task(self._arrive(pool, ordinal, mine))

    async def decrease(self, name: str, by: int) -> None:
        """Cancel machines that are being created."""
        self.pool(name)
        async with self._lock:
            coming = self.coming(name)
            if by <= 0 or by > len(coming):
                raise GroupRefused(f"{name} has {len(coming)} machines on their way: {by} of them cannot be given up")
            await self._give_up(name, coming[-by:])

    async def delete(self, name: str, nodes: Sequence[str]) -> None:
        """Remove nodes, and what is left on them; cancel those that are being created."""
        pool = self.pool(name)
        async with self._lock:
            doomed = {pool.ordinal_of(node): node for node in nodes}
            if None in doomed:
                raise UnknownGroup(f"{doomed[None]} is no node of {name}")
            has = await self._numbers(name)
            left = len(has - doomed.keys())
            if left < len(has) and pool.bounds and left < pool.bounds.least:
                raise GroupRefused(f"{name} has to have {pool.bounds.least} nodes, and {left} would be left")
            await self._give_up(name, [ordinal for ordinal in self.coming(name) if ordinal in doomed])
            there = [node.name for ordinal, node in (await self.there(name)).items() if ordinal in doomed]
            result = await remove_nodes(self._client, there, asyncio.Event(), Silent())
            if result.problems:
                raise GroupRefused("; ".join(result.problems))

    async def _give_up(self, name: str, ordinals: Iterable[int]) -> None:
        mine = self._coming.get(name, {})
        await _ended([mine.pop(ordinal) for ordinal in ordinals])

    async def close(self) -> None:
        """Cancel the machines that are being created."""
        await _ended([task for mine in self._coming.values() for task in mine.values()])

    async def _arrive(self, pool: Pool, ordinal: int, mine: dict[int, asyncio.Task[None]]) -> None:
        delay = self._delays[next(self._made) % len(self._delays)] if self._delays else 0.0
        try:
            await asyncio.sleep(delay)
            async with self._at_once:
                # Its current form: with the active faults, and with changes by an update of the stack.
                known = await records.read(self._client, _LONGEST, pool.name)
                recorded = known.pools.get(pool.name)
                if recorded is None or recorded.bounds is None:
                    return
                current = known.with_faults(recorded, timestamp())
                manifest = Bodies(current).manifest(ordinal)
                manifest["spec"]["providerID"] = provider_id(current, ordinal)
                await create_node(self._client, current, ordinal, encode_node(manifest))
            # Pods are waiting for the node, and are bound to it immediately.
            await wait_until_managed(self._client, [current.node_name(ordinal)])
        except (ApiError, Unreachable, NameTaken) as error:
            print(f"{pool.node_name(ordinal)} could not be made: {error}", file=sys.stderr)
        finally:
            mine.pop(ordinal, None)

    async def _name(self, pool: Pool, node: LiveNode) -> None:
        ordinal = pool.ordinal_of(node.name)
        assert ordinal is not None
        # The node may have been deleted after it was listed.
        with tolerating(404):
            body = {"spec": {"providerID": provider_id(pool, ordinal)}}
            await self._client.write("PATCH", f"{NODES}/{node.name}", body, content_type=MERGE_PATCH)


def provider_id(pool: Pool, ordinal: int) -> str:
    """The ID by which cluster-autoscaler recognises a node as this machine of a group."""
    return f"{_SCHEME}{pool.name}/{pool.node_name(ordinal)}"


def group_of(pools: Mapping[str, Pool], name: str, labels: Mapping[str, str]) -> Pool | None:
    """The group that a node belongs to, by its name and labels; None if it is in none of them.

    A machine that is being created has no labels yet, and its name is its :func:`provider_id`.
    """
    pool = pools.get(labels.get(POOL_LABEL) or name.removeprefix(_SCHEME).partition("/")[0])
    return pool if pool is not None and pool.ordinal_of(node_of(name)) is not None else None


def node_of(name: str) -> str:
    """The name of a node as the cluster has it.

    cluster-autoscaler calls a machine that has not become a node by its provider ID (FakeNode in its
    clusterstate/clusterstate.go), also when it gives up waiting for it and has it deleted.
    """
    return name.rpartition("/")[2]


async def _ended(tasks: Iterable[asyncio.Task[Any]]) -> None:
    found = list(tasks)
    for task in found:
        task.cancel()
    await asyncio.gather(*found, return_exceptions=True)
