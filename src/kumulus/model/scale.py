"""What a fleet of a size costs its control plane: a model made of a few measured figures, and what follows from them.

The figures are those of ``benchmarks/results/sizes.json`` (``python -m benchmarks sizes``), on two CPUs;
tests/unit/model/test_scale.py keeps them in step, and docs/scale.md shows them with the curves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

LEASE_SECONDS = 40
"""A node's lease as the kubelet has it: it is renewed each quarter of that time (KWOK as kubelets do)."""

HEARTBEAT_FACTORS = ((1_000, 5), (5_000, 20), (math.inf, 40))
"""What the lease is multiplied by unless the stack file says it, for fleets of up to so many nodes; 5 is kwokctl's."""

QUOTA_MB = 8 * 1024**3 / 1e6
"""etcd's storage quota as kwokctl sets it."""


@dataclass(frozen=True)
class Line:
    """A straight line: what is there without nodes, and what each node adds."""

    base: float
    per_node: float

    def at(self, nodes: int) -> float:
        """Its value for that many nodes."""
        return self.base + self.per_node * nodes


MEMORY_MB = {
    "kube-apiserver": Line(600.0, 0.13),
    "etcd": Line(86.0, 0.005),
    "kwok-controller": Line(65.0, 0.03),
    "kube-controller-manager": Line(142.0, 0.0368),
    "kube-scheduler": Line(71.0, 0.0111),
}
"""Resident memory by component, once the fleet stands."""

ETCD_MB = Line(10.0, 0.0058)
"""etcd's database file."""

CREATION_CPU_S = Line(0.8, 0.002)
"""CPU seconds, of all components and the plugin together, until the fleet is Ready."""

CPU_S_PER_RENEWAL = 0.0033
"""CPU seconds, of all components together, for each renewal of a lease."""

CONTROLLER_CPU_S_PER_RENEWAL = 0.00063
"""The part of it that is kwok-controller's."""

RESTING_CORES = 0.06
"""Cores that a control plane uses that has nothing to do."""

# KWOK looks at objects in one goroutine for each kind (reference: kwok-controller's preprocess loop): beyond half a
# core of renewals one controller would come late with pods.
_CONTROLLER_CORES = 0.5
# A fleet that stands still should leave half of the machine to what it is there for.
_STANDING_SHARE = 0.5
_MEMORY_SHARE = 0.8


@dataclass(frozen=True)
class Machine:
    """What a control plane may run on.

    Args:
        cores: CPUs.
        memory_mb: memory in MB.
    """

    cores: int
    memory_mb: float


@dataclass(frozen=True)
class Cost:
    """What a fleet costs.

    Attributes:
        nodes: how many nodes.
        heartbeat_factor: as ``kwok.heartbeatFactor``.
        memory_mb: resident memory by component.
        etcd_mb: size of etcd's database.
        creation_s: seconds until all are Ready, on that many cores.
        leases_per_s: renewals a second.
        standing_cores: cores used while nothing changes.
        controllers: kwok-controllers needed, each with its share of the nodes by label.
    """

    nodes: int
    heartbeat_factor: int
    memory_mb: dict[str, float]
    etcd_mb: float
    creation_s: float
    leases_per_s: float
    standing_cores: float
    controllers: int

    @property
    def total_memory_mb(self) -> float:
        """All components together."""
        return sum(self.memory_mb.values())


def default_heartbeat_factor(nodes: int) -> int:
    """What the lease is multiplied by where the stack file does not say it.

    Args:
        nodes: how many the cluster is made for.
    """
    return next(factor for most, factor in HEARTBEAT_FACTORS if nodes <= most)


def cost(nodes: int, cores: int, heartbeat_factor: int | None = None) -> Cost:
    """What a fleet costs, by the model.

    Args:
        nodes: how many nodes.
        cores: CPUs of the machine.
        heartbeat_factor: as ``kwok.heartbeatFactor``; 1 is what a real cluster has, None the default.
    """
    heartbeat_factor = heartbeat_factor or default_heartbeat_factor(nodes)
    renewals = nodes / (LEASE_SECONDS * heartbeat_factor / 4)
    return Cost(
        nodes=nodes,
        heartbeat_factor=heartbeat_factor,
        memory_mb={name: line.at(nodes) for name, line in MEMORY_MB.items()},
        etcd_mb=ETCD_MB.at(nodes),
        creation_s=CREATION_CPU_S.at(nodes) / cores,
        leases_per_s=renewals,
        standing_cores=RESTING_CORES + renewals * CPU_S_PER_RENEWAL,
        controllers=max(1, math.ceil(renewals * CONTROLLER_CPU_S_PER_RENEWAL / _CONTROLLER_CORES)),
    )


def together(costs: Sequence[Cost]) -> Cost:
    """What several clusters on one machine cost; of what each has for itself, the most of any.

    Args:
        costs: at least one.
    """
    return Cost(
        nodes=sum(each.nodes for each in costs),
        heartbeat_factor=max(each.heartbeat_factor for each in costs),
        memory_mb={name: sum(each.memory_mb[name] for each in costs) for name in costs[0].memory_mb},
        etcd_mb=max(each.etcd_mb for each in costs),
        creation_s=sum(each.creation_s for each in costs),
        leases_per_s=sum(each.leases_per_s for each in costs),
        standing_cores=sum(each.standing_cores for each in costs),
        controllers=max(each.controllers for each in costs),
    )


def limits(found: Cost, machine: Machine) -> list[str]:
    """What a machine is too small in, one sentence each with what to do; empty when the fleet fits."""
    said = []
    if found.total_memory_mb > machine.memory_mb * _MEMORY_SHARE:
        said.append(
            f"memory: {found.total_memory_mb / 1000:,.1f} GB of {machine.memory_mb / 1000:,.1f} GB; "
            "a larger machine, or a cluster of its own with runtime existing"
        )
    if found.standing_cores > machine.cores * _STANDING_SHARE:
        allowed = machine.cores * _STANDING_SHARE - RESTING_CORES
        slower = math.ceil(found.heartbeat_factor * (found.standing_cores - RESTING_CORES) / allowed)
        said.append(
            f"CPU: renewing leases alone takes {found.standing_cores:.1f} of {machine.cores} cores; "
            f"kwok.heartbeatFactor: {slower} makes them rarer"
        )
    if found.etcd_mb > QUOTA_MB / 2:
        said.append(
            f"etcd: {found.etcd_mb:,.0f} MB of a quota of {QUOTA_MB:,.0f} MB, history not counted; raise kwok.etcdQuota"
        )
    if found.controllers > 1:
        said.append(f"kwok-controller: {found.controllers} of them, each with its share of the nodes by label")
    return said


def most_nodes(machine: Machine, heartbeat_factor: int | None = None) -> int:
    """The largest fleet, in steps of 1,000 nodes, that a machine holds by the model."""
    low, high = 0, 1000
    while low < high:
        middle = (low + high + 1) // 2
        if limits(cost(middle * 1000, machine.cores, heartbeat_factor), machine):
            high = middle - 1
        else:
            low = middle
    return low * 1000
