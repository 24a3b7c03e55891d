"""``KwokCharts``: KWOK inside a cluster whose nodes run containers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.apps.v1 import Deployment
from pulumi_kubernetes.core.v1 import ConfigMap, Service

from components.helm_addon import HelmAddon
from components.resources import ClusterLike, Definitions
from lives.in_cluster import NAMESPACE, Controllers, release_name, stage_manifests
from spec import node_metrics
from spec.addons import Addon
from spec.kwok_stages import API_VERSION
from spec.pools import CLUSTER_LABEL


class KwokCharts(pulumi.ComponentResource):
    """KWOK by its charts ``kwok`` and ``stage-fast``, with controllers that have what the charts have no values for.

    Args:
        resource_name: its name in the stack.
        controllers: what to install; None where KWOK is there already, and only the stack's own stages are added.
        cluster: the cluster component it is installed in.
        provider: the Kubernetes provider of that cluster.
        base: directory that a local chart's path refers to.
        measured: whether the controllers have the series of their nodes' kubelets, for a Prometheus.
        depends_on: what has to be there first, such as the controllers' image.
        opts: Pulumi's resource options.

    Attributes:
        releases: the charts' :class:`HelmAddon`.
        deployments: the kwok-controllers, each with its share of the nodes.
        services: where each is asked for metrics, if they are measured.
        stages: of faults' nodes, and of Jobs' pods.
    """

    def __init__(
        self,
        resource_name: str,
        *,
        controllers: Controllers | None,
        cluster: ClusterLike,
        provider: kubernetes.Provider,
        base: Path,
        measured: bool = False,
        depends_on: Sequence[pulumi.Resource] = (),
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("kumulus:index:KwokCharts", resource_name, None, opts)
        self._cluster, self._kubernetes, self._base = cluster, provider, base
        self.releases: list[HelmAddon] = []
        self.deployments: list[Deployment] = []
        self.services: list[Service] = []
        if controllers:
            self._install(resource_name, controllers, depends_on)
        if controllers and measured:
            self._measure(resource_name, controllers)
        self.stages = [
            CustomResource(
                manifest["metadata"]["name"],
                api_version=API_VERSION,
                kind="Stage",
                metadata=manifest["metadata"],
                spec=manifest["spec"],
                opts=self._options(self.releases),
            )
            for manifest in stage_manifests(cluster.cluster_name, installed=controllers is not None)
        ]
        self.register_outputs({"controllers": len(self.deployments)})

    def _install(self, resource_name: str, controllers: Controllers, after: Sequence[pulumi.Resource]) -> None:
        charts = controllers.charts
        definitions = Definitions(
            f"{resource_name}-definitions",
            group=API_VERSION.partition("/")[0],
            cluster=self._cluster,
            opts=pulumi.ResourceOptions(parent=self, depends_on=list(after), deleted_with=self._cluster.end),
        )
        name = release_name(controllers.cluster)
        kwok = self._release(name, charts.addon(charts.chart), controllers.release_values(), [definitions])
        stages = self._release(f"{name}-stages", charts.addon(charts.stageFastChart), {}, [kwok])
        self.releases = [kwok, stages]
        for shard in range(controllers.shards):
            manifest = controllers.config_map(shard)
            configuration = ConfigMap(
                f"{resource_name}-{manifest['metadata']['name']}", **manifest, opts=self._options([kwok])
            )
            manifest = controllers.deployment(shard)
            self.deployments.append(
                Deployment(
                    f"{resource_name}-{manifest['metadata']['name']}",
                    **manifest,
                    # Stages first: a controller without any does not begin.
                    opts=self._options([configuration, stages]),
                )
            )

    def _measure(self, resource_name: str, controllers: Controllers) -> None:
        metric = node_metrics.metric("gpus")
        CustomResource(
            f"{resource_name}-{metric['metadata']['name']}",
            api_version=API_VERSION,
            kind="Metric",
            # As of PodLives' objects: another stack's is not taken over.
            metadata={**metric["metadata"], "labels": {CLUSTER_LABEL: controllers.cluster}},
            spec=metric["spec"],
            opts=self._options(self.releases),
        )
        for shard in range(controllers.shards):
            manifest = controllers.service(shard)
            name = f"{resource_name}-{manifest['metadata']['name']}"
            self.services.append(Service(name, **manifest, opts=self._options(self.releases)))

    def _release(
        self, name: str, where: dict[str, Any], values: dict[str, Any], after: Sequence[pulumi.Resource]
    ) -> HelmAddon:
        return HelmAddon(
            name,
            # Definitions looks after what they bring.
            addon=Addon(
                name=name, namespace=NAMESPACE, createNamespace=False, crds="Create", valuesObject=values, **where
            ),
            cluster=self._cluster,
            provider=self._kubernetes,
            base=self._base,
            depends_on=after,
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _options(self, after: Sequence[pulumi.Resource]) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(
            parent=self,
            provider=self._kubernetes,
            depends_on=[self._cluster.resource, *after],
            # Not the cluster: see docs/decisions/deleted-with.md.
            deleted_with=self._cluster.lifetime,
        )
