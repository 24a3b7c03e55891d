"""From a cluster's description to its node pools: one per group and zone, with all the labels their nodes share."""

from dataclasses import replace

from kumulus import toolchain
from kumulus.model.names import SYSTEM_GROUP
from kumulus.model.pools import ARCH_LABEL, INSTANCE_TYPE_LABEL, OS_LABEL, NodeInfo, Pool
from kumulus.model.scale import shards_for
from kumulus.stackfile.groups import Flavour, identity_labels, pool_of
from kumulus.stackfile.model import ClusterSpec

SYSTEM_NODES = 2
_SYSTEM_CAPACITY = {"cpu": "64", "memory": "256Gi", "pods": "110"}


def pools(spec: ClusterSpec, cluster_name: str, flavour: Flavour = "kumulus", kubelet: str = "") -> list[Pool]:
    """The pools of a cluster, in the order of its groups and their placements.

    Args:
        cluster_name: the value of the label kumulus.io/cluster.
        flavour: `kemu` adds KEMU's own labels and values.
        kubelet: the version of nodes whose group names none, such as v1.37.2; where it is empty they say `fake`.
    """
    made = [
        _of_version(pool_of(group, placement, cluster_name, flavour), kubelet)
        for group in spec.nodeGroups
        for placement in group.placement
    ]
    if spec.runtime_descriptor.local:
        return made
    shards = shards_for(sum(pool.replicas for pool in made), spec.kwokCharts.shards)
    return [replace(pool, shards=shards) for pool in made]


def kubelet_version(spec: ClusterSpec) -> str:
    """The version of a cluster, and so of its nodes' kubelets; empty where the stack does not decide it."""
    if spec.kubernetesVersion:
        return spec.kubernetesVersion
    return f"v{toolchain.kubernetes_versions()[0]}" if spec.runtime_descriptor.local else ""


def _of_version(pool: Pool, kubelet: str) -> Pool:
    """The pool with this version of its kubelets, unless its group names one, or the version is empty."""
    info = pool.node_info
    if not kubelet or info.kubelet_version != NodeInfo().kubelet_version:
        return pool
    return replace(pool, node_info=replace(info, kubelet_version=kubelet))


def system_pool(cluster_name: str, kubelet: str) -> Pool:
    """The two untainted nodes for the emulated pods of add-ons where no real node runs containers."""
    labels = {
        **identity_labels(SYSTEM_GROUP, SYSTEM_GROUP, cluster_name),
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
        node_info=NodeInfo(kubelet_version=kubelet),
    )
