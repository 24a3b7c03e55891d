"""Who may query the components of a cluster: holders of its certificate, whose key is in its private folder.

Every user of the machine can connect to 127.0.0.1, and every web page can through a host name that resolves to it.
kwokctl lets them read the metrics of the scheduler and the controller manager. For etcd, see
:mod:`kumulus.runtimes.kwok.etcd`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kumulus.kube import Connection

CONTROLLERS = ("kube-controller-manager", "kube-scheduler")
ALWAYS_ALLOWED = "authorization-always-allow-paths"


def flags(pki: Path) -> dict[str, dict[str, str]]:
    """The flags with which the controllers serve everything except their health to the cluster's administrator only.

    The controller manager also signs certificates, as every cluster's does; kwokctl gives it no key for that.
    """
    # By default, they allow the group system:masters everything (k8s.io/apiserver, DelegatingAuthorizationOptions).
    mine = {"client-ca-file": str(pki / "ca.crt"), ALWAYS_ALLOWED: "/healthz,/livez,/readyz"}
    signing = {"cluster-signing-cert-file": str(pki / "ca.crt"), "cluster-signing-key-file": str(pki / "ca.key")}
    return {name: mine | (signing if name == "kube-controller-manager" else {}) for name in CONTROLLERS}


def connection(pki: Path, server: str) -> Connection:
    """The connection to a component with the cluster's certificate."""
    # Imported here: a plugin that only compares properties needs no HTTP library.
    from kumulus.kube import Connection
    from kumulus.kube.tls import ResumingContext

    name = pki.parent.name
    tls = ResumingContext.for_client(cafile=str(pki / "ca.crt"))
    tls.load_cert_chain(pki / "admin.crt", pki / "admin.key")
    return Connection(server, name, tls=tls)
