"""``KwokCharts``: KWOK inside a cluster whose nodes run containers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Required, TypedDict, Unpack, cast

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.apps.v1 import Deployment
from pulumi_kubernetes.core.v1 import ConfigMap, Service

from kumulus.components import helm_addon
from kumulus.components.arguments import checked, fields
from kumulus.components.helm_addon import HelmAddon
from kumulus.components.inputs import CheckedInputs
from kumulus.components.mistakes import collected
from kumulus.components.resources import ClusterLike, InCluster, depended_on, labelled
from kumulus.kwok import node_metrics
from kumulus.kwok.controllers import NAMESPACE, Controllers, release_name, stage_manifests
from kumulus.kwok.stages import API_VERSION
from kumulus.model.scale import shards_for
from kumulus.stackfile.addons import Addon
from kumulus.stackfile.cluster_charts import KwokChartsSpec as Charts


class KwokChartsArgs(TypedDict, total=False):
    """Arguments of KwokCharts. All of them are plain values, because the number of controllers follows from them."""

    cluster: Required[ClusterLike]
    """The cluster that KWOK is installed in; its nodes run containers."""
    nodes: Required[int]
    """How many nodes it emulates, in all groups together."""
    shards: int
    """How many kwok-controllers share the nodes. Default: one for every 10,000 nodes, rounded up."""
    install: bool
    """False if KWOK is already installed: then only the stages of faults and Jobs are added. Default: True."""
    repo_url: str
    """The chart repository. Default: KWOK's own."""
    chart: str
    """The chart kwok: its name in the repository, an ``oci://`` reference, or a path."""
    stage_fast_chart: str
    """The chart stage-fast: its name in the repository, an ``oci://`` reference, or a path."""
    version: str
    """The version of both charts in the repository."""
    image: str
    """kwok-controller's image, with its tag."""
    image_pull_secrets: Sequence[str]
    """Names of secrets in the namespace kube-system."""
    parallelism: int
    """How many stages of nodes, how many of pods, and how many leases a controller handles at once. Default: 32."""
    lease_duration_seconds: int
    """The duration of a node's lease, which is renewed after a quarter of it, in seconds. Default: 40, or 100 from
    2,500 nodes on."""
    pod_cidr: str
    """The range of emulated pods' addresses. Default: ``198.18.0.0/15``."""
    cpu: str
    """The CPU that each controller requests. Default: ``100m``."""
    memory: str
    """The memory that each controller requests. Default: ``128Mi``."""
    measured: bool
    """Whether the controllers serve the metrics of their nodes' kubelets, for a Prometheus. Default: False."""
    base: str
    """The directory that a chart's relative path refers to. Default: the program's."""


_FIELDS = fields(
    KwokChartsArgs,
    but=("cluster", "nodes", "measured", "base"),
    otherwise={"repo_url": "repoURL", "pod_cidr": "podCIDR"},
)
_NAMES = {field: name for name, field in _FIELDS.items()}


@collected
class KwokCharts(pulumi.ComponentResource):
    """KWOK by its charts ``kwok`` and ``stage-fast``, with kwok-controllers of our own for what the charts cannot set.

    The kwok runtime has KWOK alongside the cluster. In a KindCluster or ExistingCluster it has to be there before the
    first emulated node: the node groups name it in ``depends_on``.

    Args:
        opts: Pulumi's resource options; what they depend on is there before anything that this declares.

    Attributes:
        releases: the charts' :class:`HelmAddon`.
        deployments: the kwok-controllers, each with its share of the nodes.
        services: where each controller serves its metrics, if ``measured``.
        stages: of faults' nodes, and of Jobs' pods.
    """

    controllers: pulumi.Output[int]
    """How many kwok-controllers it declares, which is the ``shards`` of node groups; 0 where KWOK is there already."""

    def __init__(
        self, resource_name: str, *, opts: pulumi.ResourceOptions | None = None, **args: Unpack[KwokChartsArgs]
    ) -> None:
        source = f"KwokCharts {resource_name}"
        with checked(args, KwokChartsArgs, source):
            values = {field: args.get(name) for name, field in _FIELDS.items()}
            charts = CheckedInputs(Charts, source, values, _NAMES).plain
        super().__init__("kumulus:index:KwokCharts", resource_name, None, opts)
        cluster, nodes = args["cluster"], args["nodes"]
        self._cluster, self._base = cluster, Path(args.get("base") or "").absolute()
        self.releases: list[HelmAddon] = []
        self.deployments: list[Deployment] = []
        self.services: list[Service] = []
        installed = charts.install is not False
        if installed:
            controllers = Controllers(charts.settings(), cluster.cluster_name, nodes, shards_for(nodes, charts.shards))
            self._install(resource_name, charts, controllers, depended_on(opts))
            if args.get("measured"):
                self._measure(resource_name, controllers)
        stages = stage_manifests(cluster.cluster_name, installed=installed)
        self.stages = [self._custom_resource("Stage", each["metadata"]["name"], each) for each in stages]
        self.controllers = pulumi.Output.from_input(len(self.deployments))
        self.register_outputs({"controllers": len(self.deployments)})

    def _install(
        self, resource_name: str, charts: Charts, controllers: Controllers, after: Sequence[pulumi.Resource]
    ) -> None:
        definitions = InCluster(
            "kumulus:index:Definitions",
            f"{resource_name}-definitions",
            self._cluster,
            {"group": API_VERSION.partition("/")[0]},
            pulumi.ResourceOptions(parent=self, depends_on=list(after), deleted_with=self._cluster.deleted_with),
        )
        name = release_name(controllers.cluster)
        kwok = self._release(name, charts.addon(charts.chart), controllers.release_values(), [definitions])
        stages = self._release(f"{name}-stages", charts.addon(charts.stageFastChart), {}, [kwok])
        self.releases = [kwok, stages]
        for shard in range(controllers.shards):
            name, manifest = self._named(resource_name, controllers.config_map(shard))
            configuration = ConfigMap(name, **manifest, opts=self._options([kwok]))
            name, manifest = self._named(resource_name, controllers.deployment(shard))
            # Stages first: a controller without any does not start.
            self.deployments.append(Deployment(name, **manifest, opts=self._options([configuration, stages])))

    def _measure(self, resource_name: str, controllers: Controllers) -> None:
        metric = node_metrics.metric("gpus")
        self._custom_resource("Metric", f"{resource_name}-{metric['metadata']['name']}", metric)
        for shard in range(controllers.shards):
            name, manifest = self._named(resource_name, controllers.service(shard))
            self.services.append(Service(name, **manifest, opts=self._options(self.releases)))

    def _release(
        self, name: str, where: dict[str, Any], values: dict[str, Any], after: Sequence[pulumi.Resource]
    ) -> HelmAddon:
        """Declare one of the two charts, with the fields of an add-on that say where it comes from."""
        # Not "CreateReplace": the resource Definitions takes care of the CRDs that the charts bring.
        addon = Addon(
            name=name, namespace=NAMESPACE, createNamespace=False, crds="Create", valuesObject=values, **where
        )
        return HelmAddon(
            name,
            **helm_addon.arguments_of(addon, self._cluster, self._base),
            opts=pulumi.ResourceOptions(parent=self, depends_on=list(after)),
        )

    def _custom_resource(self, kind: str, name: str, manifest: Mapping[str, Any]) -> CustomResource:
        """Declare an object of one of KWOK's kinds."""
        metadata, spec = labelled(manifest["metadata"], self._cluster), manifest["spec"]
        opts = self._options(self.releases)
        return CustomResource(name, api_version=API_VERSION, kind=kind, metadata=metadata, spec=spec, opts=opts)

    def _named(self, resource_name: str, manifest: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """A manifest with the marks of its owner, and its name in the stack."""
        metadata = labelled(manifest["metadata"], self._cluster)
        return f"{resource_name}-{metadata['name']}", {**manifest, "metadata": metadata}

    def _options(self, after: Sequence[pulumi.Resource]) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(
            parent=self,
            provider=self._cluster.kubernetes,
            depends_on=[self._cluster.resource, *after],
            # Another provider's resources: the lifetime, not the cluster (docs/decisions/deleted-with.md).
            deleted_with=self._cluster.lifetime,
        )


def arguments_of(charts: Charts, cluster: ClusterLike, base: Path) -> KwokChartsArgs:
    """The arguments of KwokCharts for a stack file, except for its nodes."""
    declared = {_NAMES[field]: value for field, value in charts.model_dump(exclude_unset=True).items()}
    return cast(KwokChartsArgs, {**declared, "cluster": cluster, "base": str(base)})
