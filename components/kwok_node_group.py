"""``KwokNodeGroup``: emulated nodes of one kind, spread over availability zones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi

from components.resources import ClusterLike, NodePool
from spec.errors import SpecError
from spec.expand import pools as expand
from spec.model import ClusterSpec
from spec.pools import Pool


class KwokNodeGroup(pulumi.ComponentResource):
    """A node group: one ``kumulus:index:NodePool`` per availability zone.

    Args:
        resource_name: its name in the stack, and the group's name: nodes are ``<group>-<zone>-<ordinal>``.
        cluster: the cluster component the nodes belong to.
        zones: how many nodes in which availability zone, such as ``{"use1": 5}``.
        capacity: quantities by resource, such as ``{"cpu": "96", "memory": "1360Gi", "pods": "110"}``; with an
            instance type, only what differs from it.
        labels, annotations: set on every node.
        taints: such as ``[{"key": "k", "value": "v", "effect": "NoSchedule"}]``; KWOK's own taint when None.
        allocatable: quantities by resource; the capacity where it names none.
        instance_type: a machine of the catalog, such as ``a3-highgpu-8g``.
        gpu_product: such as ``NVIDIA-L40S``, where it is not the instance type's.
        topology: as the stack file's ``topology``, such as ``{"nodesPerRack": 16, "racksPerBlock": 8}``.
        resource_slices: devices for Dynamic Resource Allocation, as the stack file's ``resourceSlices``; a
            :class:`components.DeviceClass` is declared apart.
        opts: Pulumi's resource options.

    Raises:
        pulumi.RunError: an argument is not valid; the message has each one's path and what to write instead.
    """

    def __init__(
        self,
        resource_name: str,
        *,
        cluster: ClusterLike,
        zones: Mapping[str, int],
        capacity: Mapping[str, str | int] | None = None,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        taints: Sequence[Mapping[str, str]] | None = None,
        allocatable: Mapping[str, str | int] | None = None,
        instance_type: str | None = None,
        gpu_product: str | None = None,
        topology: Mapping[str, Any] | None = None,
        resource_slices: Mapping[str, Any] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        template: dict[str, Any] = {
            "metadata": {"labels": dict(labels or {}), "annotations": dict(annotations or {})},
            "capacity": dict(capacity) if capacity is not None else None,
        }
        if taints is not None:
            template["taints"] = [dict(taint) for taint in taints]
        if allocatable is not None:
            template["allocatable"] = dict(allocatable)
        placement = [{"availabilityZone": zone, "replicas": replicas} for zone, replicas in zones.items()]
        group = {
            "name": resource_name,
            "placement": placement,
            "instanceType": instance_type,
            "gpuProduct": gpu_product,
            "topology": topology,
            "nodeTemplate": template,
            "resourceSlices": dict(resource_slices) if resource_slices is not None else None,
        }
        try:
            found = expand(ClusterSpec.checked({"nodeGroups": [group]}), cluster.cluster_name)
        except SpecError as error:
            raise pulumi.RunError(str(error)) from None
        self._declare(resource_name, cluster, found, opts)

    @classmethod
    def of_pools(
        cls,
        resource_name: str,
        cluster: ClusterLike,
        pools: Sequence[Pool],
        opts: pulumi.ResourceOptions,
        depends_on: Sequence[pulumi.Resource] = (),
    ) -> KwokNodeGroup:
        """Declare a group of pools that are already expanded, as a loaded stack file has them.

        Args:
            resource_name: as for the class.
            cluster: likewise.
            pools: its pools.
            opts: as for the class.
            depends_on: what the nodes need, such as KWOK where it is installed in the cluster.
        """
        group = cls.__new__(cls)
        group._declare(resource_name, cluster, pools, opts, depends_on)
        return group

    def _declare(
        self,
        resource_name: str,
        cluster: ClusterLike,
        pools: Sequence[Pool],
        opts: pulumi.ResourceOptions | None,
        depends_on: Sequence[pulumi.Resource] = (),
    ) -> None:
        super().__init__("kumulus:index:KwokNodeGroup", resource_name, None, opts)
        self.pools = [
            NodePool(
                pool.name,
                pool=pool,
                cluster=cluster,
                # Nodes die with their control plane: destroying thousands one by one first would be for nothing.
                opts=pulumi.ResourceOptions(parent=self, depends_on=list(depends_on), deleted_with=cluster.end),
            )
            for pool in pools
        ]
        self.by_pool = list(zip(pools, self.pools, strict=True))
        self.nodes = sum(pool.replicas for pool in pools)
        self.register_outputs({"nodes": self.nodes})
