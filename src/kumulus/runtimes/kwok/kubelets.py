"""Where the API server finds the kubelets of emulated nodes: at kwok-controller, which answers for all of them."""

from __future__ import annotations

from typing import Any

from kumulus.runtimes.kwok import access


def flags(port: int) -> dict[str, dict[str, str]]:
    """The API server's flags, by component.

    By default, it asks DNS for a node's name, and sends logs and exec to whoever has that name (k8s.io/kubernetes
    pkg/kubelet/client). Emulated nodes call themselves localhost, and name no port of their own.

    Args:
        port: kwok-controller's.
    """
    return {"kube-apiserver": {"kubelet-preferred-address-types": "InternalDNS", "kubelet-port": str(port)}}


def patches(port: int) -> list[dict[str, Any]]:
    """The flags as kwokctl takes them when it makes a cluster."""
    return [access.patch(component, wanted, ()) for component, wanted in flags(port).items()]
