"""``PrometheusStack``: the chart kube-prometheus-stack with the fleet's dashboards and rules."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes
import yaml
from pulumi_kubernetes.core.v1 import ConfigMap

import dashboards
from components.helm_addon import HelmAddon
from components.resources import ClusterLike
from spec.addons import Addon
from spec.observability import Observability, as_bytes

NAMESPACE = "monitoring"
_CHART = {
    "name": "kube-prometheus-stack",
    "namespace": NAMESPACE,
    "repoURL": "https://prometheus-community.github.io/helm-charts",
    "chart": "prometheus-community/kube-prometheus-stack",
    "version": "75.16.1",
}


class PrometheusStack(pulumi.ComponentResource):
    """Metrics of a cluster whose nodes run containers, such as kind's or a cloud's.

    On the kwok runtime nothing runs containers: there the stack file's ``observability`` starts local processes, with
    the same dashboards' series.

    Args:
        resource_name: its name in the stack.
        asked: as in the stack file's ``observability``; a port of this machine has no meaning here.
        cluster: the cluster component it is installed in.
        provider: the Kubernetes provider of that cluster.
        chart: what to say otherwise of the chart, as in ``clusterAddons``: ``version``, a local ``chart`` …
        base: directory that a local chart's path refers to.
        depends_on: what has to be there first.
        opts: Pulumi's resource options.

    Attributes:
        addon: the chart's :class:`HelmAddon`.
        dashboards: a ConfigMap for each dashboard, which the chart's Grafana finds by its label.
    """

    def __init__(
        self,
        resource_name: str,
        *,
        asked: Observability,
        cluster: ClusterLike,
        provider: kubernetes.Provider,
        chart: dict[str, Any] | None = None,
        base: Path = Path(),
        depends_on: Sequence[pulumi.Resource] = (),
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("kumulus:index:PrometheusStack", resource_name, None, opts)
        self.addon = HelmAddon(
            resource_name,
            addon=Addon(**{**_CHART, "valuesObject": chart_values(asked), **(chart or {})}),
            cluster=cluster,
            provider=provider,
            base=base,
            depends_on=depends_on,
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.dashboards = [
            ConfigMap(
                f"{resource_name}-{name}",
                metadata={
                    "name": name.removesuffix(".json"),
                    "namespace": NAMESPACE,
                    "labels": {"grafana_dashboard": "1"},
                },
                data={name: content},
                opts=pulumi.ResourceOptions(
                    parent=self,
                    provider=provider,
                    # The chart's release makes the namespace.
                    depends_on=[self.addon],
                    # As for add-ons, see docs/decisions/deleted-with.md.
                    deleted_with=cluster.lifetime,
                ),
            )
            for name, content in dashboards.provisioned().items()
        ]
        self.register_outputs({})


def chart_values(asked: Observability) -> dict[str, Any]:
    """The chart's values: what is kept, the labels that the rules need, and the rules."""
    return {
        "prometheus": {
            "prometheusSpec": {
                "retention": asked.retention,
                "retentionSize": f"{as_bytes(asked.retentionSize)}B",
                "scrapeInterval": asked.scrapeInterval,
                "evaluationInterval": asked.scrapeInterval,
                "resources": {"limits": {"memory": asked.memory}},
            }
        },
        "kube-state-metrics": {
            "metricLabelsAllowlist": [dashboards.allowed((*dashboards.NODE_LABELS, *asked.nodeLabels))],
            "metricAnnotationsAllowList": [dashboards.allowed(dashboards.NODE_ANNOTATIONS)],
        },
        "grafana": {"sidecar": {"dashboards": {"enabled": True, "label": "grafana_dashboard"}}},
        "additionalPrometheusRulesMap": {"kumulus": yaml.safe_load(dashboards.rules())},
    }
