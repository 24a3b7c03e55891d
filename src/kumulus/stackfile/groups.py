"""Node groups in the stack file: where their nodes are, what each of them has, and the pools that they become."""

import re
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from kumulus.model.fields import (
    COMPLETED,
    FORM,
    Allocatable,
    Annotations,
    Capacity,
    DeclaredFeatures,
    GroupName,
    Labels,
    LabelValue,
    NodeInfoFields,
    Replicas,
    Section,
    Taints,
    checked,
)
from kumulus.model.gfd import SIMULATED_POOL_LABEL
from kumulus.model.named_nodes import NamedNode, named_nodes_from, named_nodes_problems
from kumulus.model.names import pool_name
from kumulus.model.pools import (
    ARCH_LABEL,
    CLUSTER_LABEL,
    GROUP_LABEL,
    INSTANCE_TYPE_LABEL,
    OS_LABEL,
    POOL_LABEL,
    REGION_LABEL,
    ZONE_LABEL,
    Bounds,
    Pool,
    Taint,
    allocatable_of,
    node_info_from,
)
from kumulus.stackfile.group_topology import VOLCANO, ZONES, GroupTopology
from kumulus.stackfile.resource_slices import ResourceSlices, devices_of, without_extended
from kumulus.stackfile.shapes import GpuProductName, InstanceTypeName

KWOK_TAINT = Taint("kwok.x-k8s.io/node", "fake", "NoSchedule")
"""Keeps pods off emulated nodes unless they tolerate it; a template without `taints` has it."""

Flavour = Literal["kumulus", "kemu"]
"""Whose labels nodes have: ours, or also KEMU's, so that workloads written for KEMU still fit."""

ROLE_LABEL = "kubernetes.io/role"
# Labels of KEMU's nodes that differ from ours, or that ours lack.
KEMU_LABELS = {OS_LABEL: "kemu", ARCH_LABEL: "arm64", "kemu.datastrophic.io/managed": "true"}

_GCP_ZONE = re.compile(r"([a-z]+-[a-z]+[0-9]+)-[a-z]")
_AWS_ZONE = re.compile(r"([a-z]{2}(?:-[a-z]+)+-[0-9]+)[a-z]")
_AZURE_ZONE = re.compile(r"([a-z]{5,}[0-9]?)-[1-4]")
_COMPASS = re.compile(r"north|south|east|west|central")

NamedNodes = Annotated[tuple[NamedNode, ...], checked(named_nodes_problems, named_nodes_from, form="namedNodes")]


class MetadataSpec(Section):
    """Labels and annotations of every node of a group; labels override those that Kumulus sets."""

    labels: Labels = Field(default_factory=dict, examples=["{example.com/team: search}"])
    """Labels of every node of the group; they override those that Kumulus sets."""
    annotations: Annotations = Field(default_factory=dict, examples=["{example.com/note: text}"])
    """Annotations of every node of the group."""
    defaults: bool = Field(default=True, examples=["false"])
    """Whether nodes also have the usual labels: architecture, operating system, role, instance type, zone, region and
    type. If not, they have only the labels given here, as a captured cluster's nodes do."""


class NodeTemplate(Section):
    """What every node of a group has."""

    metadata: MetadataSpec = Field(default_factory=MetadataSpec, examples=["{labels: {example.com/team: search}}"])
    """Labels and annotations of every node of the group."""
    taints: Taints = Field(default=(KWOK_TAINT,), examples=["[]"])
    """Taints of every node; an empty list means none."""
    capacity: Capacity = Field(
        json_schema_extra={COMPLETED: True}, examples=['{cpu: "96", memory: 1360Gi, pods: "110"}']
    )
    """Resource names to quantities; `pods` is required unless an instance type provides it."""
    allocatable: Allocatable = Field(default_factory=dict, examples=['{cpu: "95"}'])
    """How much of the capacity pods can use; resources left out are allocatable in full."""
    nodeInfo: NodeInfoFields = Field(default_factory=dict, examples=["{architecture: arm64}"])
    """Architecture, operating system and kubelet version, if they should not follow the labels."""
    declaredFeatures: DeclaredFeatures | None = Field(
        default=None, examples=["[ExtendWebSocketsToKubelet, RestartAllContainersOnContainerExits]"]
    )
    """The features of Kubernetes that every node declares to the scheduler and the API server, an empty list for none;
    by default those of its kubelet's version. Kubernetes 1.35 keeps them only with the gate NodeDeclaredFeatures."""


class PlacementSpec(Section):
    """How many nodes of a group are in one zone."""

    availabilityZone: GroupName = Field(examples=["us-east1-b"])
    """The zone's name, part of the nodes' names and their zone label."""
    replicas: Replicas = Field(examples=["5"])
    """How many nodes are in the zone."""
    region: LabelValue = Field(default="", examples=["us-east1"])
    """The zone's region; by default derived from the zone's name, if possible."""
    nodes: NamedNodes = Field(
        default=(), examples=["[{name: ip-10-0-3-17, labels: {example.com/rack: r3}}, {name: ip-10-0-3-18}]"]
    )
    """The nodes by name, one for each replica, if their names should not be made of group, zone and number; a node's
    own labels override the group's."""


class GpuOperator(Section):
    """What a GPU operator finds on the nodes of a group."""

    simulatedPool: LabelValue = Field(default="", examples=["a100"])
    """The fake GPU operator's pool that the nodes belong to, the value of the label run.ai/simulated-gpu-node-pool; by
    default the group's name."""


class NodeGroup(Section):
    """Nodes that are alike, in one or more zones."""

    model_config = ConfigDict(json_schema_extra={FORM: "nodeGroupRules"})

    name: GroupName = Field(examples=["a2-ultragpu-8g"])
    """Part of the nodes' names, and their default instance type."""
    placement: list[PlacementSpec] = Field(examples=["[{availabilityZone: us-east1-b, replicas: 5}]"])
    """Where the nodes are: an item for each availability zone."""
    instanceType: InstanceTypeName = Field(default="", examples=["a3-highgpu-8g"])
    """A machine of the catalog (docs/fleets.md), which completes the template."""
    gpuProduct: GpuProductName = Field(default="", examples=["NVIDIA-L40S"])
    """The GPUs' product, if it is not the instance type's."""
    gpuOperator: GpuOperator | None = Field(default=None, examples=["{simulatedPool: a100}"])
    """Labels the nodes for the fake GPU operator."""
    topology: GroupTopology | None = Field(default=None, examples=["{nodesPerRack: 16, racksPerBlock: 8}"])
    """Where the nodes are in the network; by default nowhere in particular."""
    nodeTemplate: NodeTemplate = Field(
        json_schema_extra={COMPLETED: True}, examples=['{capacity: {cpu: "96", memory: 1360Gi, pods: "110"}}']
    )
    """What every node of the group has; required unless an instance type provides it."""
    minReplicas: Replicas | None = Field(default=None, examples=["1"])
    """The fewest nodes that cluster-autoscaler leaves in each zone; by default none."""
    maxReplicas: Replicas | None = Field(default=None, examples=["20"])
    """The most nodes that cluster-autoscaler creates in each zone (docs/autoscalers.md). If given, the autoscaler sets
    the number of nodes, and `replicas` is the initial one."""
    resourceSlices: ResourceSlices | None = Field(default=None, examples=["{driver: gpu.nvidia.com, count: 8}"])
    """The devices that each node publishes for Dynamic Resource Allocation."""

    @property
    def has_hyper_nodes(self) -> bool:
        """Whether Volcano finds the positions of its nodes by HyperNodes."""
        return self.topology is not None and self.topology.preset == VOLCANO


def region_of(zone: str) -> str:
    """The region in a zone's name, by the conventions of three clouds; empty when there is none.

    `us-east1-b` (Google) is in us-east1, `us-east-1a` (Amazon) in us-east-1, `eastus-1` (Azure) in eastus.
    """
    for pattern in (_GCP_ZONE, _AWS_ZONE, _AZURE_ZONE):
        match = pattern.fullmatch(zone)
        # All three clouds name regions by a place and a compass point, which distinguishes eastus-1 from racks-1.
        if match and _COMPASS.search(match[1]):
            return match[1]
    return ""


def pool_of(group: NodeGroup, placement: PlacementSpec, cluster_name: str, flavour: Flavour) -> Pool:
    """The nodes of a group in one zone.

    Args:
        group: the group, completed from the catalog.
    """
    template = group.nodeTemplate
    operator = group.gpuOperator
    name = pool_name(group.name, placement.availabilityZone)
    simulated = {SIMULATED_POOL_LABEL: operator.simulatedPool or group.name} if operator else {}
    added = _labels(group, placement, flavour) if template.metadata.defaults else {}
    if group.topology and (key := ZONES.get(group.topology.preset)):
        added[key] = placement.availabilityZone
    labels = {**added, **simulated, **template.metadata.labels}
    labels |= identity_labels(group.name, name, cluster_name)
    return Pool(
        name=name,
        group=group.name,
        zone=labels.get(ZONE_LABEL, ""),
        region=labels.get(REGION_LABEL, ""),
        replicas=placement.replicas,
        labels=labels,
        annotations=dict(template.metadata.annotations),
        taints=template.taints,
        capacity=without_extended(template.capacity, group.resourceSlices),
        allocatable=without_extended(allocatable_of(template.capacity, template.allocatable), group.resourceSlices),
        node_info=node_info_from(template.nodeInfo, labels),
        declared_features=template.declaredFeatures,
        topology=group.topology.topology() if group.topology else None,
        devices=devices_of(group.resourceSlices, template.capacity, labels),
        nodes=placement.nodes,
        bounds=None if group.maxReplicas is None else Bounds(group.minReplicas or 0, group.maxReplicas),
    )


def _labels(group: NodeGroup, placement: PlacementSpec, flavour: Flavour) -> dict[str, str]:
    info = group.nodeTemplate.nodeInfo
    region = placement.region or region_of(placement.availabilityZone)
    return {
        OS_LABEL: info.get("operatingSystem") or "linux",
        ARCH_LABEL: info.get("architecture") or "amd64",
        ROLE_LABEL: "agent",
        INSTANCE_TYPE_LABEL: group.name,
        ZONE_LABEL: placement.availabilityZone,
        **({REGION_LABEL: region} if region else {}),
        "type": "kwok",
        **(KEMU_LABELS if flavour == "kemu" else {}),
    }


def identity_labels(group: str, pool: str, cluster_name: str) -> dict[str, str]:
    """The labels by which the nodes of a pool are found."""
    return {CLUSTER_LABEL: cluster_name, GROUP_LABEL: group, POOL_LABEL: pool}
