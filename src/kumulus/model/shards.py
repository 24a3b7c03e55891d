"""How the nodes of a fleet are distributed among several kwok-controllers.

A node's shard depends only on its name and the number of shards: a resize moves no node, and neither does adding or
removing a pool. The provider plugin imports this file, so it must not import anything slow.
"""

import ipaddress
import zlib

SHARD_LABEL = "kumulus.io/shard"
MOST_SHARDS = 64
_NODES_EACH = 10_000
_SMALL_FLEET = 2_500
_LEASE, _LONG_LEASE = 40, 100


def shard_of(pool: str, ordinal: int, shards: int) -> int:
    """The shard of a pool's node, from 0: round-robin over the ordinals, from a start that depends on the pool."""
    return (zlib.crc32(pool.encode()) + ordinal) % shards


def shard_labels(pool: str, ordinal: int, shards: int) -> dict[str, str]:
    """The label by which a kwok-controller selects a node; none if there is only one controller."""
    return {SHARD_LABEL: str(shard_of(pool, ordinal, shards))} if shards > 1 else {}


def selector(shard: int, shards: int) -> str:
    """The label selector of a shard's nodes; shard 0 also has those without the label, such as another stack's."""
    if shards == 1:
        return ""
    if shard == 0:
        return f"{SHARD_LABEL} notin ({','.join(str(other) for other in range(1, shards))})"
    return f"{SHARD_LABEL}={shard}"


def shards_for(nodes: int, asked: int | None) -> int:
    """The number of shards of a fleet: `asked`, the stack file's, or else one per 10,000 nodes.

    KWOK matches nodes and pods with stages in one goroutine per kind, so that more nodes need more controllers.
    """
    return asked or max(1, -(-nodes // _NODES_EACH))


def lease_seconds(nodes: int, asked: int | None) -> int:
    """The duration of leases in seconds.

    Each is renewed after a quarter of it. A real cluster's controller manager considers a node lost after 40 s without
    a renewal (``--node-monitor-grace-period``), so renewing after 25 s is enough; 10,000 nodes then cause 400 writes
    per second, and would cause 1,000 with the kubelets' own 40 s.
    """
    return asked or (_LEASE if nodes <= _SMALL_FLEET else _LONG_LEASE)


def pod_range(network: str, shard: int, shards: int) -> str:
    """A shard's part of the pods' address range, which is split into a power of two of equal parts."""
    whole = ipaddress.IPv4Network(network)
    parts = list(whole.subnets(prefixlen_diff=(shards - 1).bit_length()))
    return str(parts[shard])
