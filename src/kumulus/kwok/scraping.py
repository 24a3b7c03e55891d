"""What a Prometheus in a cluster scrapes from KWOK's controllers there, in addition to kube-prometheus-stack's jobs."""

from __future__ import annotations

from typing import Any

from kumulus.kwok import node_metrics
from kumulus.kwok.controllers import NAME, NAMESPACE, PORT, service_name
from kumulus.model.durations import seconds
from kumulus.model.observability import Observability
from kumulus.model.pools import CLUSTER_LABEL
from kumulus.model.shards import SHARD_LABEL

# One process answers for all of a shard's nodes.
_LONGEST_TIMEOUT = 30.0


def scraped(asked: Observability, cluster: str, shards: int) -> list[dict[str, Any]]:
    """Entries of Prometheus' ``scrape_configs``: the controllers, and each node's own endpoint.

    Args:
        asked: the interval and the limits.
        cluster: the name of the cluster whose nodes are scraped.
        shards: how many controllers there are.
    """
    # As the chart labels targets that it has found by a Service; its alerts count by these labels.
    labels = {"namespace": NAMESPACE, "service": NAME}
    controllers = [{"targets": [_address(shard) for shard in range(shards)], "labels": labels}]
    return [
        {"job_name": NAME, "static_configs": controllers, "sample_limit": asked.most_series},
        _nodes(asked, cluster, labels),
    ]


def _nodes(asked: Observability, cluster: str, labels: dict[str, str]) -> dict[str, Any]:
    every = asked.nodeScrapeInterval
    node = {"source_labels": ["__meta_kubernetes_node_name"]}
    return {
        # The kubelet's job name, as on the kwok runtime; the chart's own jobs of that name have other paths.
        "job_name": "kubelet",
        "scrape_interval": every,
        "scrape_timeout": f"{min(seconds(every), _LONGEST_TIMEOUT):g}s",
        "target_limit": asked.most_nodes,
        "kubernetes_sd_configs": [
            {"role": "node", "selectors": [{"role": "node", "label": f"{CLUSTER_LABEL}={cluster}"}]}
        ],
        "relabel_configs": [
            # A node's own addresses lead nowhere: its controller answers for it, the first one if it has no label.
            {"target_label": "__address__", "replacement": _address(0)},
            {
                "source_labels": [f"__meta_kubernetes_node_label_{_as_label(SHARD_LABEL)}"],
                "regex": "(.+)",
                "target_label": "__address__",
                "replacement": _address("$1"),
            },
            {**node, "target_label": "__metrics_path__", "replacement": node_metrics.path_of("$1")},
            {"target_label": "metrics_path", "replacement": node_metrics.PATH},
            *({**node, "target_label": name} for name in ("node", "instance")),
            *({"target_label": name, "replacement": value} for name, value in labels.items()),
        ],
        "metric_relabel_configs": list(node_metrics.UNREAD),
    }


def _address(shard: int | str) -> str:
    return f"{service_name(shard)}.{NAMESPACE}:{PORT}"


def _as_label(key: str) -> str:
    return "".join(each if each.isalnum() else "_" for each in key)
