"""How the nodes of a fleet are shared out among several kwok-controllers.

A node's shard follows from its name and the number of shards alone: a resize moves no node, and neither does a pool
that comes or goes. The provider plugin imports this file: it imports nothing that is not light.
"""

from __future__ import annotations

import ipaddress
import zlib

SHARD_LABEL = "kumulus.io/shard"
MOST_SHARDS = 64
_NODES_EACH = 10_000
_SMALL_FLEET = 2_500
_LEASE, _LONG_LEASE = 40, 100


def shard_of(pool: str, ordinal: int, shards: int) -> int:
    """The shard of a pool's node, from 0: its nodes in turn, each pool beginning at another one."""
    return (zlib.crc32(pool.encode()) + ordinal) % shards


def shard_labels(pool: str, ordinal: int, shards: int) -> dict[str, str]:
    """The label by which a kwok-controller finds a node; none where there is only one."""
    return {SHARD_LABEL: str(shard_of(pool, ordinal, shards))} if shards > 1 else {}


def selector(shard: int, shards: int) -> str:
    """The label selector of a shard's nodes; the first one has those without a label too, such as another stack's."""
    if shards == 1:
        return ""
    if shard == 0:
        return f"{SHARD_LABEL} notin ({','.join(str(other) for other in range(1, shards))})"
    return f"{SHARD_LABEL}={shard}"


def shards_for(nodes: int, asked: int | None) -> int:
    """How many shards a fleet has, where the stack file does not say.

    KWOK matches nodes and pods with stages in one goroutine for each kind: more of them take more controllers.
    """
    return asked or max(1, -(-nodes // _NODES_EACH))


def lease_seconds(nodes: int, asked: int | None) -> int:
    """How long leases hold, in seconds.

    Each is renewed after a quarter of it. A real cluster's controller manager takes a node for lost after 40 s without
    (``--node-monitor-grace-period``), so that 25 s is late enough; 10,000 nodes then make 400 writes a second, and
    would make 1,000 with the kubelets' own 40 s.
    """
    return asked or (_LEASE if nodes <= _SMALL_FLEET else _LONG_LEASE)


def pod_range(network: str, shard: int, shards: int) -> str:
    """A shard's part of the addresses of pods: of equal size, a power of two of them, in the order of the shards."""
    whole = ipaddress.IPv4Network(network)
    parts = list(whole.subnets(prefixlen_diff=(shards - 1).bit_length()))
    return str(parts[shard])
