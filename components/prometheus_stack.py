"""``PrometheusStack``: the chart kube-prometheus-stack with the fleet's dashboards and rules."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes
import yaml
from pulumi_kubernetes.core.v1 import ConfigMap, Service

import dashboards
from components.helm_addon import HelmAddon
from components.helm_resources import ReleaseReady
from components.resources import ClusterLike
from lives.scraping import scraped
from spec import real_nodes
from spec.addons import Addon
from spec.errors import Where
from spec.observability import Observability, as_bytes
from spec.prometheus_stack import NAME
from spec.prometheus_stack import PrometheusStack as Chart

_KUBELETS = "kumulus-kubelets"
# As the operator writes them, whatever it finds.
_KUBELET_PORTS = (("https-metrics", 10250), ("http-metrics", 10255), ("cadvisor", 4194))


class PrometheusStack(pulumi.ComponentResource):
    """Metrics of a cluster whose nodes run containers, such as kind's or a cloud's.

    On the kwok runtime nothing runs containers: there the stack file's ``observability`` starts local processes, with
    the same dashboards' series.

    Args:
        resource_name: its name in the stack.
        asked: as in the stack file's ``observability``; a port of this machine has no meaning here.
        cluster: the cluster component it is installed in.
        provider: the Kubernetes provider of that cluster.
        chart: how the chart is installed, as in the stack file's ``prometheusStack``.
        shards: how many kwok-controllers have Services to be asked at, see :class:`KwokCharts`.
        base: directory that a local chart's path refers to.
        secrets: places in ``chart`` that are secret, such as ``("valuesObject", "grafana", "adminPassword")``.
        depends_on: what has to be there first.
        opts: Pulumi's resource options.

    Attributes:
        addon: the chart's :class:`HelmAddon`.
        kubelets: the Service that the chart's operator keeps the addresses of kubelets under; it would make one itself,
            and leave it behind with all of them when the chart is removed.
        ready: that all of it has come up, Prometheus included, which Helm does not wait for.
        dashboards: a ConfigMap for each dashboard, which the chart's Grafana finds by its label.
    """

    def __init__(
        self,
        resource_name: str,
        *,
        asked: Observability,
        cluster: ClusterLike,
        provider: kubernetes.Provider,
        chart: Chart | None = None,
        shards: int = 0,
        base: Path = Path(),
        secrets: Sequence[Where] = (),
        depends_on: Sequence[pulumi.Resource] = (),
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("kumulus:index:PrometheusStack", resource_name, None, opts)
        chart = chart or Chart()
        self.kubelets = Service(
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
                provider=provider,
                depends_on=list(depends_on),
                deleted_with=cluster.lifetime,
            ),
        )
        self.addon = HelmAddon(
            resource_name,
            addon=Addon(**chart.addon(chart_values(asked, cluster.cluster_name, shards))),
            cluster=cluster,
            provider=provider,
            base=base,
            secrets=secrets,
            # Removed after it, when there is no operator any more that would make it anew.
            depends_on=[*depends_on, self.kubelets],
            opts=pulumi.ResourceOptions(parent=self),
        )
        inside = pulumi.ResourceOptions(
            parent=self,
            provider=provider,
            # The chart's release makes the namespace.
            depends_on=[self.addon],
            # As for add-ons, see docs/decisions/deleted-with.md.
            deleted_with=cluster.lifetime,
        )
        self.ready = ReleaseReady(
            f"{resource_name}-ready",
            namespace=chart.namespace,
            name=NAME,
            revision=self.addon.release.status.apply(lambda status: status["revision"] if status else None),
            timeout=chart.timeout,
            cluster=cluster,
            opts=pulumi.ResourceOptions(parent=self, depends_on=[self.addon], deleted_with=cluster.lifetime),
        )
        self.dashboards = [
            ConfigMap(
                f"{resource_name}-{name}",
                metadata={
                    "name": name.removesuffix(".json"),
                    "namespace": chart.namespace,
                    "labels": {"grafana_dashboard": "1"},
                },
                data={name: content},
                opts=inside,
            )
            for name, content in dashboards.provisioned().items()
        ]
        self.register_outputs({})


def chart_values(asked: Observability, cluster: str, shards: int) -> dict[str, Any]:
    """The chart's values: what is kept, the labels that the rules need, the rules, and who is asked.

    Args:
        asked: as in the stack file's ``observability``.
        cluster: the cluster's name.
        shards: how many kwok-controllers have Services, see :class:`KwokCharts`.
    """
    placed = {"affinity": real_nodes.affinity()}
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
            "kubeletService": {"name": _KUBELETS, "selector": real_nodes.SELECTOR},
            # Two Jobs with an image of their own, a Secret that keeps the namespace from going, and one more thing to
            # fail, for a check of rules that the operator makes anyway.
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
