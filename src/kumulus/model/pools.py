"""A node pool: the nodes of one group in one zone, all alike.

:class:`Pool` is the table of a pool's fields. Its plain form (`pool_form`), the checks, and the inputs of the plugin's
NodePool with their types and descriptions (`provider.object_types`) follow from it.

Frozen dataclasses rather than pydantic's models: every command waits for the start of the plugin.
"""

# ruff: noqa: RUF009 - `keyed` makes a field of a dataclass.

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from kumulus.model.checks import (
    annotation_problems,
    feature_problems,
    label_problems,
    node_info_problems,
    replicas_problems,
    resource_problems,
    taint_problems,
    whole_problems,
)
from kumulus.model.device_checks import devices_problems
from kumulus.model.devices import Devices, devices_from
from kumulus.model.errors import Problem, Where
from kumulus.model.gfd import GPU_PRODUCT_LABEL, compacted, gpu_problems
from kumulus.model.named_nodes import NamedNode, named_nodes_from, named_nodes_problems
from kumulus.model.names import node_name
from kumulus.model.plain import plain
from kumulus.model.quantity import canonical_resources
from kumulus.model.scale import MOST_SHARDS, shard_labels
from kumulus.model.topology import Topology, topology_from, topology_problems

if TYPE_CHECKING:
    from kumulus.model.active_faults import ActiveFault
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

    @property
    def place(self) -> tuple[str, str]:
        """What identifies it on a node."""
        return self.key, self.effect

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


@dataclass(frozen=True)
class Bounds:
    """The bounds between which an autoscaler chooses a pool's number of nodes."""

    least: int
    """The minimum number of nodes."""
    most: int
    """The maximum number of nodes."""

    def nearest(self, count: int) -> int:
        """The number of nodes within the bounds that is nearest to `count`."""
        return max(self.least, min(count, self.most))


def taints_from(raw: object) -> tuple[Taint, ...]:
    """Taints from a checked list of mappings."""
    taints = cast(Sequence[Mapping[str, str]], raw or ())
    return tuple(Taint(taint["key"], taint.get("value") or "", taint["effect"]) for taint in taints)


def features_from(raw: Iterable[str]) -> tuple[str, ...]:
    """Names of features from a checked list, sorted, as the API server demands."""
    return tuple(sorted(raw))


def node_info_from(raw: object, labels: Mapping[str, str]) -> NodeInfo:
    """Node information: the given values (already checked), else those in the labels, else the defaults."""
    overrides = cast(Mapping[str, str | None], raw or {})
    default = NodeInfo()
    return NodeInfo(
        architecture=overrides.get("architecture") or labels.get(ARCH_LABEL) or default.architecture,
        operating_system=overrides.get("operatingSystem") or labels.get(OS_LABEL) or default.operating_system,
        kubelet_version=overrides.get("kubeletVersion") or default.kubelet_version,
    )


@dataclass(frozen=True)
class Key:
    """A key of a pool's plain form; most fields of a pool have one."""

    name: str
    """The key."""
    problems_of: Callable[[Where, object], list[Problem]] | None = None
    """Returns every problem of its value; None where only the whole pool can be checked."""
    read: Callable[[Any], object] | None = None
    """Makes the field's value from the key's checked one; None for a field that follows from several keys."""
    write: Callable[[Any], object] = lambda value: value
    """Makes the key's value from the field's; it returns None where the key is left out."""
    type: object = None
    """The type of the key's value, if it is not the field's."""
    doc: str = ""
    """What the key means, if that is not the field's description."""


def keyed(*keys: Key, default: Any = MISSING) -> Any:
    """A field with these keys; its default is an empty mapping unless another is named."""
    if default is MISSING:
        return field(default_factory=dict, metadata={"keys": keys})
    return field(default=default, metadata={"keys": keys})


def _plain_or_none(value: Any) -> object:
    return value.to_plain() if value else None


@dataclass(frozen=True)
class Pool:
    """The nodes of one group in one zone; quantities are in canonical form.

    Args:
        name: the pool's name; nodes have it with their ordinal, from 0, unless they are named.
        group: the node group's name; empty when no label names it.
        zone: the value of the zone label, which a template may have set; empty without one.
        region: the value of the region label; empty without one.
        replicas: how many nodes; shrinking removes the highest ordinals.
        labels: labels of every node, without the host name.
        annotations: annotations of every node.
        taints: taints of every node, in this order.
        capacity: quantities by resource, such as cpu, memory, nvidia.com/gpu.
        allocatable: quantities by resource; the capacity where it names none.
        node_info: what a node reports about its machine.
        declared_features: names of features that a node declares; those of its kubelet's version if None.
        topology: where its nodes stand: racks, blocks, switches, NVLink domains.
        devices: devices of a node for Dynamic Resource Allocation, in ResourceSlices.
        shards: how many kwok-controllers share the cluster's nodes, each by its label.
        nodes: its nodes by name, as many as there are replicas; a pool read from a cluster may have more.
        bounds: between which an autoscaler chooses its number of nodes; then `replicas` is the initial number.
        faults: those currently active on its nodes, by ordinal; not part of what the stack declares for the pool.
        absent: ordinals that an autoscaler currently leaves out; likewise.
    """

    name: str = field(metadata={"keys": (Key("name", read=str),)})
    group: str
    zone: str
    region: str
    replicas: int = field(metadata={"keys": (Key("replicas", replicas_problems, int),)})
    labels: Mapping[str, str] = keyed(
        Key("labels", partial(label_problems, own_too=True), dict, lambda labels: compacted(labels)[0]),
        Key(
            "gpu",
            gpu_problems,
            write=lambda labels: compacted(labels)[1] or None,
            doc="What the labels of GPU Feature Discovery follow from, in their place.",
        ),
    )
    annotations: Mapping[str, str] = keyed(Key("annotations", partial(annotation_problems, own_too=True), dict, dict))
    taints: tuple[Taint, ...] = keyed(Key("taints", taint_problems, taints_from, plain), default=())
    capacity: Mapping[str, str] = keyed(Key("capacity", resource_problems, canonical_resources, dict))
    allocatable: Mapping[str, str] = keyed(Key("allocatable", resource_problems, canonical_resources, dict))
    node_info: NodeInfo = keyed(Key("nodeInfo", node_info_problems, write=plain), default=NodeInfo())
    declared_features: tuple[str, ...] | None = keyed(
        Key("declaredFeatures", feature_problems, features_from, lambda names: None if names is None else [*names]),
        default=None,
    )
    topology: Topology | None = keyed(Key("topology", topology_problems, topology_from, _plain_or_none), default=None)
    devices: Devices | None = keyed(Key("resourceSlices", devices_problems, devices_from, _plain_or_none), default=None)
    shards: int = keyed(
        Key("shards", partial(whole_problems, least=1, most=MOST_SHARDS), int, lambda n: n if n > 1 else None),
        default=1,
    )
    nodes: tuple[NamedNode, ...] = keyed(
        Key(
            "nodes",
            partial(named_nodes_problems, own_too=True),
            named_nodes_from,
            lambda nodes: [node.to_plain() for node in nodes] or None,
        ),
        default=(),
    )
    bounds: Bounds | None = keyed(
        Key(
            "minReplicas",
            write=lambda bounds: bounds and bounds.least,
            type=int,
            doc="The fewest nodes that an autoscaler leaves; 0 without.",
        ),
        Key(
            "maxReplicas",
            write=lambda bounds: bounds and bounds.most,
            type=int,
            doc="The most nodes that an autoscaler makes; with it, `replicas` is for the start.",
        ),
        default=None,
    )
    faults: Mapping[int, tuple[ActiveFault, ...]] = field(default_factory=dict, compare=False)
    absent: frozenset[int] = field(default=frozenset(), compare=False)

    @property
    def cluster(self) -> str:
        """The cluster's name; empty when no label names it."""
        return self.labels.get(CLUSTER_LABEL, "")

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

    def ordinal_of(self, name: str) -> int | None:
        """The ordinal of a node that has the pool's name with it; None for another name."""
        prefix, _, digits = name.rpartition("-")
        if prefix != self.name or not (digits.isascii() and digits.isdecimal()):
            return None
        # 07 is no number of a node.
        return int(digits) if str(int(digits)) == digits else None

    def named(self, ordinal: int) -> NamedNode | None:
        """One node's own name, labels and cordon; None for a node that the pool does not name."""
        return self.nodes[ordinal] if 0 <= ordinal < len(self.nodes) else None

    def labels_of(self, ordinal: int) -> dict[str, str]:
        """The labels that set one node apart: where it stands, those of its own, its shard."""
        named = self.named(ordinal)
        return {
            **(self.topology.labels(self.name, ordinal) if self.topology else {}),
            **(named.labels if named else {}),
            **shard_labels(self.name, ordinal, self.shards),
        }


def names_of(nodes: NodeSet, pools: Mapping[str, Pool]) -> set[str]:
    """The names of a set of nodes, with their pools by name; those of another pool are its name with their ordinals."""
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
