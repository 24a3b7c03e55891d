"""Create many nodes of a pool by writing them to the API server's storage, as it would write them itself.

The API server learns of them by its own watch of its storage. That saves it the request, which is most of a node's
cost. Whatever could turn out differently from a post is posted (docs/decisions/through-the-storage.md).
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from kumulus.kube import ApiError
from kumulus.kube.codecs import PROTOBUF
from kumulus.kube.objects import NODES
from kumulus.kube.stored import NotAlike, StoredLeases, StoredNodes, alike, lease_key, node_key, same
from kumulus.model.pools import Pool
from kumulus.nodes.pools.single import Bodies

if TYPE_CHECKING:
    from kumulus.kube import Client

FEWEST = 20
"""Fewer nodes are posted: asking how they would be stored would take as long."""

# Some of a pool's nodes may have labels of their own, or faults: so many are compared to find what most are like.
_SAMPLE = 16
# After this many failures the storage is not used again.
_MOST_FAILURES = 8


class Unwritten(Exception):
    """The storage refused, or gave no answer: it is not known whether it has written."""


class Storage(Protocol):
    """The storage in which a cluster's API server keeps its objects."""

    async def create(self, *objects: tuple[bytes, bytes]) -> bool:
        """Write keys with their values, all or none; False if one of them exists: then nothing was written.

        Args:
            objects: keys and values; at most one object of each kind.

        Raises:
            Unwritten: it is not known whether they were written.
        """

    async def leases(self, client: Client, post: Post) -> StoredLeases | None:
        """Leases of new nodes as their kwok-controller makes them; None if it does not show how.

        Args:
            post: gives the kwok-controller a node to make a lease for.
        """


Post = Callable[[], Awaitable[str]]
"""Posts one node of a pool, and returns its name."""


class NotThroughStorage(Exception):
    """The nodes have to be posted; the message says why."""


StorageOf = Callable[[str, "Client"], Awaitable[Storage | None]]
"""The storage of a kubeconfig's cluster; None if none is known.

Raises:
    NotThroughStorage: nodes have to be posted, and the user should know why.
"""


@dataclass
class Writer:
    """Writes nodes of a pool; see :func:`prepared_writer`."""

    storage: Storage
    """Where to write."""
    pool: Pool
    bodies: Bodies
    """Its nodes as they would be posted."""
    stored: StoredNodes
    """The nodes as they would be stored."""
    usual_ordinal: int
    """The ordinal of a node that most others are like."""
    leases: StoredLeases | None = None
    """The leases that are written with them; None if their kwok-controller makes them."""
    failures: int = 0
    """How often the storage gave no answer."""

    async def create(self, ordinal: int) -> str:
        """Write a node, with its lease if that is known, and return its UID; empty if the node has to be posted.

        A node has to be posted if its name exists, if it is not like the others of its pool (as one with an active
        fault), or if the storage gave no answer: then only the API server knows whether it was written.
        """
        if self.failures >= _MOST_FAILURES:
            return ""
        name, uid, now = self.pool.node_name(ordinal), str(uuid.uuid4()), time.time()
        try:
            objects = [(node_key(name), self.stored.of(self.bodies.manifest(ordinal), uid, int(now)))]
            if self.leases:
                objects.append((lease_key(name), self.leases.of(name, uid, str(uuid.uuid4()), now)))
            return uid if await self.storage.create(*objects) else ""
        except NotAlike:
            return ""
        except Unwritten:
            self.failures += 1
            return ""


async def prepared_writer(
    client: Client, storage: Storage, pool: Pool, ordinals: Sequence[int], bodies: Bodies
) -> Writer | None:
    """A writer for the missing nodes of a pool, once the API server has shown how it would store them.

    The server creates two of them in a dry run, with all its checks: one is the template of the others. The second
    verifies the writer: made from the template, it must be the same as the server makes it.

    Args:
        ordinals: of the missing nodes, in ascending order.

    Returns:
        None if the server refuses one of the two, as it will when that is posted, or if no two nodes are alike.

    Raises:
        NotThroughStorage: the nodes have to be posted, and the user should know why.
    """
    one, other = _two_usual_ordinals(bodies, ordinals)
    if one == other:
        return None
    try:
        template, expected = await _dry_run(client, bodies, one), await _dry_run(client, bodies, other)
        stored = StoredNodes(template, bodies.manifest(one))
        made = stored.of(bodies.manifest(other), "", 0)
    except (ApiError, NotAlike):
        # A node of that name exists, or the server refuses it: a post gives the same error again.
        return None
    if not same(made, expected):
        raise NotThroughStorage(f"the API server makes something of its own of node {pool.node_name(other)}")
    return Writer(storage, pool, bodies, stored, one)


def _two_usual_ordinals(bodies: Bodies, ordinals: Sequence[int]) -> tuple[int, int]:
    """The ordinals of two nodes that most others are like; the same one twice if no two are alike."""
    evenly_spread = [ordinals[len(ordinals) * part // _SAMPLE] for part in range(_SAMPLE)]
    sample = sorted({*evenly_spread, ordinals[-1]})
    manifests = {ordinal: bodies.manifest(ordinal) for ordinal in sample}
    groups = (
        [other for other in sample if alike(manifests[ordinal], manifests[other])]
        for ordinal in (sample[0], sample[len(sample) // 2], sample[-1])
    )
    largest = max(groups, key=len)
    return largest[0], largest[-1]


async def _dry_run(client: Client, bodies: Bodies, ordinal: int) -> bytes:
    """A node as the API server would store it."""
    answer = await client.request(
        "POST",
        NODES,
        params={"dryRun": "All"},
        body=bodies.of(ordinal),
        content_type=PROTOBUF,
        accept=PROTOBUF,
        decode=bytes,
    )
    return bytes(answer)
