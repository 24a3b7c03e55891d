"""``PrometheusStack``: the chart kube-prometheus-stack with the fleet's dashboards and rules."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Required, TypedDict, Unpack, cast

import pulumi
import yaml
from pulumi_kubernetes.core.v1 import ConfigMap, Service

from kumulus.components.arguments import SectionOf, checked, fields
from kumulus.components.emulated_cluster import EmulatedCluster
from kumulus.components.helm_addon import HelmAddon, HelmAddonArgs
from kumulus.components.inputs import CheckedInputs, with_secrets
from kumulus.components.mistakes import collected
from kumulus.components.resources import ClusterLike, InCluster, depended_on
from kumulus.extras.watch import dashboards, section
from kumulus.extras.watch.observability import Observability, as_bytes
from kumulus.extras.watch.scraping import scraped
from kumulus.extras.watch.section import Measured
from kumulus.extras.watch.section import PrometheusStackSpec as Chart
from kumulus.model import nodes
from kumulus.model.errors import Where
from kumulus.stackfile.addons import chart_kind
from kumulus.stackfile.model import ClusterSpec
from kumulus.stackfile.secrets import Secrets

NAME = "kube-prometheus-stack"
"""The release's name, with which the names of its parts begin."""
_KUBELETS = "kumulus-kubelets"
# The operator writes these, whatever ports it finds.
_KUBELET_PORTS = (("https-metrics", 10250), ("http-metrics", 10255), ("cadvisor", 4194))


class PrometheusStackArgs(TypedDict, total=False):
    """Arguments of a PrometheusStack."""

    cluster: Required[ClusterLike]
    """The cluster it is installed in."""
    observability: Annotated[Mapping[str, Any], SectionOf("kumulus.extras.watch.observability:Observability")]
    """What is measured, as in the stack file's section, such as ``{"retention": "3h"}``; a port of this machine has no
    meaning here."""
    chart: str
    """The name of the chart in ``repo_url``, an ``oci://`` reference, or a path. Default: ``kube-prometheus-stack``."""
    repo_url: pulumi.Input[str]
    """The chart's repository. Default: that of the project."""
    version: pulumi.Input[str]
    """The chart's version in a repository or registry. Default: the one that was tested."""
    namespace: pulumi.Input[str]
    """The namespace it is installed in. Default: ``monitoring``."""
    values: pulumi.Input[Mapping[str, Any]]
    """The chart's values, which override those that ``observability`` sets."""
    timeout: pulumi.Input[int]
    """Seconds to wait until everything is ready. Default: 600."""
    repository_opts: Annotated[pulumi.Input[Mapping[str, Any]], SectionOf("kumulus.stackfile.addons:RepositoryOpts")]
    """Credentials of a private repository: username, password, caFile, certFile, keyFile."""
    base: str
    """The directory that a chart's relative path refers to. Default: the program's."""
    shards: int
    """How many kwok-controllers of the cluster have a Service for Prometheus. Default: none."""


_FIELDS = fields(
    PrometheusStackArgs,
    but=("cluster", "observability", "base", "shards"),
    otherwise={"repo_url": "repoURL", "values": "valuesObject"},
)
_NAMES = {field: name for name, field in _FIELDS.items()}


@collected
class PrometheusStack(pulumi.ComponentResource):
    """Metrics of a cluster whose nodes run containers, such as kind's or a cloud's.

    On the kwok runtime nothing runs containers: there ``observability`` of the cluster starts local processes, with
    the same dashboards' series.

    Args:
        resource_name: its name in the stack.
        args: see :class:`PrometheusStackArgs`.
        opts: Pulumi's resource options; what they depend on is there before anything of it.

    Attributes:
        addon: the chart's :class:`HelmAddon`.
        kubelets: the Service that the chart's operator keeps the addresses of kubelets under; it would make one itself,
            and leave it behind with all of them when the chart is removed.
        ready: that all of it has come up, Prometheus included, which Helm does not wait for.
        dashboards: a ConfigMap for each dashboard, which the chart's Grafana finds by its label.

    Raises:
        pulumi.RunError: an argument is wrong; the message has each one's path and what to write instead.
    """

    namespace: pulumi.Output[str]
    """Where it runs."""

    def __init__(
        self, resource_name: str, *, opts: pulumi.ResourceOptions | None = None, **args: Unpack[PrometheusStackArgs]
    ) -> None:
        source = f"PrometheusStack {resource_name}"
        with checked(args, PrometheusStackArgs, source) as wrong:
            with wrong.also():
                measured = CheckedInputs(ClusterSpec, source, {"observability": args.get("observability") or {}}, {})
            chart = CheckedInputs(Chart, source, {field: args.get(name) for name, field in _FIELDS.items()}, _NAMES)
        asked = Measured.of(measured.plain) or Observability()
        super().__init__("kumulus:index:PrometheusStack", resource_name, None, opts)
        cluster, namespace, first = args["cluster"], chart["namespace"], depended_on(opts)
        values = chart_values(asked, cluster.cluster_name, args.get("shards") or 0)
        self.kubelets = self._kubelet_service(resource_name, cluster, first)
        self.addon = HelmAddon(
            resource_name,
            **_addon(chart, merged_values(values, chart["valuesObject"]), args),
            # The Service is removed after the chart, when no operator is left to create it again.
            opts=pulumi.ResourceOptions(parent=self, depends_on=[*first, self.kubelets]),
        )
        inside = pulumi.ResourceOptions(
            parent=self,
            provider=cluster.kubernetes,
            # The chart's release creates the namespace.
            depends_on=[self.addon],
            # As with add-ons: see docs/decisions/deleted-with.md.
            deleted_with=cluster.lifetime,
        )
        self.ready = InCluster(
            "kumulus:index:ReleaseReady",
            f"{resource_name}-ready",
            cluster,
            {
                "namespace": namespace,
                "name": NAME,
                "revision": self.addon.release.status.apply(lambda status: status["revision"] if status else None),
                "timeout": chart["timeout"],
            },
            pulumi.ResourceOptions(parent=self, depends_on=[self.addon], deleted_with=cluster.lifetime),
        )
        self.dashboards = _dashboards(resource_name, namespace, inside)
        self.namespace = pulumi.Output.from_input(namespace)
        self.register_outputs({"namespace": namespace})

    def _kubelet_service(self, resource_name: str, cluster: ClusterLike, first: list[Any]) -> Service:
        return Service(
            f"{resource_name}-kubelets",
            metadata={
                "name": _KUBELETS,
                "namespace": "kube-system",
                "labels": {"app.kubernetes.io/name": "kubelet", "k8s-app": "kubelet"},
                "annotations": {"pulumi.com/skipAwait": "true"},
            },
            spec={"cluster_ip": "None", "ports": [{"name": name, "port": port} for name, port in _KUBELET_PORTS]},
            opts=pulumi.ResourceOptions(
                parent=self,
                provider=cluster.kubernetes,
                depends_on=first,
                deleted_with=cluster.lifetime,
            ),
        )


def _dashboards(resource_name: str, namespace: Any, opts: pulumi.ResourceOptions) -> list[ConfigMap]:
    """A ConfigMap for each dashboard."""
    return [
        ConfigMap(
            f"{resource_name}-{name}",
            metadata={
                "name": name.removesuffix(".json"),
                "namespace": namespace,
                "labels": {"grafana_dashboard": "1"},
            },
            data={name: content},
            opts=opts,
        )
        for name, content in dashboards.provisioned().items()
    ]


def arguments_of(
    chart: Chart, asked: Observability, cluster: ClusterLike, base: Path, secrets: tuple[Where, ...] = ()
) -> PrometheusStackArgs:
    """The arguments of a PrometheusStack for a stack file.

    Args:
        chart: its section ``prometheusStack``.
        asked: its section ``observability``.
        secrets: paths in ``chart`` that are secret, such as ``("valuesObject", "grafana", "adminPassword")``.
    """
    kept = Secrets(secrets)
    declared = chart.model_dump(exclude_unset=True)
    declared |= {
        key: with_secrets(declared[key], kept.within(key))
        for key in ("valuesObject", "repositoryOpts")
        if key in declared
    }
    made = {_NAMES[field]: value for field, value in declared.items()}
    made |= {"cluster": cluster, "base": str(base), "observability": asked.options()}
    return cast(PrometheusStackArgs, made)


def _addon(chart: CheckedInputs[Chart], values: Any, args: PrometheusStackArgs) -> HelmAddonArgs:
    """The add-on's arguments; they have a repository or a version only if the kind of chart has one."""
    kind = chart_kind(chart.plain.chart)
    made: dict[str, Any] = {
        "cluster": args["cluster"],
        "base": args.get("base"),
        "release_name": NAME,
        "chart": chart.plain.chart,
        "namespace": chart["namespace"],
        "values": values,
        "timeout": chart["timeout"],
        # ReleaseReady waits, and says what it is waiting for.
        "skip_await": True,
        "repository_opts": chart["repositoryOpts"],
        "repo_url": chart["repoURL"] if kind == "repository" else None,
        "version": None if kind == "path" else chart["version"],
    }
    return cast(HelmAddonArgs, made)


def merged_values(values: Any, others: Any) -> Any:
    """Values merged with others that win, as Helm merges files: mappings key by key, everything else as a whole.

    The others, or parts of them, may be outputs.
    """
    if isinstance(others, pulumi.Output):
        return others.apply(lambda known: merged_values(values, known))
    if not (isinstance(values, dict) and isinstance(others, dict)):
        return others
    return {**values, **{key: merged_values(values.get(key), other) for key, other in others.items()}}


def chart_values(asked: Observability, cluster: str, shards: int) -> dict[str, Any]:
    """The chart's values: retention, the labels that the rules need, the rules, and the scrape targets.

    For ``shards``, the number of kwok-controllers with Services, see :class:`KwokCharts`.
    """
    placed = {"affinity": nodes.affinity_to_real()}
    return {
        "prometheus": {
            "prometheusSpec": {
                "retention": asked.retention,
                "retentionSize": f"{as_bytes(asked.retentionSize)}B",
                "scrapeInterval": asked.scrapeInterval,
                "evaluationInterval": asked.scrapeInterval,
                "resources": {"limits": {"memory": asked.memory}},
                "additionalScrapeConfigs": scraped(asked, cluster, shards) if shards else [],
                **placed,
            }
        },
        "prometheusOperator": {
            "kubeletService": {"name": _KUBELETS, "selector": nodes.SELECTOR_OF_REAL},
            # They would add two Jobs with an image of their own, a Secret that blocks the namespace's deletion, and one
            # more thing to fail, for a check of rules that the operator does anyway.
            "admissionWebhooks": {"enabled": False},
            "tls": {"enabled": False},
            **placed,
        },
        "alertmanager": {"alertmanagerSpec": placed},
        "prometheus-node-exporter": placed,
        "kube-state-metrics": {
            "metricLabelsAllowlist": [dashboards.allowed((*dashboards.NODE_LABELS, *asked.nodeLabels))],
            "metricAnnotationsAllowList": [dashboards.allowed(dashboards.NODE_ANNOTATIONS)],
            **placed,
        },
        "grafana": {"sidecar": {"dashboards": {"enabled": True, "label": "grafana_dashboard"}}, **placed},
        "additionalPrometheusRulesMap": {"kumulus": yaml.safe_load(dashboards.rules())},
    }


def of_stack(name: str, asked: Observability, cluster: EmulatedCluster) -> PrometheusStack:
    """Monitoring as a stack's `observability` asks for it, for clusters whose nodes run containers."""
    chart = cluster.loaded.spec.sections_of_extras().get(section.NAME, Chart())
    secrets = cluster.loaded.secrets.within(section.NAME)
    assert isinstance(chart, Chart)
    arguments = arguments_of(chart, asked, cluster.cluster, cluster.base, secrets)
    arguments["shards"] = len(cluster.kwok.services) if cluster.kwok else 0
    # It waits for no more than this: neither for nodes nor for what other sections declare.
    first = [*cluster.addons.values(), *([cluster.kwok] if cluster.kwok else [])]
    return PrometheusStack(name, **arguments, opts=pulumi.ResourceOptions(parent=cluster, depends_on=first))
