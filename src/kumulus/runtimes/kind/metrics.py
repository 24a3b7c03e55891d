"""Make the metrics of a kind cluster's control plane reachable for a Prometheus in the cluster.

kubeadm has them served on 127.0.0.1 of their node, out of reach of pods. See docs/decisions/observability.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kumulus.runtimes.kind.kind_config import EMPTY

# Without an API version, so that kind applies them to whichever it writes (its pkg/internal/patch). The first two
# programs ask for a token; etcd and kube-proxy serve nothing but numbers there.
_COMPONENTS = """\
kind: ClusterConfiguration
controllerManager: {{extraArgs: {{bind-address: "{anywhere}"}}}}
scheduler: {{extraArgs: {{bind-address: "{anywhere}"}}}}
etcd: {{local: {{extraArgs: {{listen-metrics-urls: "http://{host}:2381"}}}}}}
"""
_KUBE_PROXY = """\
kind: KubeProxyConfiguration
metricsBindAddress: "{host}:10249"
"""


def with_metrics(config: Mapping[str, Any]) -> dict[str, Any]:
    """Kind's configuration with patches for kubeadm before its own, which win.

    Args:
        config: a checked ``kindConfig``; it is not changed.
    """
    networking = config.get("networking") or {}
    anywhere = "::" if networking.get("ipFamily") == "ipv6" else "0.0.0.0"  # noqa: S104 - of a container's network
    host = f"[{anywhere}]" if ":" in anywhere else anywhere
    patches = [each.format(anywhere=anywhere, host=host) for each in (_COMPONENTS, _KUBE_PROXY)]
    return {**EMPTY, **config, "kubeadmConfigPatches": [*patches, *(config.get("kubeadmConfigPatches") or [])]}
