"""How the API server finds and trusts Kueue's webhooks where Kueue is a local process.

The API server finds a webhook by a Service. For a local process its type is ExternalName, for localhost, so that the
names in the certificate stay what Kueue's certificate rotation makes them. (A certificate made elsewhere needs a fixed
path, /etc/kueue/metrics/certs: cmd/kueue/main.go.) Kueue writes certificates into a Secret, which a kubelet would mount
as files; :func:`mount` does that here.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kumulus.extras.federation.federation import API
from kumulus.extras.federation.names import NAMESPACE
from kumulus.host import files
from kumulus.kube import ApiError, Unreachable

if TYPE_CHECKING:
    from kumulus.kube import Client

SERVICE = "kueue-webhook-service"
SECRET = "kueue-webhook-server-cert"  # noqa: S105 - its name
MANAGEMENT: Mapping[str, Any] = {"enable": True, "webhookServiceName": SERVICE, "webhookSecretName": SECRET}
"""Kueue's configuration of its certificates."""
_FLAVORS = f"/apis/{API}/resourceflavors"
_PROBE = {"apiVersion": API, "kind": "ResourceFlavor", "metadata": {"name": "kumulus-probe"}, "spec": {}}


def reached(port: int, path: str) -> dict[str, Any]:
    """The clientConfig of a webhook."""
    return {"service": {"name": SERVICE, "namespace": NAMESPACE, "port": port, "path": path}}


def objects(port: int) -> list[dict[str, Any]]:
    """What the cluster needs for the webhooks: the namespace, the Secret for the certificates, and the Service."""
    target = {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}
    inside = {"namespace": NAMESPACE}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET, **inside}},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": SERVICE, **inside}, "spec": target},
    ]


async def mount(client: Client, directory: Path) -> None:
    """Write the certificates that Kueue makes to where it looks for them, once it has made them."""
    while True:
        secret = await client.get(f"/api/v1/namespaces/{NAMESPACE}/secrets/{SECRET}")
        data = secret.get("data") or {}
        if {"tls.crt", "tls.key"} <= data.keys():
            _write(directory, data)
            return
        await asyncio.sleep(0.05)


async def webhooks_answer(client: Client, every: float) -> None:
    """Wait until the API server reaches the webhooks, by dry-run requests for only that purpose.

    Whoever waits for this has a limit.

    Args:
        every: seconds from one request to the next.
    """
    while True:
        try:
            await client.request("POST", _FLAVORS, params={"dryRun": "All"}, body=_PROBE, patience=0.0)
            return
        except Unreachable:
            # The API server waits for a webhook for as long as this client waits for the API server.
            pass
        except ApiError as error:
            if not error.transient and "webhook" not in error.message:
                raise
        await asyncio.sleep(every)


def _write(directory: Path, data: Mapping[str, str]) -> None:
    directory.mkdir(mode=0o700, exist_ok=True)
    # Kueue waits for the certificate, and then expects its key to exist.
    for name in ("ca.crt", "tls.key", "tls.crt"):
        files.write(directory / name, base64.b64decode(data.get(name, "")), mode=0o600)
