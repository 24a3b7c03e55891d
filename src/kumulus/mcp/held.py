"""The clusters that a server has: those that it has made, and the one that it was started to look at."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from kumulus.kube import Client
from kumulus.model.words import listed
from kumulus.testing import AsyncCluster, ClusterError

_SHOWN = 12


@dataclass
class HeldCluster:
    """A cluster that the server has made, and what ends each of its active faults, by the fault's name."""

    cluster: AsyncCluster
    faults: dict[str, AsyncExitStack] = field(default_factory=dict)


class Held:
    """All clusters of a server, by name; those that were seen are only looked at."""

    def __init__(self, seen: Mapping[str, Client]) -> None:
        self._seen, self._made = seen, dict[str, HeldCluster]()
        # Agents ask for several things at once.
        self._alone = asyncio.Lock()

    async def make(self, name: str, cluster: AsyncCluster) -> dict[str, Any]:
        """Start a cluster; returns what it is like."""
        async with self._alone:
            if name in {*self._made, *self._seen}:
                raise ClusterError(f"there is a cluster {name}; destroy it, or write another name")
            self._made[name] = HeldCluster(await cluster.start())
        return self.described()[name]

    @asynccontextmanager
    async def changing(self, name: str) -> AsyncIterator[HeldCluster]:
        """A cluster that the server may change, and changes alone."""
        async with self._alone:
            if name in self._seen:
                raise ClusterError(f"{name} is only looked at; create makes a cluster that can be changed")
            yield self._made[_named(name, self._made)]

    def client(self, name: str) -> Client:
        """A client of a cluster."""
        clients = {**self._seen, **{each: made.cluster.client for each, made in self._made.items()}}
        return clients[_named(name, clients)]

    def described(self) -> dict[str, dict[str, Any]]:
        """What there is, by name."""
        found: dict[str, dict[str, Any]] = {name: {"mayBeChanged": False} for name in self._seen}
        for name, made in self._made.items():
            found[name] = {"mayBeChanged": True, **made.cluster.described(), "faults": sorted(made.faults)}
        return found

    async def destroy(self, name: str) -> None:
        """Take a cluster down."""
        async with self.changing(name) as found:
            self._made = {each: made for each, made in self._made.items() if made is not found}
            await found.cluster.stop()

    async def close(self) -> None:
        """Take down what the server has made."""
        await asyncio.gather(*(made.cluster.stop() for made in self._made.values()))


def _named(name: str, known: Mapping[str, Any]) -> str:
    if not name and len(known) == 1:
        return next(iter(known))
    if name in known:
        return name
    there = f"there are {listed(sorted(known), _SHOWN)}" if known else "there is none; create makes one"
    raise ClusterError(f"no cluster {name}: {there}" if name else f"which cluster? {there}")
