"""Reconnect the workers of a federation that a run has cut off: restore the hub's access and their control planes.

The hub's access to a worker is the kubeconfig in a Secret. Its token is not in the journal: only the server's address
changes, and the name in its certificate.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from kumulus.extras.journal import outages
from kumulus.extras.journal.book import Journal
from kumulus.extras.journal.changes import Rerouted
from kumulus.extras.journal.errors import NotPutBack
from kumulus.kube import KubeconfigError, objects
from kumulus.kube.config import parse_kubeconfig
from kumulus.nodes.errors import ProviderError

if TYPE_CHECKING:
    from kumulus.kube import Client

_KEY = "kubeconfig"


async def server_of(client: Client, secret: str) -> str:
    """The address by which a hub reaches a worker, whose kubeconfig is in a Secret with this path."""
    return str(_cluster(_document(await _found(client, secret), secret)).get("server") or "")


async def reroute(client: Client, journal: Journal, rerouted: Rerouted) -> None:
    """Let a hub reach a worker by another address, after recording the present one in the run's journal on the hub."""
    journal.add(rerouted=[rerouted])
    await _point(client, rerouted.secret, rerouted.server, rerouted.proxy)


async def reach_directly(client: Client, rerouted: Rerouted) -> bool:
    """Let a hub reach a worker directly again; returns whether it was still rerouted.

    An address that somebody else has written since is left alone, and so is a deleted Secret.
    """
    if await objects.find(client, rerouted.secret) is None:
        return False
    return await _point(client, rerouted.secret, rerouted.proxy, rerouted.server)


async def bring_back(kubeconfig: Path) -> bool:
    """Start the control plane of a worker again; returns whether it was not running."""
    try:
        return await outages.bring_back(kubeconfig)
    except ProviderError as error:
        raise NotPutBack(
            f"the worker {kubeconfig.parent.name} cannot be started: {error}; `pulumi up --refresh` starts a cluster's "
            "components"
        ) from None


async def _point(client: Client, secret: str, old: str, new: str) -> bool:
    found = await _found(client, secret)
    document = _document(found, secret)
    cluster = _cluster(document)
    if cluster.get("server") != old:
        return False
    cluster["server"] = new
    before, after = urlsplit(old).hostname, urlsplit(new).hostname
    if cluster.get("tls-server-name") == after:
        # The new address is the certificate's name again.
        del cluster["tls-server-name"]
    elif before != after:
        # The certificate is for the name by which the worker was reached.
        cluster.setdefault("tls-server-name", before)
    data = {_KEY: base64.b64encode(json.dumps(document, indent=1).encode()).decode()}
    version = {"resourceVersion": found["metadata"]["resourceVersion"]}
    await client.merge_patch(secret, {"metadata": version, "data": data})
    return True


async def _found(client: Client, secret: str) -> dict[str, Any]:
    found = await objects.find(client, secret)
    if found is None:
        raise NotPutBack(f"the hub has no {secret}; `pulumi up --refresh` makes it again")
    return found


def _document(found: dict[str, Any], secret: str) -> dict[str, Any]:
    try:
        text = base64.b64decode((found.get("data") or {})[_KEY]).decode()
        return parse_kubeconfig(text, Path(secret))
    except (KeyError, ValueError, KubeconfigError):
        raise NotPutBack(f"{secret} on the hub has no kubeconfig; `pulumi up --refresh` writes it again") from None


def _cluster(document: dict[str, Any]) -> dict[str, Any]:
    """The only cluster of a kubeconfig that the stack has written."""
    try:
        cluster = document["clusters"][0]["cluster"]
    except (KeyError, IndexError, TypeError):
        return {}
    return cluster if isinstance(cluster, dict) else {}
