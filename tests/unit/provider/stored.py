"""A cluster of which an API server in memory keeps the objects, and operations of the plugin on what is in it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kumulus.provider.connections import Connections
from kumulus.provider.resources.base import Operation, Properties
from tests.support.object_store import Store, storing
from tests.support.said import Said

KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: c
contexts: [{{name: c, context: {{cluster: c, user: u}}}}]
clusters: [{{name: c, cluster: {{server: "{address}"}}}}]
users: [{{name: u, user: {{}}}}]
"""


def written(folder: Path, address: str) -> str:
    """The path of a kubeconfig for an API server's address."""
    file = folder / "kubeconfig.yaml"
    file.write_text(KUBECONFIG.format(address=address))
    return str(file)


def operation(token: str = "t", **options: Any) -> Operation:
    return Operation(f"urn:pulumi:dev::p::{token}::it", Said(), asyncio.Event(), **options)


def messages(op: Operation) -> list[str]:
    assert isinstance(op.report, Said)
    return op.report.messages


@dataclass
class StoredCluster:
    """The cluster, the plugin's connections, and the place of what is in it."""

    store: Store
    connections: Connections
    place: Properties


@asynccontextmanager
async def stored(folder: Path, **place: Any) -> AsyncIterator[StoredCluster]:
    """Serve a cluster; its kubeconfig is in a folder."""
    async with storing() as store:
        system = store.put("/api/v1/namespaces", {"metadata": {"name": "kube-system"}})
        where = {"kubeconfig": written(folder, store.address), "clusterIdentity": system["metadata"]["uid"]}
        connections = Connections()
        yield StoredCluster(store, connections, {**where, "clusterName": "dev", **place})
        await connections.close()
