"""What Prometheus scrapes: its configuration for one cluster, as plain data.

Jobs have the same names as in the chart kube-prometheus-stack, so that the same dashboards and rules fit both.
"""

from collections.abc import Mapping
from typing import Any

from kumulus.extras.watch.observability import Observability
from kumulus.kwok import node_metrics
from kumulus.kwok.controllers import NAME, NAMESPACE, PORT, service_name
from kumulus.model.durations import seconds
from kumulus.model.pools import CLUSTER_LABEL
from kumulus.model.scale import SHARD_LABEL

_LONGEST_TIMEOUT = 10.0
# One process serves all of these endpoints, and metrics-server asks it for all of them at once.
_LONGEST_NODE_TIMEOUT = 30.0
# Histograms that nobody reads, but that are nearly all of the API server's series.
_UNREAD = (
    "(apiserver_request_(slo|sli)_duration_seconds|apiserver_request_body_size_bytes|apiserver_response_sizes"
    "|apiserver_watch_(events_sizes|list_duration_seconds|cache_read_wait_seconds)"
    "|apiserver_admission_.*|etcd_request_duration_seconds|etcd_bookmark_.*|workqueue_.*|rest_client_.*_bytes"
    "|metrics_server_kubelet_.*|apiserver_storage_.*|apiserver_flowcontrol_.*|field_validation_.*|node_collector_.*)_bucket"
)


def configuration(asked: Observability, ports: Mapping[str, int], pki: str, rules: str, cluster: str) -> dict[str, Any]:
    """Prometheus' configuration file.

    Args:
        ports: the ports that the components listen on, by component.
        pki: directory of the cluster's certificates.
        rules: file with recording and alert rules.
        cluster: the cluster's name, a label of everything that leaves this Prometheus.
    """
    every = asked.scrapeInterval

    def job(name: str, component: str, **more: Any) -> dict[str, Any]:
        target = {"targets": [f"127.0.0.1:{ports[component]}"]}
        return {"job_name": name, "static_configs": [target], "sample_limit": asked.most_series, **more}

    admin = {"cert_file": f"{pki}/admin.crt", "key_file": f"{pki}/admin.key"}
    # Some of these certificates are made by the component itself; all components are on this machine.
    secured = {"scheme": "https", "tls_config": {**admin, "insecure_skip_verify": True}}
    frugal = {"metric_relabel_configs": [{"source_labels": ["__name__"], "regex": _UNREAD, "action": "drop"}]}
    return {
        "global": {
            "scrape_interval": every,
            "scrape_timeout": _timeout(every),
            "evaluation_interval": every,
            "external_labels": {"cluster": cluster},
        },
        "rule_files": [rules],
        "scrape_configs": [
            job("kube-etcd", "etcd", **secured),
            job("apiserver", "kube-apiserver", **secured, **frugal),
            job("kube-controller-manager", "kube-controller-manager", **secured, **frugal),
            job("kube-scheduler", "kube-scheduler", **secured, **frugal),
            job("kwok-controller", "kwok-controller", **secured),
            job("metrics-server", "metrics-server", **secured, **frugal),
            job("kube-state-metrics", "kube-state-metrics", **secured),
            job("prometheus", "prometheus", **secured),
            _nodes(asked, ports["kwok-controller"]),
        ],
    }


def _nodes(asked: Observability, port: int) -> dict[str, Any]:
    """Each node's own endpoint: the kubelet's resource metrics and dcgm-exporter's, served by kwok-controller."""
    every = asked.nodeScrapeInterval
    anyone = {"insecure_skip_verify": True}
    path = {"source_labels": ["__metrics_path__"], "regex": "/metrics/nodes/([^/]+)/.*"}
    return {
        "job_name": "kubelet",
        "scrape_interval": every,
        "scrape_timeout": _timeout(every, _LONGEST_NODE_TIMEOUT),
        "target_limit": asked.most_nodes,
        "tls_config": anyone,
        "http_sd_configs": [
            {"url": f"https://127.0.0.1:{port}/discovery/prometheus", "refresh_interval": every, "tls_config": anyone}
        ],
        "relabel_configs": [
            *({**path, "target_label": name} for name in ("node", "instance")),
            {"regex": "metrics_name", "action": "labeldrop"},
        ],
        "metric_relabel_configs": list(node_metrics.UNREAD),
    }


def _timeout(interval: str, longest: float = _LONGEST_TIMEOUT) -> str:
    return f"{min(seconds(interval), longest):g}s"


# What a Prometheus in a cluster scrapes from KWOK's controllers there, in addition to kube-prometheus-stack's jobs.


def scraped(asked: Observability, cluster: str, shards: int) -> list[dict[str, Any]]:
    """Entries of Prometheus' ``scrape_configs``: the controllers, and each node's own endpoint."""
    # As the chart labels targets that it has found by a Service; its alerts count by these labels.
    labels = {"namespace": NAMESPACE, "service": NAME}
    controllers = [{"targets": [_address(shard) for shard in range(shards)], "labels": labels}]
    return [
        {"job_name": NAME, "static_configs": controllers, "sample_limit": asked.most_series},
        _nodes_of(asked, cluster, labels),
    ]


def _nodes_of(asked: Observability, cluster: str, labels: dict[str, str]) -> dict[str, Any]:
    every = asked.nodeScrapeInterval
    node = {"source_labels": ["__meta_kubernetes_node_name"]}
    return {
        # The kubelet's job name, as on the kwok runtime; the chart's own jobs of that name have other paths.
        "job_name": "kubelet",
        "scrape_interval": every,
        "scrape_timeout": _timeout(every, _LONGEST_NODE_TIMEOUT),
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
