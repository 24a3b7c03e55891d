"""etcd answers only the API server: over TLS, to holders of the key in the cluster's private folder.

kwokctl (v0.8.0, pkg/kwokctl/components/etcd.go) starts it on plain HTTP without authentication, and etcd's own defaults
let every web page query its JSON gateway: any process on this machine could bypass RBAC to read and write. The
certificates are those that kwokctl makes for the API server and its administrator.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kumulus.runtimes.kwok import access
from kumulus.runtimes.kwok.layout import Layout

if TYPE_CHECKING:
    from kumulus.kube import Connection

ETCD, API_SERVER = "etcd", "kube-apiserver"


def flags(pki: Path, port: int, peer_port: int) -> dict[str, dict[str, str]]:
    """The flags with which etcd and the API server authenticate each other, by component.

    Args:
        port: etcd's port for the API server.
        peer_port: etcd's port for other members; there are none, but the port cannot be closed.
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


def flag(settings: Mapping[str, Any], component: str, name: str) -> str | None:
    """The value of one of a component's flags, by what kwokctl saved; None if it is started without the flag."""
    parsed = [each.removeprefix("--").partition("=") for each in _arguments(settings, component)]
    return next((value for key, _, value in parsed if key == name), None)


def connection(layout: Layout) -> Connection:
    """The connection for asking etcd for its health."""
    return access.connection(layout.directory / "pki", f"https://127.0.0.1:{layout.ports().get(ETCD)}")


def _arguments(settings: Mapping[str, Any], component: str) -> list[str]:
    listed = settings.get("components") or []
    return [str(argument) for each in listed if each.get("name") == component for argument in each.get("args") or []]
