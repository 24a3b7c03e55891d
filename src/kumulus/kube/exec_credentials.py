"""Credentials from a command that a kubeconfig names: client-go's exec credential plugins.

Source: https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins and
k8s.io/client-go/plugin/pkg/client/auth/exec, which this follows to the letter for the command and its answer.
"""

import asyncio
import base64
import json
import os
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from kumulus.kube.errors import CredentialsError, KubeconfigError

API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_EXTENSION = "client.authentication.k8s.io/exec"
_CLUSTER_KEYS = ("server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data", "proxy-url")
_PATIENCE_S = 60.0
# A token that expires while a request is on its way would be refused.
_MARGIN = timedelta(seconds=10)


@dataclass(frozen=True)
class ExecPlugin:
    """The command of a kubeconfig's user."""

    api_version: str
    """The version of ExecCredential that the command should print."""
    command: str
    """A program on PATH, or a path."""
    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    """Variables added to ours."""
    information: str = field(repr=False)
    """The value of the variable KUBERNETES_EXEC_INFO: what the command may want to know, as JSON."""
    hint: str
    """What the kubeconfig says to do when the command is missing."""
    kubeconfig: Path
    """The kubeconfig's path, for messages."""


@dataclass(frozen=True)
class Credential:
    """What a command printed, or a token from a file."""

    token: str = field(default="", repr=False)
    """A bearer token; empty for none."""
    certificate: str = field(default="", repr=False)
    """A client certificate, PEM; empty for none."""
    key: str = field(default="", repr=False)
    """Its key, PEM."""
    expires: datetime | None = None
    """When it expires; None when the command does not say."""

    @property
    def headers(self) -> dict[str, str]:
        """The headers of requests with it."""
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    def usable(self, now: datetime) -> bool:
        """Whether it can still be used."""
        return self.expires is None or now + _MARGIN < self.expires


def exec_plugin(raw: object, cluster: Mapping[str, Any], path: Path) -> ExecPlugin:
    """Read the entry `exec` of a kubeconfig's user.

    Args:
        cluster: the cluster's entry, which the command may want to know.
        path: of the kubeconfig; a relative command starts from its directory.
    """

    def wrong(what: str) -> KubeconfigError:
        return KubeconfigError(f"kubeconfig {path}: its user's exec {what}")

    if not isinstance(raw, Mapping):
        raise wrong("is no mapping; write command and apiVersion")
    command, version = str(raw.get("command") or ""), raw.get("apiVersion")
    if not command:
        raise wrong("has no command; write the program that prints credentials")
    if version not in API_VERSIONS:
        raise wrong(f"has the apiVersion {version!r}; write {API_VERSIONS[0]}, which the command has to speak too")
    if raw.get("interactiveMode") == "Always":
        raise wrong(f"wants a terminal (interactiveMode: Always), and there is none; sign in with {command} before")
    variables = raw.get("env") or []
    if not isinstance(variables, list) or not all(isinstance(one, Mapping) and one.get("name") for one in variables):
        raise wrong("has an env that is no list of {name, value}; write it as one")
    arguments = raw.get("args") or []
    if not isinstance(arguments, list):
        raise wrong("has args that are no list; write them as one")
    spec: dict[str, Any] = {"interactive": False}
    if raw.get("provideClusterInfo"):
        spec["cluster"] = _cluster_information(cluster, path)
    return ExecPlugin(
        api_version=str(version),
        command=str(path.parent / command) if os.sep in command else command,
        arguments=tuple(map(str, arguments)),
        environment={str(each["name"]): str(each.get("value") or "") for each in variables},
        information=json.dumps({"apiVersion": version, "kind": "ExecCredential", "spec": spec}),
        hint=" ".join(str(raw.get("installHint") or "").split()),
        kubeconfig=path,
    )


def _cluster_information(cluster: Mapping[str, Any], path: Path) -> dict[str, Any]:
    found = {key: cluster[key] for key in _CLUSTER_KEYS if cluster.get(key)}
    if cluster.get("certificate-authority") and "certificate-authority-data" not in found:
        file = path.parent / str(cluster["certificate-authority"])
        try:
            found["certificate-authority-data"] = base64.b64encode(file.read_bytes()).decode()
        except OSError as error:
            reason = error.strerror or error
            raise KubeconfigError(
                f"kubeconfig {path}: its certificate-authority {file} cannot be read: {reason}"
            ) from None
    for extension in cluster.get("extensions") or ():
        if isinstance(extension, Mapping) and extension.get("name") == _EXTENSION:
            found["config"] = extension.get("extension")
    return found


class ExecCredentials:
    """The credentials of one user, asked for when they are needed and again when they expire or are refused.

    Args:
        tls: makes a TLS context with a client certificate and key, both PEM.
    """

    def __init__(self, plugin: ExecPlugin, server: str, tls: Callable[[str, str], ssl.SSLContext]) -> None:
        self._plugin = plugin
        self._server = server
        self._tls = tls
        self._known: Credential | None = None
        self._context: ssl.SSLContext | None = None
        self._lock = asyncio.Lock()

    async def current(self) -> tuple[Credential, ssl.SSLContext | None]:
        """Return credentials that are valid now, and the TLS context with their certificate if they have one."""
        async with self._lock:
            known = self._known
            if known is not None and known.usable(datetime.now(UTC)):
                return known, self._context
            found = await self._ask()
            # Idle connections go by their context: with the same certificate, it is kept.
            if known is None or (found.certificate, found.key) != (known.certificate, known.key):
                self._context = self._context_of(found)
            self._known = found
            return found, self._context

    def refused(self, credential: Credential) -> None:
        """Forget credentials that the server did not accept, unless others have replaced them already."""
        if self._known is credential:
            self._known = None

    def _context_of(self, credential: Credential) -> ssl.SSLContext | None:
        if not credential.certificate:
            return None
        try:
            return self._tls(credential.certificate, credential.key)
        except (OSError, ValueError) as error:
            raise self._failed(f"prints a certificate and key that cannot be used: {error}") from None

    async def _ask(self) -> Credential:
        plugin = self._plugin
        try:
            process = await asyncio.create_subprocess_exec(
                plugin.command,
                *plugin.arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env={**os.environ, **plugin.environment, "KUBERNETES_EXEC_INFO": plugin.information},
            )
        except OSError as error:
            hint = plugin.hint or "install it, or check the kubeconfig's command"
            raise self._failed(f"cannot be run ({(error.strerror or str(error)).lower()}); {hint}") from None
        try:
            async with asyncio.timeout(_PATIENCE_S):
                out, err = await process.communicate()
        except TimeoutError:
            raise self._failed(f"did not end within {_PATIENCE_S:.0f} s") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            output = " ".join(err.decode(errors="replace").split())[-300:]
            raise self._failed(f"ended with exit code {process.returncode}" + (f": {output}" if output else ""))
        return self._read(out)

    def _read(self, out: bytes) -> Credential:
        try:
            answer = json.loads(out)
            version, kind, status = answer["apiVersion"], answer["kind"], answer["status"]
            token = status.get("token") or ""
            certificate, key = status.get("clientCertificateData") or "", status.get("clientKeyData") or ""
            written = status.get("expirationTimestamp")
            expires = datetime.fromisoformat(written) if written else None
        except (ValueError, KeyError, TypeError, AttributeError):
            raise self._failed("does not print an ExecCredential with a status") from None
        if kind != "ExecCredential" or version != self._plugin.api_version:
            raise self._failed(f"prints {kind} of {version}, not ExecCredential of {self._plugin.api_version}")
        if not token and not (certificate and key):
            raise self._failed("prints neither a token nor a certificate with its key")
        if expires is not None and expires.tzinfo is None:
            expires = expires.replace(tzinfo=UTC)
        return Credential(token, certificate, key, expires)

    def _failed(self, what: str) -> CredentialsError:
        return CredentialsError(self._server, f"{self._plugin.command}, named in {self._plugin.kubeconfig}, {what}")
