"""Read a kubeconfig: the part of the format that says where a cluster is and who asks.

Source of the format: https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/
"""

import base64
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from kumulus.kube import authentication
from kumulus.kube.authentication import TokenFile
from kumulus.kube.errors import KubeconfigError
from kumulus.kube.exec_credentials import ExecCredentials, exec_plugin
from kumulus.kube.http_connection import ResumingContext
from kumulus.kube.safe_yaml import FAST_LOADER, MOST_BYTES, TooMuch, check_limits, too_large


@dataclass(frozen=True)
class Connection:
    """Where an API server is and how to authenticate."""

    server: str
    """Base address, such as ``https://127.0.0.1:32766``."""
    context: str
    """Name of the kubeconfig context that was used."""
    headers: dict[str, str | tuple[str, ...]] = field(default_factory=dict, repr=False)
    """Headers to send with every request, such as a bearer token."""
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    """The TLS context, or None for a plain ``http`` server."""
    credentials: ExecCredentials | TokenFile | None = field(default=None, repr=False)
    """Asked before each request: a command or a token's file; None if there is neither."""
    server_name: str = ""
    """The name in the server's certificate, if it is not that of its address; empty otherwise."""


def load_kubeconfig(source: str | Path, context: str | None = None) -> Connection:
    """Read a kubeconfig file and return the connection of one of its contexts.

    Args:
        context: name of the context; the file's ``current-context`` when None.

    Raises:
        KubeconfigError: the file is missing, is not YAML, lacks the context, cluster or user, or names files that
            cannot be used.
    """
    path = Path(source)
    return connection(read_kubeconfig(path), path, context)


def read_kubeconfig(path: Path) -> dict[str, Any]:
    """The document of a kubeconfig file."""
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise too_large()
        text = content.decode()
    except FileNotFoundError:
        raise KubeconfigError(f"kubeconfig {path} does not exist; check its path") from None
    except TooMuch as error:
        raise KubeconfigError(f"kubeconfig {path} {error}; {error.remedy}") from None
    except (OSError, ValueError) as error:
        raise KubeconfigError(f"kubeconfig {path} cannot be read: {error}") from None
    return parse_kubeconfig(text, path)


def parse_kubeconfig(text: str, path: Path) -> dict[str, Any]:
    """The document of a kubeconfig's text; no error repeats any of it, since it holds keys."""
    try:
        check_limits(text)
        document = yaml.load(text, Loader=FAST_LOADER)  # noqa: S506  # a safe loader
    except TooMuch as error:
        raise KubeconfigError(f"kubeconfig {path} {error}; {error.remedy}") from None
    except ValueError:
        raise KubeconfigError(f"kubeconfig {path}: a date or a number in it cannot be read; correct it") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark else ""
        reason = getattr(error, "problem", None) or "it cannot be parsed"
        raise KubeconfigError(f"kubeconfig {path} is not YAML: {reason}{where}") from None
    if not isinstance(document, dict):
        raise KubeconfigError(f"kubeconfig {path} is not a kubeconfig: expected a mapping")
    return document


def connection(document: dict[str, Any], path: Path, context: str | None = None) -> Connection:
    """The connection of one of a kubeconfig's contexts.

    Args:
        path: its file, whose directory relative paths in it start from, and which errors name.
    """
    chosen = entries(document, path, context)
    name, cluster, user = chosen.context, chosen.cluster, chosen.user
    place = f"kubeconfig {path}, context {name!r}"
    server = str(cluster.get("server") or "").rstrip("/")
    if problem := _address_problem(server):
        raise KubeconfigError(f"{place}: {problem}; write it like https://127.0.0.1:6443")
    authentication.refuse(cluster, user, place)
    headers = authentication.headers(user, place)
    tls = _tls(cluster, user, path) if server.startswith("https://") else None
    credentials: ExecCredentials | TokenFile | None = None
    if user.get("exec"):
        plugin = exec_plugin(user["exec"], cluster, path)
        credentials = ExecCredentials(plugin, server, partial(_tls_with_certificate, cluster, path))
    elif user.get("tokenFile"):
        file = path.parent / str(user["tokenFile"])
        with _using(f"tokenFile {file}", path):
            credentials = TokenFile(file, str(user.get("token") or ""))
    return Connection(
        server=server,
        context=name,
        headers=headers,
        tls=tls,
        credentials=credentials,
        server_name=str(cluster.get("tls-server-name") or ""),
    )


def _address_problem(server: str) -> str:
    """What is wrong with a server's address; empty for nothing."""
    if not server:
        return "it has no server"
    if not server.startswith(("https://", "http://")):
        return f"the server {server!r} has no scheme"
    try:
        parts = urlsplit(server)
    except ValueError:
        return f"the server {server!r} has no closing bracket"
    try:
        parts.port  # noqa: B018  # which is parsed only now
    except ValueError:
        return f"the server {server!r} has no port from 0 to 65535"
    if not parts.hostname:
        return f"the server {server!r} has no host"
    try:
        # As the lookup of an address does.
        parts.hostname.encode("idna")
    except UnicodeError:
        return f"the server {server!r} has a host that is no name: part of it is empty, or longer than 63 characters"
    return ""


@dataclass(frozen=True)
class Entries:
    """The entries of one context of a kubeconfig."""

    context: str
    """Its name."""
    settings: dict[str, Any]
    """The context's own, such as its namespace."""
    cluster: dict[str, Any]
    """The cluster it names."""
    user: dict[str, Any]
    """The user it names; empty for none."""


def entries(document: dict[str, Any], path: Path, context: str | None = None) -> Entries:
    """The entries of a context; arguments and errors as for :func:`connection`."""
    name = context or str(document.get("current-context") or "")
    if not name:
        known = ", ".join(contexts(document)) or "none"
        raise KubeconfigError(f"kubeconfig {path} has no current-context; name one of its contexts: {known}")
    chosen = _named(document, "contexts", name, "context", path)
    cluster = _named(document, "clusters", str(chosen.get("cluster") or ""), "cluster", path)
    user = _named(document, "users", str(chosen.get("user") or ""), "user", path) if chosen.get("user") else {}
    return Entries(name, chosen, cluster, user)


def contexts(document: dict[str, Any]) -> list[str]:
    """The names of a kubeconfig's contexts, in its order."""
    return [str(each.get("name")) for each in _listed(document, "contexts")]


def _listed(document: dict[str, Any], section: str) -> list[dict[str, Any]]:
    listed = document.get(section)
    return [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []


def _named(document: dict[str, Any], section: str, name: str, kind: str, path: Path) -> dict[str, Any]:
    """Return the entry of that name in one of the kubeconfig's lists."""
    listed = _listed(document, section)
    for entry in listed:
        if entry.get("name") == name:
            found = entry.get(kind) or {}
            return found if isinstance(found, dict) else {}
    known = ", ".join(str(entry.get("name")) for entry in listed) or "none"
    raise KubeconfigError(f"kubeconfig {path} has no {kind} {name!r}; it has: {known}")


@contextmanager
def _using(what: str, path: Path) -> Iterator[None]:
    """A context in which an entry is used; if it cannot be, the error names the kubeconfig and the entry."""
    try:
        yield
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError, binascii.Error a ValueError
        reason = (isinstance(error, OSError) and error.strerror) or error
        raise KubeconfigError(f"kubeconfig {path}: its {what} cannot be used: {reason}; write it again") from None


def _tls(cluster: dict[str, Any], user: dict[str, Any], path: Path) -> ssl.SSLContext:
    """Build the TLS context from the cluster's CA and the user's client certificate."""
    if cluster.get("insecure-skip-tls-verify"):
        context = ResumingContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif cluster.get("certificate-authority-data"):
        with _using("certificate-authority-data", path):
            context = ResumingContext.for_client(cadata=_decode(cluster["certificate-authority-data"]).decode())
    elif cluster.get("certificate-authority"):
        authority = path.parent / str(cluster["certificate-authority"])
        with _using(f"certificate-authority {authority}", path):
            context = ResumingContext.for_client(cafile=str(authority))
    else:
        # The system's authorities, a hundred of them, are read only if they are needed.
        context = ResumingContext.for_client()
    if certificate := _pem(user, "client-certificate", path):
        with _using("client-certificate and client-key", path):
            _load_pair(context, certificate, _pem(user, "client-key", path))
    return context


def _pem(user: dict[str, Any], name: str, path: Path) -> bytes:
    """A user's certificate or key: from the kubeconfig itself, or else from the file that it names; empty for none."""
    if user.get(f"{name}-data"):
        with _using(f"{name}-data", path):
            return _decode(user[f"{name}-data"])
    if not user.get(name):
        return b""
    file = path.parent / str(user[name])
    with _using(f"{name} {file}", path):
        return file.read_bytes()


def _tls_with_certificate(cluster: dict[str, Any], path: Path, certificate: str, key: str) -> ssl.SSLContext:
    """Build the TLS context from the cluster's CA and a client certificate that a command gave."""
    context = _tls(cluster, {}, path)
    _load_pair(context, certificate.encode(), key.encode())
    return context


def _load_pair(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    # The standard library loads a client key only from files; this one is private and deleted at once.
    with tempfile.NamedTemporaryFile() as pair:
        pair.write(certificate + b"\n" + key)
        pair.flush()
        context.load_cert_chain(pair.name, password=_no_passphrase)


def _no_passphrase() -> str:
    # OpenSSL would ask the terminal and wait, though Pulumi hides the question.
    raise ValueError("the key has a passphrase, and has to have none")


def _decode(data: object) -> bytes:
    # Strictly: otherwise, authorities that are not base64 would decode to nothing, which means the system's.
    found = base64.b64decode("".join(str(data).split()), validate=True)
    if not found.strip():
        raise ValueError("it is empty")
    return found
