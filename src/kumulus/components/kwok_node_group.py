"""``KwokNodeGroup``: emulated nodes of one kind, spread over availability zones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Required, TypedDict, Unpack, cast

import pulumi

from kumulus.components.arguments import SectionOf, checked
from kumulus.components.inputs import CheckedInputs, known_part, problems_explained, refused
from kumulus.components.mistakes import collected
from kumulus.components.resources import ClusterLike, InCluster, depended_on
from kumulus.model.errors import Where, path_text
from kumulus.model.names import node_name
from kumulus.model.plain import camel
from kumulus.model.pool_form import pool_to_properties
from kumulus.model.pools import Pool
from kumulus.stackfile.expand import pools as expand
from kumulus.stackfile.groups import MetadataSpec
from kumulus.stackfile.model import ClusterSpec

_METADATA = ("labels", "annotations")
# Arguments that a group of the stack file has, and its node template.
_OF_GROUP = ("instance_type", "gpu_product", "gpu_operator", "resource_slices", "topology")
_OF_TEMPLATE = ("node_info", "declared_features", "capacity", "allocatable", "taints")
_TEMPLATE = "nodeGroups[0].nodeTemplate."
_NAMES = {
    "nodeGroups[0].name": "resource_name",
    f"{_TEMPLATE}metadata.defaults": "default_labels",
    f"{_TEMPLATE}metadata.": "",
    **{f"{_TEMPLATE}{camel(name)}": name for name in _OF_TEMPLATE},
    _TEMPLATE: "",
    "nodeGroups[0].placement": "zones",
    **{f"nodeGroups[0].{camel(name)}": name for name in _OF_GROUP},
    "nodeGroups[0].": "",
    "nodeGroups[0]": "zones",
}


class KwokNodeGroupArgs(TypedDict, total=False):
    """Arguments of a KwokNodeGroup."""

    cluster: Required[ClusterLike]
    """The cluster that the nodes belong to."""
    zones: Required[Mapping[str, int]]
    """How many nodes are in which availability zone, such as ``{"us-east1-b": 5}``. Each zone is a resource of its own,
    a node pool."""
    regions: Mapping[str, str]
    """The region of a zone whose name does not imply it, such as ``{"rack-a": "site-1"}``."""
    named_nodes: Mapping[str, Sequence[Mapping[str, Any]]]
    """The names of a zone's nodes, as many as it has, instead of ``<group>-<zone>-<number>``, such as ``{"us-east1-b":
    [{"name": "ip-10-0-3-17", "labels": {"example.com/rack": "r3"}}]}``."""
    capacity: Mapping[str, Any]
    """Quantities by resource, such as ``{"cpu": 96, "memory": "1360Gi", "pods": 110}``; with an instance type, only
    those that differ from it."""
    allocatable: Mapping[str, Any]
    """Quantities by resource that pods can use. Default for each: the capacity."""
    labels: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Labels of every node. To override one that Kumulus sets itself, give it as plain text."""
    default_labels: bool
    """Whether nodes also have the usual labels, such as architecture, zone and instance type. Default: True."""
    annotations: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Annotations of every node."""
    taints: Sequence[Mapping[str, str]]
    """Such as ``[{"key": "k", "value": "v", "effect": "NoSchedule"}]``; ``[]`` for none. Default: KWOK's own taint."""
    node_info: Mapping[str, str]
    """architecture, operatingSystem and kubeletVersion, where they should differ from what the labels imply."""
    declared_features: Sequence[str]
    """The features of Kubernetes that every node declares, ``[]`` for none. Default: those of its kubelet's version."""
    instance_type: str
    """A machine of the catalog, such as ``a3-highgpu-8g``, which completes the capacity and the labels."""
    gpu_product: str
    """The GPUs' product, such as ``NVIDIA-L40S``, if it is not the instance type's."""
    gpu_operator: Annotated[Mapping[str, Any], SectionOf("kumulus.stackfile.groups:GpuOperator")]
    """Makes the fake GPU operator recognise the nodes: ``{}``, or ``{"simulatedPool": "a100"}``."""
    topology: Annotated[Mapping[str, Any], SectionOf("kumulus.stackfile.group_topology:GroupTopology")]
    """The position of the nodes in the network, such as ``{"nodesPerRack": 16, "racksPerBlock": 8}``."""
    resource_slices: Annotated[Mapping[str, Any], SectionOf("kumulus.stackfile.resource_slices:ResourceSlices")]
    """The devices that each node publishes for Dynamic Resource Allocation, such as ``{"count": 8}``; a
    :class:`kumulus.DeviceClass` is declared separately."""
    shards: int
    """How many kwok-controllers of the cluster share the nodes. Default: 1."""


@collected
class KwokNodeGroup(pulumi.ComponentResource):
    """A node group: one ``kumulus:index:NodePool`` per availability zone.

    Args:
        resource_name: its name in the stack, and the group's name: nodes are ``<group>-<zone>-<ordinal>``.
        opts: Pulumi's resource options; what they depend on is there before any of the nodes.

    Attributes:
        pools: its node pools, as far as they are known when the program runs.
        resources: by pool name: the ``kumulus:index:NodePool``.
    """

    nodes: pulumi.Output[int]
    """How many nodes there are."""

    def __init__(
        self, resource_name: str, *, opts: pulumi.ResourceOptions | None = None, **args: Unpack[KwokNodeGroupArgs]
    ) -> None:
        source = f"KwokNodeGroup {resource_name}"
        # Before the checks: otherwise a fault would say that a group with a mistake is not there. What is passed as a
        # cluster may be none, which the checks say.
        getattr(args.get("cluster"), "groups", []).append(self)
        with checked(args, KwokNodeGroupArgs, source) as wrong:
            zones = args.get("zones") or {}
            for place in _unknown_zones(args):
                remedy = f"write one of {', '.join(zones) or 'the zones'}, or leave it out"
                wrong.add(path_text(place), "is none of the zones", remedy)
            with problems_explained(source, _names(zones)):
                spec = ClusterSpec.checked({"nodeGroups": [_group(resource_name, args)]})
                cluster = args["cluster"]
                expanded = expand(spec, cluster.cluster_name, kubelet=cluster.kubelet_version)
            for pool, other in _of_taken_names(expanded, cluster.groups):
                message = f"makes the same node names as the group {other}, such as {node_name(pool.name, 0)}"
                wrong.add(path_text(("zones", pool.zone)), message, "rename one of the two groups or zones")
            metadata = CheckedInputs(MetadataSpec, source, {key: args.get(key) for key in _METADATA}, {})
        found = [replace(pool, shards=args.get("shards") or 1) for pool in expanded]
        further = {pool.name: _known_later(metadata, pool, source) for pool in found}
        self._declare(resource_name, cluster, found, opts, depended_on(opts), further)

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

        Its name in the stack has the cluster's prefix. The nodes may depend on KWOK in the cluster.
        """
        group = cls.__new__(cls)
        group._declare(f"{cluster.prefix}{resource_name}", cluster, pools, opts, depends_on, {})
        return group

    def _declare(
        self,
        resource_name: str,
        cluster: ClusterLike,
        pools: Sequence[Pool],
        opts: pulumi.ResourceOptions | None,
        depends_on: Sequence[Any],
        further: Mapping[str, Mapping[str, Any]],
    ) -> None:
        """Declare the group.

        Args:
            further: properties that are known later, by pool.
        """
        # Before anything is declared, which is refused after a mistake: faults are checked against them all the same.
        self.pools = list(pools)
        super().__init__("kumulus:index:KwokNodeGroup", resource_name, None, opts)
        self.resources = {
            pool.name: InCluster(
                "kumulus:index:NodePool",
                f"{cluster.prefix}{pool.name}",
                cluster,
                {**pool_to_properties(pool), **further.get(pool.name, {})},
                # Nodes are lost with their control plane: deleting thousands one by one first would be useless.
                pulumi.ResourceOptions(parent=self, depends_on=list(depends_on), deleted_with=cluster.deleted_with),
            )
            for pool in pools
        }
        count = sum(pool.replicas for pool in pools)
        self.nodes = pulumi.Output.from_input(count)
        # For faults of programs in other languages, which are constructed in another process.
        self.register_outputs({"nodes": count, "poolUrns": [pool.urn for pool in self.resources.values()]})


def _unknown_zones(args: Mapping[str, Any]) -> list[Where]:
    """Where arguments name a zone that ``zones`` has not; empty if ``zones`` is not known."""
    known = args.get("zones")
    if known is None:
        return []
    by_zone = {"regions": args.get("regions") or {}, "named_nodes": args.get("named_nodes") or {}}
    return [(argument, zone) for argument, zones in by_zone.items() for zone in zones if zone not in known]


def _of_taken_names(pools: Sequence[Pool], groups: Sequence[object]) -> list[tuple[Pool, str]]:
    """Pools that have the name of a pool of another group, each with that group's name."""
    # By vars: a group with mistakes has no pools, and raises when it is asked for them.
    there = {pool.name: pool.group for group in groups for pool in vars(group).get("pools", ())}
    return [(pool, there[pool.name]) for pool in pools if there.get(pool.name, pool.group) != pool.group]


def _group(name: str, args: KwokNodeGroupArgs) -> dict[str, Any]:
    """The group as in the stack file, without the values that are known later."""
    zones, regions, named = args.get("zones") or {}, args.get("regions") or {}, args.get("named_nodes") or {}
    template = {
        "metadata": {**{key: known_part(args.get(key)) for key in _METADATA}, "defaults": args.get("default_labels")},
        **{camel(key): args.get(key) for key in _OF_TEMPLATE},
    }
    placement = [
        {"availabilityZone": zone, "replicas": replicas, "region": regions.get(zone), "nodes": named.get(zone)}
        for zone, replicas in zones.items()
    ]
    return {
        "name": name,
        "placement": placement,
        "nodeTemplate": {key: value for key, value in template.items() if value is not None},
        **{camel(key): args.get(key) for key in _OF_GROUP},
    }


def _known_later(metadata: CheckedInputs[MetadataSpec], pool: Pool, source: str) -> dict[str, Any]:
    """The properties of a pool whose labels or annotations are outputs, merged with the known ones."""
    plain = pool_to_properties(pool)
    # Zones, architectures and GPUs are read from these.
    set_by_kumulus = pool.labels.keys() - metadata.plain.labels.keys()

    def merged(key: str, own: Mapping[str, Any]) -> dict[str, Any]:
        for label in own if key == "labels" else ():
            if label in set_by_kumulus or label.startswith("nvidia.com/"):
                message = "is a label that Kumulus sets, and an output: other properties follow from it"
                raise refused(source, path_text(("labels", label)), message, "write a plain text")
        return {**cast(Mapping[str, Any], plain[key]), **own}

    found: dict[str, Any] = {}
    for key in _METADATA:
        if metadata.is_later(key):
            own = metadata[key]
            if isinstance(own, pulumi.Output):
                found[key] = own.apply(partial(merged, key))
            else:
                found[key] = merged(key, {name: text for name, text in own.items() if isinstance(text, pulumi.Output)})
    return found


def _names(zones: Mapping[str, int]) -> dict[str, str]:
    """The arguments' names in a program, by the path in the group."""
    found = dict(_NAMES)
    for index, zone in enumerate(zones):
        here = f"nodeGroups[0].placement[{index}]"
        found |= {
            here: path_text(("zones", zone)),
            f"{here}.availabilityZone": path_text(("zones", zone)),
            f"{here}.replicas": path_text(("zones", zone)),
            f"{here}.region": path_text(("regions", zone)),
            f"{here}.nodes": path_text(("named_nodes", zone)),
        }
    return found
