"""What a fleet of a given size costs its control plane: a model based on a few measured figures; and its shards.

The figures were measured on two CPUs; tests/unit/model/test_scale.py compares the model with them, and docs/scale.md
shows both.

A shard is what one of several kwok-controllers has of a fleet. A node's depends only on its name and the number of
shards: a resize moves no node, and neither does adding or removing a pool.
"""

import ipaddress
import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

LEASE_S = 40
"""The duration of a kubelet's lease, which kubelets and KWOK renew after a quarter of that time."""

HEARTBEAT_FACTORS = ((1_000, 5), (5_000, 20), (math.inf, 40))
"""Numbers of nodes, and for fleets of up to so many the default factor of the lease duration; 5 is kwokctl's."""

SMALL_FLEET = 500
"""The components of clusters made for up to so many nodes collect garbage more often, and so take less memory."""

# inotify instances by component.
_INOTIFY = {"kube-apiserver": 4, "kube-controller-manager": 2, "kube-scheduler": 1}
# Counted in /proc/*/fd on 2026-11-26, Kubernetes v1.35.4 and Kueue 0.19.2.
_INOTIFY_OF_KUEUE = 2

QUOTA_MB = 8 * 1024**3 / 1e6
"""etcd's storage quota as set by kwokctl."""


@dataclass(frozen=True)
class Line:
    """A straight line: the value without nodes, and what each node adds."""

    base: float
    per_node: float

    def at(self, nodes: int) -> float:
        """Its value for that many nodes."""
        return self.base + self.per_node * nodes


MEMORY_MB = {
    "kube-apiserver": Line(600.0, 0.11),
    "etcd": Line(86.0, 0.009),
    "kwok-controller": Line(65.0, 0.03),
    "kube-controller-manager": Line(142.0, 0.025),
    "kube-scheduler": Line(71.0, 0.0105),
}
"""Resident memory by component, in the first minutes after a fleet that is not small is Ready.

It is greatest then; later, 50,000 nodes take a quarter less.
"""

API_SERVER_SHARE = 0.2
"""The share of the machine's memory that the API server takes at most, unless what it has to keep is more."""

_API_SERVER = "kube-apiserver"
# What it has to keep: nodes, leases and their latest events, in watch caches. The rest is garbage not yet collected.
_KEPT_BY_API_SERVER_MB = Line(250.0, 0.04)

_BASE_OF_SMALL_MB = {
    "kube-apiserver": 243.0,
    "etcd": 47.0,
    "kwok-controller": 55.0,
    "kube-controller-manager": 107.0,
    "kube-scheduler": 64.0,
}
MEMORY_OF_SMALL_MB = {name: Line(_BASE_OF_SMALL_MB[name], line.per_node) for name, line in MEMORY_MB.items()}
"""The same of a fleet of up to :data:`SMALL_FLEET` nodes: the base is smaller, and each node adds as much."""

ETCD_MB = Line(12.0, 0.0049)
"""etcd's database file."""

CREATION_CPU_S = Line(0.5, 0.0011)
"""CPU seconds, of all components and the plugin together, until the fleet is Ready."""

CPU_S_PER_RENEWAL = 0.0037
"""CPU seconds, of all components together, for each renewal of a lease."""

CONTROLLER_CPU_S_PER_RENEWAL = 0.0007
"""The part of it used by kwok-controller."""

RESTING_CORES = 0.06
"""Cores used by an idle control plane."""

# KWOK processes objects in one goroutine per kind (reference: kwok-controller's preprocess loop): beyond half a core of
# renewals, one controller would be late with pods.
_MOST_CONTROLLER_CORES = 0.5
# kwok-controller is sent all leases again whenever a hundred change while it is sent them, so leases times renewals a
# second is what counts (docs/decisions/kwok-watches.md). With 6.2 million (50,000 nodes) all were renewed in time; with
# 10 million (100,000 with longer leases), fewer than half were.
_MOST_LEASE_TRAFFIC = 6_500_000
# An idle fleet should leave half of the machine to the actual work.
_STANDING_SHARE = 0.5
_MEMORY_SHARE = 0.8


@dataclass(frozen=True)
class MachineSize:
    """What a control plane may run on."""

    cores: int
    """CPUs."""
    memory_mb: float
    """Memory in MB."""


@dataclass(frozen=True)
class FleetFootprint:
    """What a fleet costs."""

    nodes: int
    """How many nodes."""
    heartbeat_factor: int
    """As ``kwok.heartbeatFactor``."""
    memory_mb: dict[str, float]
    """Resident memory by component."""
    etcd_mb: float
    """Size of etcd's database."""
    creation_s: float
    """Seconds until all nodes are Ready, on the given cores."""
    leases_per_s: float
    """Renewals per second."""
    standing_cores: float
    """Cores used while nothing changes."""
    controllers: int
    """Kwok-controllers needed, each with its share of the nodes by label."""
    lease_traffic: float
    """Leases times renewals per second, of one cluster."""
    clusters: int = 1
    """How many clusters."""

    @property
    def resting_cores(self) -> float:
        """The part of `standing_cores` that the control planes would take without nodes."""
        return self.clusters * RESTING_CORES

    @property
    def total_memory_mb(self) -> float:
        """All components together."""
        return sum(self.memory_mb.values())


def default_heartbeat_factor(nodes: int) -> int:
    """The factor of the lease duration if the stack file does not set one."""
    return next(factor for most, factor in HEARTBEAT_FACTORS if nodes <= most)


def inotify_instances(*, kueue: bool = False) -> int:
    """How many inotify instances a cluster of local processes takes, however many nodes it has."""
    return sum(_INOTIFY.values()) + (_INOTIFY_OF_KUEUE if kueue else 0)


def cost(nodes: int, machine: MachineSize, heartbeat_factor: int | None = None) -> FleetFootprint:
    """What a fleet costs; the factor is as ``kwok.heartbeatFactor``, 1 as in a real cluster, None for the default."""
    heartbeat_factor = heartbeat_factor or default_heartbeat_factor(nodes)
    renewals = nodes / (LEASE_S * heartbeat_factor / 4)
    lines = MEMORY_OF_SMALL_MB if nodes <= SMALL_FLEET else MEMORY_MB
    memory = {name: line.at(nodes) for name, line in lines.items()}
    most = max(machine.memory_mb * API_SERVER_SHARE, _KEPT_BY_API_SERVER_MB.at(nodes))
    memory[_API_SERVER] = min(memory[_API_SERVER], most)
    return FleetFootprint(
        nodes=nodes,
        heartbeat_factor=heartbeat_factor,
        memory_mb=memory,
        etcd_mb=ETCD_MB.at(nodes),
        creation_s=CREATION_CPU_S.at(nodes) / machine.cores,
        leases_per_s=renewals,
        standing_cores=RESTING_CORES + renewals * CPU_S_PER_RENEWAL,
        controllers=max(1, math.ceil(renewals * CONTROLLER_CPU_S_PER_RENEWAL / _MOST_CONTROLLER_CORES)),
        lease_traffic=nodes * renewals,
    )


def together(costs: Sequence[FleetFootprint]) -> FleetFootprint:
    """What several clusters on one machine cost: sums, or the maximum where each cluster has its own limit."""
    return FleetFootprint(
        nodes=sum(each.nodes for each in costs),
        heartbeat_factor=max(each.heartbeat_factor for each in costs),
        memory_mb={name: sum(each.memory_mb[name] for each in costs) for name in costs[0].memory_mb},
        etcd_mb=max(each.etcd_mb for each in costs),
        creation_s=sum(each.creation_s for each in costs),
        leases_per_s=sum(each.leases_per_s for each in costs),
        standing_cores=sum(each.standing_cores for each in costs),
        controllers=max(each.controllers for each in costs),
        lease_traffic=max(each.lease_traffic for each in costs),
        clusters=sum(each.clusters for each in costs),
    )


def limits(fleet: FleetFootprint, machine: MachineSize) -> list[str]:
    """In what ways a machine is too small, each in one sentence with a remedy; empty when the fleet fits."""
    lines = []
    if fleet.total_memory_mb > machine.memory_mb * _MEMORY_SHARE:
        lines.append(
            f"memory: {fleet.total_memory_mb / 1000:,.1f} GB of {machine.memory_mb / 1000:,.1f} GB; "
            "a larger machine, or a cluster of its own with runtime existing"
        )
    if fleet.standing_cores > machine.cores * _STANDING_SHARE:
        lines.append(_too_busy(fleet, machine))
    if fleet.lease_traffic > _MOST_LEASE_TRAFFIC:
        slower = math.ceil(fleet.heartbeat_factor * fleet.lease_traffic / _MOST_LEASE_TRAFFIC)
        lines.append(
            "leases: kwok-controller does not keep up with the renewals of so many; several clusters, "
            f"or rarer renewals by kwok.heartbeatFactor: {slower}"
        )
    if fleet.etcd_mb > QUOTA_MB / 2:
        lines.append(
            f"etcd: {fleet.etcd_mb:,.0f} MB of a quota of {QUOTA_MB:,.0f} MB, history not counted; raise kwok.etcdQuota"
        )
    if fleet.controllers > 1:
        lines.append(f"kwok-controller: {fleet.controllers} of them, each with its share of the nodes by label")
    return lines


def _too_busy(fleet: FleetFootprint, machine: MachineSize) -> str:
    allowed = machine.cores * _STANDING_SHARE - fleet.resting_cores
    if allowed <= 0:
        return (
            f"CPU: {fleet.clusters} control planes alone take {fleet.resting_cores:.1f} of {machine.cores} cores, "
            "without nodes; fewer clusters, or a larger machine"
        )
    slower = math.ceil(fleet.heartbeat_factor * (fleet.standing_cores - fleet.resting_cores) / allowed)
    return (
        f"CPU: renewing leases alone takes {fleet.standing_cores:.1f} of {machine.cores} cores; "
        f"kwok.heartbeatFactor: {slower} makes them rarer"
    )


def most_nodes(machine: MachineSize, heartbeat_factor: int | None = None) -> int:
    """The largest fleet, in steps of 1,000 nodes, that fits a machine according to the model."""
    low, high = 0, 1000
    while low < high:
        middle = (low + high + 1) // 2
        if limits(cost(middle * 1000, machine, heartbeat_factor), machine):
            high = middle - 1
        else:
            low = middle
    return low * 1000


SHARD_LABEL = "kumulus.io/shard"
MOST_SHARDS = 64
_NODES_PER_SHARD = 10_000
# Fleets of more nodes have long leases.
_MOST_WITH_SHORT_LEASES = 2_500
_LONG_LEASE_S = 100


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
    return asked or max(1, math.ceil(nodes / _NODES_PER_SHARD))


def lease_seconds(nodes: int, asked: int | None) -> int:
    """The duration of leases in seconds, each of which is renewed after a quarter of it: `asked`, or the default.

    A real cluster's controller manager considers a node lost after 40 s without a renewal: long leases are renewed
    early enough, after 25 s.
    """
    return asked or (LEASE_S if nodes <= _MOST_WITH_SHORT_LEASES else _LONG_LEASE_S)


def pod_range(network: str, shard: int, shards: int) -> str:
    """A shard's part of the pods' address range, which is split into a power of two of equal parts."""
    whole = ipaddress.IPv4Network(network)
    parts = list(whole.subnets(prefixlen_diff=(shards - 1).bit_length()))
    return str(parts[shard])
