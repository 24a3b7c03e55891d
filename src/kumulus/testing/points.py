"""The points to which a cluster is reset: its start, and those that a test marks."""

import asyncio
import time
from dataclasses import dataclass
from functools import partial

from kumulus.kube import Client, objects
from kumulus.model.pools import Pool
from kumulus.model.words import listed
from kumulus.runtimes.kwok.etcd_keys import EtcdKeys
from kumulus.testing.errors import ClusterError
from kumulus.testing.plane import Plane
from kumulus.testing.reset import Baseline, Reset

START = "start"
"""The point that every cluster has."""
_WITHIN_S, _LOOK_EVERY_S = 30.0, 0.01


@dataclass
class _Point:
    """A cluster at one moment: all that is in it, its pools, and the versions of API groups that it serves."""

    baseline: Baseline
    pools: dict[str, Pool]
    served: set[str]


class Points:
    """The points of a cluster, or of the namespace to which its resets are limited.

    Args:
        within: the namespace; empty for the whole cluster.
    """

    def __init__(self, plane: Plane, within: str = "") -> None:
        self._plane, self._within = plane, within
        self._etcd = EtcdKeys(plane.layout)
        self._points: dict[str, _Point] = {}

    def close(self) -> None:
        """Close the connection to etcd."""
        self._etcd.__exit__()

    async def mark(self, name: str) -> None:
        """Remember the cluster as it is, once nothing of it changes any more."""
        if not name or name in self._points:
            raise ClusterError(f"there is a point {name or START} already; mark it with another name")
        baseline = Baseline(self._etcd, self._within)
        await baseline.take_at_rest(self._plane.client)
        self._points[name] = _Point(baseline, dict(self._plane.pools), await _served(self._plane.client))

    async def reset(self, to: str) -> Reset:
        """Put everything back to what it was at a point."""
        if to not in self._points:
            raise ClusterError(f"there is no point {to}; mark it first, or reset to {listed(sorted(self._points), 10)}")
        begun = time.monotonic()
        plane, point, done = self._plane, self._points[to], Reset()
        gone_nodes = await point.baseline.restore(plane.client, done)
        plane.pools = dict(point.pools)
        if gone_nodes:
            pools = [pool for pool in point.pools.values() if gone_nodes & set(pool.node_names())]
            await asyncio.gather(*map(plane.converge, pools))
            done.restored += len(gone_nodes)
            await asyncio.to_thread(point.baseline.accept_new_nodes, gone_nodes)
            # Making nodes writes more than nodes, such as their pools' records.
            await point.baseline.restore(plane.client, done)
        if not self._within:
            # Until the API server serves these versions and no others: clients would ask for kinds that are gone.
            look = partial(_served, plane.client)
            await objects.wait_until(look, lambda served: served == point.served, _WITHIN_S, _LOOK_EVERY_S)
        done.seconds = time.monotonic() - begun
        return done


async def _served(client: Client) -> set[str]:
    """The versions of API groups that a server has, such as `apps/v1`."""
    found = await objects.find(client, "/apis")
    return {version["groupVersion"] for group in (found or {}).get("groups") or () for version in group["versions"]}
