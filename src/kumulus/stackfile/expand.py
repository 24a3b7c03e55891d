"""From a cluster's description to its node pools: one per group and zone, with all the labels their nodes share."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Literal

from kumulus.model.bounds import Bounds
from kumulus.model.gfd import SIMULATED_POOL_LABEL
from kumulus.model.names import SYSTEM_GROUP, pool_name
from kumulus.model.pools import (
    ARCH_LABEL,
    CLUSTER_LABEL,
    GROUP_LABEL,
    INSTANCE_TYPE_LABEL,
    OS_LABEL,
    POOL_LABEL,
    REGION_LABEL,
    ZONE_LABEL,
    Pool,
    allocatable_of,
    node_info_from,
)
from kumulus.model.shards import shards_for
from kumulus.stackfile.groups import NodeGroup, Placement
from kumulus.stackfile.model import ClusterSpec
from kumulus.stackfile.resource_slices import devices_of, without_extended

Flavour = Literal["kumulus", "kemu"]
"""Whose labels nodes have: ours, or also KEMU's, so that workloads written for KEMU still fit."""

ROLE_LABEL = "kubernetes.io/role"
# Labels of KEMU's nodes that differ from ours, or that ours lack.
KEMU_LABELS = {OS_LABEL: "kemu", ARCH_LABEL: "arm64", "kemu.datastrophic.io/managed": "true"}
SYSTEM_NODES = 2
_SYSTEM_CAPACITY = {"cpu": "64", "memory": "256Gi", "pods": "110"}

_GCP_ZONE = re.compile(r"([a-z]+-[a-z]+[0-9]+)-[a-z]")
_AWS_ZONE = re.compile(r"([a-z]{2}(?:-[a-z]+)+-[0-9]+)[a-z]")
_AZURE_ZONE = re.compile(r"([a-z]{5,}[0-9]?)-[1-4]")
_COMPASS = re.compile(r"north|south|east|west|central")


def pools(spec: ClusterSpec, cluster_name: str, flavour: Flavour = "kumulus") -> list[Pool]:
    """The pools of a cluster, in the order of its groups and their placements.

    Args:
        spec: the cluster.
        cluster_name: the value of the label kumulus.io/cluster.
        flavour: `kemu` adds KEMU's own labels and values.
    """
    made = [
        _pool(group, placement, cluster_name, flavour) for group in spec.nodeGroups for placement in group.placement
    ]
    if spec.runtime_descriptor.local:
        return made
    shards = shards_for(sum(pool.replicas for pool in made), spec.kwokCharts.shards)
    return [replace(pool, shards=shards) for pool in made]


def system_pool(cluster_name: str) -> Pool:
    """The two untainted nodes for the emulated pods of add-ons where no real node runs containers.

    Args:
        cluster_name: the value of the label kumulus.io/cluster.
    """
    labels = {
        **_identity(SYSTEM_GROUP, SYSTEM_GROUP, cluster_name),
        OS_LABEL: "linux",
        ARCH_LABEL: "amd64",
        INSTANCE_TYPE_LABEL: SYSTEM_GROUP,
        "type": "kwok",
        "node-role.kubernetes.io/system": "",
    }
    return Pool(
        name=SYSTEM_GROUP,
        group=SYSTEM_GROUP,
        zone="",
        region="",
        replicas=SYSTEM_NODES,
        labels=labels,
        capacity=dict(_SYSTEM_CAPACITY),
        allocatable=dict(_SYSTEM_CAPACITY),
    )


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


def _pool(group: NodeGroup, placement: Placement, cluster_name: str, flavour: Flavour) -> Pool:
    template = group.nodeTemplate
    operator = group.gpuOperator
    name = pool_name(group.name, placement.availabilityZone)
    simulated = {SIMULATED_POOL_LABEL: operator.simulatedPool or group.name} if operator else {}
    added = _labels(group, placement, flavour) if template.metadata.defaults else {}
    labels = {**added, **simulated, **template.metadata.labels}
    labels |= _identity(group.name, name, cluster_name)
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
        topology=group.topology.topology() if group.topology else None,
        devices=devices_of(group.resourceSlices, template.capacity, labels),
        nodes=placement.nodes,
        bounds=None if group.maxReplicas is None else Bounds(group.minReplicas or 0, group.maxReplicas),
    )


def _labels(group: NodeGroup, placement: Placement, flavour: Flavour) -> dict[str, str]:
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


def _identity(group: str, pool: str, cluster_name: str) -> dict[str, str]:
    return {CLUSTER_LABEL: cluster_name, GROUP_LABEL: group, POOL_LABEL: pool}
