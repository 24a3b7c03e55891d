"""The cluster component that a loaded stack describes: by which runtime it is had, with which options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pulumi

from kumulus.components.control_plane import ControlPlane
from kumulus.components.existing_cluster import ExistingCluster, options_of
from kumulus.components.kind_cluster import KindCluster
from kumulus.components.kind_cluster import options_of as kind_options
from kumulus.components.kwok_cluster import KwokCluster
from kumulus.components.kwok_plan import KwokPlan
from kumulus.model.contents import contents
from kumulus.stackfile.kwok_options import cluster_options
from kumulus.stackfile.load import Loaded

_CLUSTERS: dict[str, type[ControlPlane]] = {each.runtime: each for each in (KwokCluster, KindCluster, ExistingCluster)}


def control_plane(
    resource_name: str, loaded: Loaded, base: Path, plan: KwokPlan, parent: pulumi.Resource
) -> ControlPlane:
    """Declare it.

    Args:
        resource_name: its name in the stack.
        loaded: the stack.
        base: the project's directory.
        plan: what becomes of KWOK in it.
        parent: the component it belongs to.
    """
    runtime = loaded.spec.runtime
    return _CLUSTERS[runtime].declared(
        resource_name,
        _options(loaded, base, plan),
        cluster_name=loaded.cluster_name,
        kubernetes_version=loaded.spec.kubernetesVersion,
        contents=_contents(loaded),
        opts=pulumi.ResourceOptions(parent=parent, aliases=_other_runtimes(runtime)),
    )


def _other_runtimes(runtime: str) -> list[pulumi.Alias]:
    """What the cluster was called with another runtime: it is replaced, the old one first, as they share a place."""
    return [pulumi.Alias(type_=each.token) for each in _CLUSTERS.values() if each.runtime != runtime]


def _options(loaded: Loaded, base: Path, kwok: KwokPlan) -> dict[str, Any]:
    """The runtime's options."""
    if loaded.spec.runtime == ExistingCluster.runtime:
        return options_of(loaded, base, kwok)
    if loaded.spec.runtime == "kind":
        return kind_options(loaded.spec)
    return _kwok_options(loaded)


def _kwok_options(loaded: Loaded) -> dict[str, Any]:
    """Those of the kwok runtime: a fault of pods is a stage of KWOK's, which it has to take from the cluster."""
    stages = {"stageObjects": True} if any(fault.pods for fault in loaded.faults) else {}
    asked = loaded.spec.observability
    measured = {"observability": asked.options()} if asked else {}
    return {**loaded.spec.kwok.options(), **stages, **cluster_options(loaded.spec), **measured}


def _contents(loaded: Loaded) -> dict[str, object]:
    """The names by which a later preview knows what goes."""
    system = [loaded.system_pool] if loaded.system_pool else []
    pools = (pool.name for pool in (*loaded.pools, *system))
    return contents((fault.name for fault in loaded.faults), pools, preview=pulumi.runtime.is_dry_run())
