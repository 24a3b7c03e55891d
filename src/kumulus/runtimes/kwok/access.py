"""Who may query the components of a cluster: holders of its certificate, whose key is in its private folder.

Every user of the machine can connect to 127.0.0.1, and every web page can through a host name that resolves to it.
kwokctl lets them read the metrics of the scheduler and the controller manager, and (v0.8.0,
pkg/kwokctl/components/etcd.go) starts etcd on plain HTTP without authentication. etcd's own defaults let every web page
query its JSON gateway: any process on this machine could bypass RBAC to read and write. The certificates are those that
kwokctl makes for the API server and its administrator.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kumulus.kube import Connection

ETCD, API_SERVER = "etcd", "kube-apiserver"
CONTROLLERS = ("kube-controller-manager", "kube-scheduler")
ALWAYS_ALLOWED = "authorization-always-allow-paths"


def controller_flags(pki: Path) -> dict[str, dict[str, str]]:
    """The flags with which the controllers serve everything except their health to the cluster's administrator only.

    The controller manager also signs certificates, as every cluster's does; kwokctl gives it no key for that.
    """
    # By default, they allow the group system:masters everything (k8s.io/apiserver, DelegatingAuthorizationOptions).
    serving = {"client-ca-file": str(pki / "ca.crt"), ALWAYS_ALLOWED: "/healthz,/livez,/readyz"}
    signing = {"cluster-signing-cert-file": str(pki / "ca.crt"), "cluster-signing-key-file": str(pki / "ca.key")}
    return {name: serving | (signing if name == "kube-controller-manager" else {}) for name in CONTROLLERS}


def etcd_flags(pki: Path, port: int, peer_port: int) -> dict[str, dict[str, str]]:
    """The flags with which etcd and the API server authenticate each other, by component.

    The peers' port is for other members of etcd; there are none, but it cannot be closed.
    """
    authority, certificate, key = (str(pki / name) for name in ("ca.crt", "admin.crt", "admin.key"))
    here, peers = f"https://127.0.0.1:{port}", f"https://127.0.0.1:{peer_port}"
    return {
        ETCD: {
            "listen-client-urls": here,
            "advertise-client-urls": here,
            "cert-file": certificate,
            "key-file": key,
            "trusted-ca-file": authority,
            "client-cert-auth": "true",
            "listen-peer-urls": peers,
            "initial-advertise-peer-urls": peers,
            "initial-cluster": f"node0={peers}",
            "peer-cert-file": certificate,
            "peer-key-file": key,
            "peer-trusted-ca-file": authority,
            "peer-client-cert-auth": "true",
            # Against web pages in a browser that has the certificate. An empty list of origins would mean all.
            "enable-grpc-gateway": "false",
            "cors": here,
            "host-whitelist": "127.0.0.1",
        },
        API_SERVER: {
            "etcd-servers": here,
            "etcd-cafile": authority,
            "etcd-certfile": certificate,
            "etcd-keyfile": key,
        },
    }


def connection(pki: Path, server: str) -> Connection:
    """The connection to a component with the cluster's certificate."""
    # Imported here: a plugin that only compares properties needs no HTTP library.
    from kumulus.kube import Connection
    from kumulus.kube.http_connection import ResumingContext

    name = pki.parent.name
    tls = ResumingContext.for_client(cafile=str(pki / "ca.crt"))
    tls.load_cert_chain(pki / "admin.crt", pki / "admin.key")
    return Connection(server, name, tls=tls)
