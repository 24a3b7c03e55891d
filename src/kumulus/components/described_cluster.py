"""The cluster component that a loaded stack describes: its runtime, and that runtime's options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pulumi

from kumulus.components.control_plane import ControlPlane, type_of
from kumulus.components.existing_cluster import ExistingCluster, KwokPlan, needs_of, with_secret_kubeconfig
from kumulus.components.kind_cluster import KindCluster
from kumulus.components.kwok_cluster import KwokCluster
from kumulus.model.contents import contents
from kumulus.runtimes import registry
from kumulus.stackfile.expand import kubelet_version
from kumulus.stackfile.kwok_options import local_options
from kumulus.stackfile.load import LoadedCluster

CLASSES: tuple[type[ControlPlane], ...] = (KwokCluster, KindCluster, ExistingCluster)
"""The component classes of the core's runtimes; clusters of an extra's runtime are plain ControlPlanes."""
_COMPONENTS = {each.runtime: each for each in CLASSES}


def control_plane(
    resource_name: str, loaded: LoadedCluster, base: Path, plan: KwokPlan, parent: pulumi.Resource
) -> ControlPlane:
    """Declare the cluster."""
    runtime = loaded.spec.runtime
    made = _COMPONENTS.get(runtime, ControlPlane).declared(
        resource_name,
        runtime,
        _options(loaded, base, plan),
        cluster_name=loaded.cluster_name,
        kubernetes_version=loaded.spec.kubernetesVersion,
        contents=_contents(loaded),
        opts=pulumi.ResourceOptions(parent=parent, aliases=_aliases(runtime)),
        prefix=f"{loaded.member}." if loaded.member else "",
    )
    made.kubelet_version = kubelet_version(loaded.spec)
    return made


def _aliases(runtime: str) -> list[pulumi.Alias]:
    """Aliases with the other runtimes' types.

    A change of the runtime then replaces the cluster instead of adding one, the old one first: both use the same place.
    """
    return [pulumi.Alias(type_=type_of(each)) for each in registry.NAMES if each != runtime]


def _options(loaded: LoadedCluster, base: Path, plan: KwokPlan) -> dict[str, Any]:
    """The runtime's options, and what the rest of the stack requires of it."""
    options, runtime = loaded.spec.runtime_options(base), loaded.spec.runtime_descriptor
    if runtime.local:
        options |= local_options(loaded)
    if runtime.outlives_stack:
        options = with_secret_kubeconfig({**options, "needs": needs_of(loaded, plan)})
    return options


def _contents(loaded: LoadedCluster) -> dict[str, object]:
    """The names by which a later preview knows what is lost with the cluster."""
    # The add-ons' pool is named, as it is lost, too; the number is that of the nodes that the stack file asks for.
    system = [loaded.system_pool] if loaded.system_pool else []
    pools = (pool.name for pool in (*loaded.pools, *system))
    faults = (fault.name for fault in loaded.faults)
    nodes = sum(pool.replicas for pool in loaded.pools)
    return contents(faults, pools, nodes=nodes, preview=pulumi.runtime.is_dry_run())
