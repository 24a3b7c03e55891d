"""The node groups that cluster-autoscaler has the sizes of: the pools with bounds that the cluster has on record.

Only the nodes on their way are remembered: sizes are counted in the cluster, so that a provider that was killed resumes
where it was, without the machines that had not arrived.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

from kumulus.cluster.faults import records
from kumulus.cluster.faults.new_pods import wait_until_managed
from kumulus.cluster.pools.bodies import Bodies
from kumulus.cluster.pools.live import NODES, LiveNode
from kumulus.cluster.pools.removal import remove_nodes
from kumulus.cluster.pools.scaled import free, numbered, ordinal_of
from kumulus.cluster.pools.single import NameTaken, create_node
from kumulus.cluster.reporter import Silent
from kumulus.kube import ApiError, Unreachable
from kumulus.kube.media import MERGE_PATCH
from kumulus.kube.protobuf import encode_node
from kumulus.model.pools import POOL_LABEL, Pool

if TYPE_CHECKING:
    from kumulus.kube import Client

_LONGEST = 10.0


class Refused(Exception):
    """What is asked of a group that it may not do, in words for cluster-autoscaler's log."""


class Unknown(Refused):
    """There is no such group, or no such node in it."""


class Groups:
    """The pools with bounds of a cluster, as groups whose size is asked and changed.

    Args:
        client: of the cluster, as its administrator.
        delays: seconds until a machine's node is there, one after the other, and again from the first; none for no
            time.
    """

    def __init__(self, client: Client, delays: Sequence[float] = ()) -> None:
        self._client = client
        self._delays, self._made = list(delays), count()
        self._pools: Mapping[str, Pool] = {}
        self._coming: dict[str, dict[int, asyncio.Task[None]]] = {}
        self._turn = asyncio.Lock()
        self._at_once = asyncio.Semaphore(16)

    @property
    def pools(self) -> Mapping[str, Pool]:
        """The groups' pools by name, as of the last :meth:`refresh`."""
        return self._pools

    def pool(self, name: str) -> Pool:
        """One of them; raises :class:`Unknown`."""
        try:
            return self._pools[name]
        except KeyError:
            raise Unknown(f"there is no node group {name}") from None

    async def refresh(self) -> None:
        """Read which groups there are, and give their nodes the ID by which they are known.

        Raises:
            ApiError, Unreachable: the server could not be asked.
        """
        known = await records.read(self._client, _LONGEST)
        self._pools = {name: pool for name, pool in sorted(known.pools.items()) if pool.bounds}
        for pool in self._pools.values():
            for node in (await numbered(self._client, pool, _LONGEST)).values():
                if not node.provider_id:
                    await self._name(pool, node)

    async def there(self, name: str) -> Mapping[int, LiveNode]:
        """The nodes that there are of a group, by number."""
        return await numbered(self._client, self.pool(name), _LONGEST)

    def coming(self, name: str) -> list[int]:
        """The numbers of its nodes that are on their way."""
        return sorted(self._coming.get(name, {}))

    async def target(self, name: str) -> int:
        """How many nodes a group has, those included that are on their way."""
        return len({*await self.there(name), *self.coming(name)})

    async def increase(self, name: str, by: int) -> None:
        """Let more machines come.

        Raises:
            Refused: it would be more than the group may have.
            ApiError, Unreachable: the server could not be asked.
        """
        pool = self.pool(name)
        async with self._turn:
            taken = {*await self.there(name), *self.coming(name)}
            if by <= 0:
                raise Refused(f"{name} cannot grow by {by}")
            if pool.bounds and len(taken) + by > pool.bounds.most:
                raise Refused(f"{name} has {len(taken)} nodes, and may have {pool.bounds.most}: not {by} more")
            mine = self._coming.setdefault(name, {})
            for ordinal in free(taken, by):
                mine[ordinal] = asyncio.create_task(self._arrive(pool, ordinal, mine))

    async def decrease(self, name: str, by: int) -> None:
        """Let machines not come that are on their way.

        Raises:
            Refused: fewer are on their way.
        """
        self.pool(name)
        async with self._turn:
            coming = self.coming(name)
            if by <= 0 or by > len(coming):
                raise Refused(f"{name} has {len(coming)} machines on their way: {by} of them cannot be given up")
            for ordinal in coming[-by:]:
                self._coming[name].pop(ordinal).cancel()

    async def delete(self, name: str, nodes: Sequence[str]) -> None:
        """Remove nodes, and what is left on them.

        Raises:
            Unknown: one of them is not the group's.
            Refused: fewer would be left than the group has to have.
            ApiError, Unreachable: the server refused, or gave no answer.
        """
        pool = self.pool(name)
        async with self._turn:
            there = {node.name for node in (await self.there(name)).values()}
            if strange := [node for node in nodes if ordinal_of(pool, node) is None]:
                raise Unknown(f"{strange[0]} is no node of {name}")
            doomed = sorted(there & set(nodes))
            left = len(there) - len(doomed) + len(self.coming(name))
            if doomed and pool.bounds and left < pool.bounds.least:
                raise Refused(f"{name} has to have {pool.bounds.least} nodes, and {left} would be left")
            result = await remove_nodes(self._client, doomed, asyncio.Event(), Silent())
            if result.problems:
                raise Refused("; ".join(result.problems))

    async def close(self) -> None:
        """Give up what is on its way."""
        await _ended([task for mine in self._coming.values() for task in mine.values()])

    async def _arrive(self, pool: Pool, ordinal: int, mine: dict[int, asyncio.Task[None]]) -> None:
        delay = self._delays[next(self._made) % len(self._delays)] if self._delays else 0.0
        try:
            await asyncio.sleep(delay)
            async with self._at_once:
                # As it has to be now: with the active faults, and with what an update of the stack has changed.
                known = await records.read(self._client, _LONGEST, pool.name)
                recorded = known.pools.get(pool.name)
                if recorded is None or recorded.bounds is None:
                    return
                current = known.laid_over(recorded, records.now())
                manifest = Bodies(current).manifest(ordinal)
                manifest["spec"]["providerID"] = provider_id(current, ordinal)
                await create_node(self._client, current, ordinal, encode_node(manifest))
            # Pods wait for it, and are bound to it at once.
            await wait_until_managed(self._client, [current.node_name(ordinal)])
        except (ApiError, Unreachable, NameTaken) as error:
            print(f"{pool.node_name(ordinal)} could not be made: {error}", file=sys.stderr)
        finally:
            mine.pop(ordinal, None)

    async def _name(self, pool: Pool, node: LiveNode) -> None:
        ordinal = ordinal_of(pool, node.name)
        assert ordinal is not None
        try:
            body = {"spec": {"providerID": provider_id(pool, ordinal)}}
            await self._client.write("PATCH", f"{NODES}/{node.name}", body, content_type=MERGE_PATCH)
        except ApiError as error:
            # It has gone since it was listed.
            if error.status != 404:
                raise


def provider_id(pool: Pool, ordinal: int) -> str:
    """By what cluster-autoscaler knows that a node is this machine of a group."""
    return f"kumulus://{pool.name}/{pool.node_name(ordinal)}"


def group_of(pools: Mapping[str, Pool], name: str, labels: Mapping[str, str]) -> Pool | None:
    """The group that a node is of, by its name and labels; None for none of these."""
    pool = pools.get(labels.get(POOL_LABEL, ""))
    return pool if pool is not None and ordinal_of(pool, name) is not None else None


async def _ended(tasks: Iterable[asyncio.Task[Any]]) -> None:
    found = list(tasks)
    for task in found:
        task.cancel()
    await asyncio.gather(*found, return_exceptions=True)
