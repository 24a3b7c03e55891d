"""``ExistingCluster``: a cluster that is there already, by its kubeconfig."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pulumi

from components.control_plane import ControlPlane
from components.kwok_plan import KwokPlan
from spec import needs
from spec.group_topology import VOLCANO
from spec.load import Loaded


class ExistingCluster(ControlPlane):
    """A cluster of which nothing but what the stack puts into it is made, changed or removed.

    Arguments and attributes are those of :class:`ControlPlane`; its ``options`` are ``kubeconfig`` (an absolute path,
    or a kubeconfig's text, which is kept as a secret), ``context``, and ``needs``, what the stack does there, of
    :data:`spec.needs.NEEDS`: permissions for it are asked before anything is done.
    """

    runtime: ClassVar[str] = "existing"
    token: ClassVar[str] = "kumulus:index:ExistingCluster"  # noqa: S105 - Pulumi's word for a type
    outlives_stack: ClassVar[bool] = True

    def __init__(self, resource_name: str, *, options: Mapping[str, Any], **arguments: Any) -> None:
        kubeconfig = options.get("kubeconfig")
        if isinstance(kubeconfig, str) and needs.is_content(kubeconfig):
            options = {**options, "kubeconfig": pulumi.Output.secret(kubeconfig)}
        super().__init__(resource_name, options=options, **arguments)


def options_of(loaded: Loaded, base: Path, kwok: KwokPlan) -> dict[str, Any]:
    """The options of a loaded stack's cluster.

    Args:
        loaded: the stack's spec.
        base: the project's directory.
        kwok: what becomes of KWOK in it.
    """
    spec = loaded.spec
    hyper_nodes = any(group.topology and group.topology.preset == VOLCANO for group in spec.nodeGroups)
    wanted = {
        needs.NODES: loaded.pools,
        needs.FAULTS: loaded.faults,
        needs.STAGES: spec.podLifecycles or kwok.stages,
        needs.USAGE: spec.podUsage,
        needs.DEVICES: any(group.resourceSlices for group in spec.nodeGroups),
        needs.HYPERNODES: hyper_nodes,
        needs.KWOK: kwok.install,
        needs.TENANTS: spec.tenants,
        needs.ADDONS: spec.clusterAddons or spec.observability,
    }
    return {**spec.existing.options(base), "needs": [need for need, asked in wanted.items() if asked]}
