"""As whom kwok-controller asks the API server, and where that one asks it in turn, as the kubelet of every node.

Its key is the administrator's: one of its own in the same folder would protect nothing. It has another name, by which a
policy limits what it deletes.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kumulus.host import files
from kumulus.kube import objects
from kumulus.kwok import deletions
from kumulus.runtimes.kwok import access
from kumulus.runtimes.kwok.layout import Layout, dump

if TYPE_CHECKING:
    from kumulus.kube import Client

NAME = "kwok-controller"
POLICY = deletions.manifests("kumulus-kwok-deletions", NAME)
_COLLECTIONS = {
    deletions.POLICY: f"/apis/{deletions.API_VERSION}/validatingadmissionpolicies",
    deletions.BINDING: f"/apis/{deletions.API_VERSION}/validatingadmissionpolicybindings",
}
# The flag that kwokctl sets itself.
_KUBECONFIG = "kubeconfig"


def flags(directory: Path, port: int) -> dict[str, dict[str, str]]:
    """The flags by which kwok-controller and the API server find each other, by component.

    Args:
        directory: the cluster's.
        port: kwok-controller's.
    """
    return {
        NAME: {_KUBECONFIG: str(directory / Layout.CONTROLLERS)},
        # By default, it asks DNS for a node's name, and sends logs and exec to whoever has that name (k8s.io/kubernetes
        # pkg/kubelet/client). Emulated nodes call themselves localhost, and name no port of their own.
        "kube-apiserver": {"kubelet-preferred-address-types": "InternalDNS", "kubelet-port": str(port)},
    }


def patches(directory: Path, port: int) -> list[dict[str, Any]]:
    """The flags as kwokctl takes them when it makes a cluster."""
    return [access.patch(component, wanted, (_KUBECONFIG,)) for component, wanted in flags(directory, port).items()]


def write_kubeconfig(layout: Layout, port: int) -> None:
    """Write kwok-controller's own kubeconfig.

    Args:
        layout: the cluster.
        port: the API server's.

    Raises:
        OSError: the file cannot be written.
    """
    server = {"server": f"https://127.0.0.1:{port}", "certificate-authority": "pki/ca.crt"}
    user = {"client-certificate": "pki/admin.crt", "client-key": "pki/admin.key", "as": NAME}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": NAME, "cluster": server}],
        "users": [{"name": NAME, "user": {**user, "as-groups": ["system:masters"]}}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME}}],
        "current-context": NAME,
    }
    files.write(layout.directory / Layout.CONTROLLERS, dump([document]), mode=0o600)


async def restrict(client: Client) -> None:
    """Have the cluster refuse deletions by kwok-controller of what nobody has deleted.

    Raises:
        ApiError, Unreachable: the server refused, or gave no answer.
    """
    await asyncio.gather(*(objects.replace(client, _COLLECTIONS[each["kind"]], each) for each in POLICY))
