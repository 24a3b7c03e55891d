"""A kind cluster's control plane, with its metrics where a Prometheus in the cluster gets at them.

kubeadm has them listen on 127.0.0.1 of their node, where no pod is. See docs/decisions/observability.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kumulus.runtimes.kind.kind_config import EMPTY

# Without an API version, so that kind lays them on whichever it writes (its pkg/internal/patch). The first two programs
# ask for a token; etcd and kube-proxy have no more there than numbers.
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
        config: a checked ``kindConfig``; it is left as it is.
    """
    networking = config.get("networking") or {}
    anywhere = "::" if networking.get("ipFamily") == "ipv6" else "0.0.0.0"  # noqa: S104 - of a container's network
    host = f"[{anywhere}]" if ":" in anywhere else anywhere
    patches = [each.format(anywhere=anywhere, host=host) for each in (_COMPONENTS, _KUBE_PROXY)]
    return {**EMPTY, **config, "kubeadmConfigPatches": [*patches, *(config.get("kubeadmConfigPatches") or [])]}
