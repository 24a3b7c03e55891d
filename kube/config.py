"""Read a kubeconfig: the part of the format that says where a cluster is and who asks.

Source of the format: https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/
"""

from __future__ import annotations

import base64
import binascii
import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml


class KubeconfigError(Exception):
    """A kubeconfig that cannot be used; the message names the file (or "the given kubeconfig") and the remedy."""


@dataclass(frozen=True)
class Connection:
    """Where an API server is and how to authenticate.

    Attributes:
        server: base address, such as ``https://127.0.0.1:32766``.
        context: name of the kubeconfig context that was used.
        headers: headers to send with every request (a bearer token, for one).
        tls: the TLS context, or None for a plain ``http`` server.
    """

    server: str
    context: str
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    tls: ssl.SSLContext | None = field(default=None, repr=False)


def load_kubeconfig(source: str | Path, context: str | None = None) -> Connection:
    """Read a kubeconfig file and return the connection of one of its contexts.

    Args:
        source: path of the file.
        context: name of the context; the file's ``current-context`` when None.

    Raises:
        KubeconfigError: the file is missing, is not YAML, or lacks the context, cluster or user.
    """
    path = Path(source)
    try:
        document = yaml.load(path.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506  # both are safe loaders
    except FileNotFoundError:
        raise KubeconfigError(f"kubeconfig {path} does not exist") from None
    except (OSError, UnicodeDecodeError) as error:
        raise KubeconfigError(f"kubeconfig {path} cannot be read: {error}") from None
    except yaml.YAMLError as error:
        raise KubeconfigError(f"kubeconfig {path} is not YAML: {error}") from None
    if not isinstance(document, dict):
        raise KubeconfigError(f"kubeconfig {path} is not a kubeconfig: expected a mapping")

    name = context or str(document.get("current-context") or "")
    if not name:
        raise KubeconfigError(f"kubeconfig {path} has no current-context; name one")
    chosen = _named(document, "contexts", name, "context", path)
    cluster = _named(document, "clusters", str(chosen.get("cluster") or ""), "cluster", path)
    user = _named(document, "users", str(chosen.get("user") or ""), "user", path) if chosen.get("user") else {}

    server = str(cluster.get("server") or "").rstrip("/")
    if not server:
        raise KubeconfigError(f"kubeconfig {path}: context {name!r} has no server")
    headers: dict[str, str] = {}
    if user.get("token"):
        headers["Authorization"] = f"Bearer {user['token']}"
    elif user.get("tokenFile"):
        headers["Authorization"] = f"Bearer {Path(path.parent, str(user['tokenFile'])).read_text().strip()}"
    elif user.get("username"):
        basic = f"{user['username']}:{user.get('password', '')}".encode()
        headers["Authorization"] = "Basic " + base64.b64encode(basic).decode()
    tls = _tls(cluster, user, path) if server.startswith("https://") else None
    return Connection(server=server, context=name, headers=headers, tls=tls)


def _named(document: dict[str, Any], section: str, name: str, kind: str, path: Path) -> dict[str, Any]:
    """Return the entry of that name in one of the kubeconfig's lists."""
    entries = document.get(section) or []
    for entry in entries:
        if isinstance(entry, dict) and entry.get("name") == name:
            found = entry.get(kind) or {}
            return found if isinstance(found, dict) else {}
    known = ", ".join(str(entry.get("name")) for entry in entries if isinstance(entry, dict)) or "none"
    raise KubeconfigError(f"kubeconfig {path} has no {kind} {name!r}; it has: {known}")


def _tls(cluster: dict[str, Any], user: dict[str, Any], path: Path) -> ssl.SSLContext:
    """Build the TLS context from the cluster's CA and the user's client certificate."""
    try:
        context = ssl.create_default_context()
        if cluster.get("insecure-skip-tls-verify"):
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif cluster.get("certificate-authority-data"):
            context = ssl.create_default_context(cadata=_decode(cluster["certificate-authority-data"]).decode())
        elif cluster.get("certificate-authority"):
            context = ssl.create_default_context(cafile=str(path.parent / str(cluster["certificate-authority"])))
        if user.get("client-certificate-data") and user.get("client-key-data"):
            # The standard library loads a client key from files only; they are private and gone at once.
            with tempfile.NamedTemporaryFile() as pair:
                pair.write(_decode(user["client-certificate-data"]) + b"\n" + _decode(user["client-key-data"]))
                pair.flush()
                context.load_cert_chain(pair.name)
        elif user.get("client-certificate") and user.get("client-key"):
            context.load_cert_chain(
                path.parent / str(user["client-certificate"]), path.parent / str(user["client-key"])
            )
    except (OSError, ssl.SSLError, binascii.Error, ValueError) as error:
        raise KubeconfigError(f"kubeconfig {path}: its certificates cannot be used: {error}") from None
    return context


def _decode(data: object) -> bytes:
    return base64.b64decode(str(data))
