"""``PodLifecycles``: how pods run and what they use, as objects of KWOK's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi

from kumulus.components.resources import ClusterLike, KubernetesObject
from kumulus.kwok import usage
from kumulus.kwok.lifecycle_stages import stage_objects
from kumulus.kwok.stages import API_VERSION
from kumulus.stackfile.lifecycles import PodLifecycle
from kumulus.stackfile.usage import PodUsageSpec


class PodLifecycles(pulumi.ComponentResource):
    """One ``Stage`` object for each step of each lifecycle, and one ``ClusterResourceUsage`` for all usages.

    Args:
        lifecycles: as in the stack file's ``podLifecycles``.
        usages: as in its ``podUsage``.
        cluster: the cluster component they are for, with the options of
            :func:`kumulus.stackfile.kwok_options.cluster_options`.
        events: whether pods get the events that a kubelet writes, as in the cluster's ``events``.
        depends_on: what has to be there first: KWOK's kinds, where the cluster does not have them from its beginning.
    """

    def __init__(
        self,
        resource_name: str,
        *,
        lifecycles: Sequence[PodLifecycle],
        usages: Sequence[PodUsageSpec],
        cluster: ClusterLike,
        events: bool = False,
        depends_on: Sequence[pulumi.Resource] = (),
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("kumulus:index:PodLifecycles", resource_name, None, opts)

        def declare(kind: str, metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> KubernetesObject:
            return KubernetesObject(
                f"{cluster.prefix}{metadata['name']}" if kind == "Stage" else f"{resource_name}-{metadata['name']}",
                cluster,
                {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec},
                parent=self,
                after=[cluster.resource, *depends_on],
            )

        stages = stage_objects([each.lifecycle() for each in lifecycles], events=events)
        self.stages = [declare("Stage", stage.metadata, stage.spec) for stage in stages]
        used = usage.resource_usage([each.usage() for each in usages])
        self.usage = declare("ClusterResourceUsage", {"name": usage.NAME}, used) if usages else None
        self.register_outputs({"stages": len(self.stages)})
