"""Node groups as the stack file has them: where nodes stand, how many, and what each of them is like."""

# ruff: noqa: N815 - fields are called what the file calls them, so that a path in an error is a path in the code

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from spec.fields import (
    Allocatable,
    Annotations,
    Capacity,
    GroupName,
    Labels,
    LabelValue,
    NodeInfoFields,
    Replicas,
    Section,
    Taints,
    checked,
)
from spec.group_topology import GroupTopology
from spec.pools import Taint
from spec.resource_slices import ResourceSlices
from spec.shapes import gpu_product_problems, instance_type_problems

KWOK_TAINT = Taint("kwok.x-k8s.io/node", "fake", "NoSchedule")
"""Keeps pods off emulated nodes unless they ask for them; a template without `taints` has it."""


class Metadata(Section):
    """Labels and annotations of every node of a group; labels win over those Kumulus gives."""

    labels: Labels = Field(default_factory=dict, examples=["{example.com/team: search}"])
    annotations: Annotations = Field(default_factory=dict, examples=["{example.com/note: text}"])


class NodeTemplate(Section):
    """What every node of a group is like.

    Args:
        metadata: labels and annotations.
        taints: KWOK's taint unless given; an empty list means none.
        capacity: resource names to quantities, kept in canonical form; `pods` is required.
        allocatable: what pods can have of the capacity; resources left out are allocatable in full.
        nodeInfo: architecture, operatingSystem and kubeletVersion, where they are not to follow the labels.
    """

    metadata: Metadata = Field(default_factory=Metadata, examples=["{labels: {example.com/team: search}}"])
    taints: Taints = Field(default=(KWOK_TAINT,), examples=["[]"])
    capacity: Capacity = Field(examples=['{cpu: "96", memory: 1360Gi, pods: "110"}'])
    allocatable: Allocatable = Field(default_factory=dict, examples=['{cpu: "95"}'])
    nodeInfo: NodeInfoFields = Field(default_factory=dict, examples=["{architecture: arm64}"])


class Placement(Section):
    """How many nodes of a group stand in one zone.

    Args:
        availabilityZone: the zone's name, part of the nodes' names and their zone label.
        replicas: number of nodes, 0 to 100,000.
        region: the zone's region; empty means the one the zone's name tells, if it does.
    """

    availabilityZone: GroupName = Field(examples=["us-east1-b"])
    replicas: Replicas = Field(examples=["5"])
    region: LabelValue = Field(default="", examples=["us-east1"])


class GpuOperator(Section):
    """What a GPU operator is to find on the nodes of a group.

    Args:
        simulatedPool: the fake GPU operator's pool that the nodes belong to, the value of the label
            run.ai/simulated-gpu-node-pool; empty means the group's name.
    """

    simulatedPool: LabelValue = Field(default="", examples=["a100"])


class NodeGroup(Section):
    """Nodes that are alike, in one or more zones.

    Args:
        name: part of the nodes' names, and their instance type where none is given.
        placement: one entry per zone.
        instanceType: a machine of the catalog, which completes the template; empty for none.
        gpuProduct: the GPUs' product, where it is not the instance type's; empty for that.
        gpuOperator: set when the fake GPU operator is to know the nodes.
        topology: where the nodes stand in the network; None for nowhere in particular.
        nodeTemplate: what each node is like.
        resourceSlices: the devices each node publishes for Dynamic Resource Allocation.
    """

    name: GroupName = Field(examples=["a2-ultragpu-8g"])
    placement: list[Placement] = Field(examples=["[{availabilityZone: us-east1-b, replicas: 5}]"])
    instanceType: Annotated[str, checked(instance_type_problems)] = Field(default="", examples=["a3-highgpu-8g"])
    gpuProduct: Annotated[str, checked(gpu_product_problems)] = Field(default="", examples=["NVIDIA-L40S"])
    gpuOperator: GpuOperator | None = Field(default=None, examples=["{simulatedPool: a100}"])
    topology: GroupTopology | None = Field(default=None, examples=["{nodesPerRack: 16, racksPerBlock: 8}"])
    nodeTemplate: NodeTemplate = Field(examples=['{capacity: {cpu: "96", memory: 1360Gi, pods: "110"}}'])
    resourceSlices: ResourceSlices | None = Field(default=None, examples=["{driver: gpu.nvidia.com, count: 8}"])
