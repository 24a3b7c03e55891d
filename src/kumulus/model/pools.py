"""A node pool: the nodes of one group in one zone, all alike.

Frozen dataclasses rather than models: the provider plugin imports this file, and every command waits for its start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kumulus.model.bounds import Bounds
from kumulus.model.devices import Devices
from kumulus.model.gfd import GPU_PRODUCT_LABEL
from kumulus.model.named_nodes import NamedNode
from kumulus.model.names import node_name
from kumulus.model.topology import Topology

if TYPE_CHECKING:
    from kumulus.model.active_faults import PoolFaults
    from kumulus.model.node_sets import NodeSet

GROUP_LABEL = "kumulus.io/group"
POOL_LABEL = "kumulus.io/pool"
CLUSTER_LABEL = "kumulus.io/cluster"
INSTANCE_TYPE_LABEL = "node.kubernetes.io/instance-type"
ZONE_LABEL = "topology.kubernetes.io/zone"
REGION_LABEL = "topology.kubernetes.io/region"
ARCH_LABEL = "kubernetes.io/arch"
OS_LABEL = "kubernetes.io/os"


@dataclass(frozen=True)
class Taint:
    """What keeps pods without a matching toleration off a node.

    Args:
        key: a qualified name.
        value: a label value; empty for none.
        effect: NoSchedule, PreferNoSchedule or NoExecute.
    """

    key: str
    value: str
    effect: str

    def to_plain(self) -> dict[str, str]:
        """The taint as Kubernetes writes it, without an empty value."""
        return {"key": self.key, **({"value": self.value} if self.value else {}), "effect": self.effect}


@dataclass(frozen=True)
class NodeInfo:
    """What a node says of its machine; the rest of `status.nodeInfo` follows from the node's name.

    Args:
        architecture: GOARCH, as amd64.
        operating_system: GOOS, as linux.
        kubelet_version: shown as the node's version by kubectl.
    """

    architecture: str = "amd64"
    operating_system: str = "linux"
    kubelet_version: str = "fake"

    def to_plain(self) -> dict[str, str]:
        """The plain form, under the names Kubernetes gives these fields."""
        return {
            "architecture": self.architecture,
            "operatingSystem": self.operating_system,
            "kubeletVersion": self.kubelet_version,
        }


@dataclass(frozen=True)
class Pool:
    """The nodes of one group in one zone.

    Args:
        name: `<group>-<zone>`; node names start with it.
        group: the node group's name; empty when no label names it.
        zone: the value of the zone label, which a template may have set; empty without one.
        region: the value of the region label; empty without one.
        replicas: how many nodes.
        labels: the labels that all nodes of the pool have in common (not the host name).
        annotations: likewise.
        taints: in the order given; none means an empty tuple.
        capacity: resource names to quantities in canonical form.
        allocatable: likewise; has every resource of `capacity`.
        node_info: architecture, operating system and kubelet version.
        topology: where its nodes are in the network; None if it has none.
        devices: what each node publishes for Dynamic Resource Allocation; None for nothing.
        shards: how many kwok-controllers share the cluster's nodes; if more than one, nodes have their shard's label.
        nodes: its named nodes; none for `<name>-<ordinal>`. A pool read from a cluster may have more of these than
            `replicas`, which counts live nodes.
        bounds: between which an autoscaler chooses its number of nodes; then `replicas` is the initial number.
        faults: those currently active on its nodes; not part of what the stack declares for the pool.
        absent: ordinals that an autoscaler currently leaves out; likewise.
    """

    name: str
    group: str
    zone: str
    region: str
    replicas: int
    labels: Mapping[str, str]
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    capacity: Mapping[str, str] = field(default_factory=dict)
    allocatable: Mapping[str, str] = field(default_factory=dict)
    node_info: NodeInfo = NodeInfo()
    topology: Topology | None = None
    devices: Devices | None = None
    shards: int = 1
    nodes: tuple[NamedNode, ...] = ()
    bounds: Bounds | None = None
    faults: PoolFaults | None = field(default=None, compare=False)
    absent: frozenset[int] = field(default=frozenset(), compare=False)

    @property
    def count(self) -> int:
        """How many nodes it has, without those that an autoscaler leaves out."""
        return self.replicas - len(self.absent)

    @property
    def gpu_product(self) -> str:
        """The product of its GPUs, as GPU Feature Discovery names it; empty when no label names it."""
        return self.labels.get(GPU_PRODUCT_LABEL, "")

    def node_names(self) -> list[str]:
        """The names of all nodes, lowest ordinal first."""
        return [self.node_name(ordinal) for ordinal in range(self.replicas)]

    def node_name(self, ordinal: int) -> str:
        """The name of one node: its own if the pool names its nodes, else the pool's name with the ordinal."""
        own = self.named(ordinal)
        return own.name if own else node_name(self.name, ordinal)

    def named(self, ordinal: int) -> NamedNode | None:
        """One node's own name, labels and cordon; None for a node that the pool does not name."""
        return self.nodes[ordinal] if 0 <= ordinal < len(self.nodes) else None


def names_of(nodes: NodeSet, pools: Mapping[str, Pool]) -> set[str]:
    """The names of a set of nodes.

    Args:
        nodes: ordinals by pool.
        pools: by name; nodes of a pool that is not among them are assumed to be named after their ordinals.
    """
    return {
        pools[pool].node_name(ordinal) if pool in pools else node_name(pool, ordinal)
        for pool, members in nodes.items()
        for ordinal in members
    }


def allocatable_of(capacity: Mapping[str, str], allocatable: Mapping[str, str] | None) -> dict[str, str]:
    """A node's allocatable resources: the given ones, and the capacity of every resource that is not given.

    A node that lists only cpu as allocatable would offer no pod slots, so that nothing could be scheduled to it.
    """
    return {**capacity, **(allocatable or {})}
