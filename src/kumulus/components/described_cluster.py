"""The cluster component that a loaded stack describes: its runtime, and that runtime's options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pulumi

from kumulus.components.control_plane import ControlPlane, type_of
from kumulus.components.existing_cluster import ExistingCluster, KwokPlan, needs_of, secret
from kumulus.components.kind_cluster import KindCluster
from kumulus.components.kwok_cluster import KwokCluster
from kumulus.model.contents import contents
from kumulus.runtimes import registry
from kumulus.stackfile.expand import kubelet_version
from kumulus.stackfile.kwok_options import local_options
from kumulus.stackfile.load import LoadedCluster

CLASSES: tuple[type[ControlPlane], ...] = (KwokCluster, KindCluster, ExistingCluster)
"""The runtimes that programs declare by a class of their own."""
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
        opts=pulumi.ResourceOptions(parent=parent, aliases=_other_runtimes(runtime)),
        prefix=f"{loaded.member}." if loaded.member else "",
    )
    made.kubelet = kubelet_version(loaded.spec)
    return made


def _other_runtimes(runtime: str) -> list[pulumi.Alias]:
    """The cluster's type with other runtimes: a change replaces it, the old one first, as they share a place."""
    return [pulumi.Alias(type_=type_of(each)) for each in registry.NAMES if each != runtime]


def _options(loaded: LoadedCluster, base: Path, kwok: KwokPlan) -> dict[str, Any]:
    """The runtime's options, and what the rest of the stack requires of it."""
    options, runtime = loaded.spec.runtime_options(base), loaded.spec.runtime_descriptor
    if runtime.local:
        options |= local_options(loaded)
    if runtime.outlives_stack:
        options = secret({**options, "needs": needs_of(loaded, kwok)})
    return options


def _contents(loaded: LoadedCluster) -> dict[str, object]:
    """The names by which a later preview knows what is lost with the cluster."""
    system = [loaded.system_pool] if loaded.system_pool else []
    pools = (pool.name for pool in (*loaded.pools, *system))
    faults = (fault.name for fault in loaded.faults)
    nodes = sum(pool.replicas for pool in loaded.pools)
    return contents(faults, pools, nodes=nodes, preview=pulumi.runtime.is_dry_run())
