"""A namespace of a cluster that others use as well: tests in several processes share one, each in a namespace."""

import asyncio
from pathlib import Path
from typing import Any, NoReturn

import yaml

from kumulus.host import files
from kumulus.kube import objects
from kumulus.model.identity import Owner
from kumulus.runtimes import apiserver
from kumulus.runtimes.base import Observed
from kumulus.runtimes.kwok.layout import Layout, dump
from kumulus.testing.asynchronous import AsyncCluster
from kumulus.testing.control_plane import SILENT_S, wait_until_filled
from kumulus.testing.errors import ClusterError
from kumulus.testing.plane import CLUSTERS, NAMESPACES, Plane

_EVERYBODYS = "is everybody's: the cluster is shared; leave --kumulus-share out, or use the fixture kumulus_cluster"


class NamespaceShare(AsyncCluster):
    """One namespace of a cluster that is up; what is outside it is neither reset nor listed, except nodes.

    Args:
        folder: the cluster's folder.
        namespace: the namespace's name; it is made if it is not there.
        asked: what the cluster was made with, as arguments of :class:`AsyncCluster`.
    """

    def __init__(self, folder: Path, namespace: str, **asked: Any) -> None:
        super().__init__(**asked)
        self.namespace = self._within = namespace
        self._folder = folder

    async def _start_plane(self) -> Plane:
        layout = Layout(self._folder / CLUSTERS / self._loaded.cluster_name)
        kubeconfig = self._folder / NAMESPACES / f"{self.namespace}.yaml"
        await asyncio.to_thread(_write_kubeconfig, layout, kubeconfig, self.namespace)
        server = f"https://127.0.0.1:{layout.ports()['kube-apiserver']}"
        client = apiserver.client(layout.kubeconfig, patience=SILENT_S)
        plane = Plane(
            folder=self._folder,
            loaded=self._loaded,
            observed=Observed("", str(kubeconfig), server, str(layout.directory), components={}),
            client=client,
            owner=Owner("", layout.name),
            pools={},
            report=self._report,
            # It is not for one of its users to end the cluster.
            kept=True,
        )
        body = {"metadata": {"name": self.namespace}}
        if await objects.find(client, f"/api/v1/namespaces/{self.namespace}") is None:
            await self._answer_of(client.create("/api/v1/namespaces", body))
        await self._answer_of(wait_until_filled(client, [self.namespace]))
        return plane

    def fault(self, *_: Any, **__: Any) -> NoReturn:
        """Refused: nodes are everybody's."""
        raise ClusterError(f"a fault of nodes {_EVERYBODYS}")

    def resize(self, *_: Any, **__: Any) -> NoReturn:
        """Refused: nodes are everybody's."""
        raise ClusterError(f"the number of nodes {_EVERYBODYS}")

    def experiment(self, *_: Any, **__: Any) -> NoReturn:
        """Refused: it would change the whole cluster."""
        raise ClusterError(f"an experiment {_EVERYBODYS}")


def _write_kubeconfig(layout: Layout, kubeconfig: Path, namespace: str) -> None:
    """Write the cluster's kubeconfig again, with the namespace in its context."""
    kubeconfig.parent.mkdir(mode=0o700, exist_ok=True)
    document = yaml.safe_load(layout.text(layout.kubeconfig))
    for each in document["contexts"]:
        each["context"]["namespace"] = namespace
    files.write(kubeconfig, dump([document]), mode=0o600)
