"""The resource metrics API of a cluster: what somebody else has registered is neither changed nor deleted."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kumulus.kube import ApiError
from kumulus.nodes.errors import ProviderError
from kumulus.runtimes.kwok import metrics_server

SERVICE = "/api/v1/namespaces/kube-system/services/metrics-server"
REGISTRATION = "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.metrics.k8s.io"
NODES = "/api/v1/nodes"


class Server:
    """An API server's objects by address; an APIService is available at once."""

    connections = 1

    def __init__(self, **objects: dict[str, Any]) -> None:
        self.objects = objects

    async def get(self, path: str, **_: object) -> Any:
        if path not in self.objects:
            raise ApiError(404, "NotFound", f"{path} not found", "GET", path)
        return self.objects[path] | {"status": {"conditions": [{"type": "Available", "status": "True"}]}}

    async def write(self, verb: str, path: str, body: dict[str, Any], *, content_type: str = "") -> None:
        if verb == "POST":
            path = f"{path}/{body['metadata']['name']}"
            if path in self.objects:
                raise ApiError(409, "AlreadyExists", f"{path} exists", verb, path)
        self.objects[path] = copy.deepcopy(body)

    async def delete(self, path: str, options: Any = None) -> None:
        await self.get(path)
        del self.objects[path]

    async def pages(self, path: str) -> AsyncIterator[list[Any]]:
        yield []


def register(server: Server, listen: int = 20009) -> None:
    asyncio.run(metrics_server.register(server, listen))  # type: ignore[arg-type]


def unregister(server: Server) -> None:
    asyncio.run(metrics_server.unregister(server))  # type: ignore[arg-type]


def theirs() -> dict[str, dict[str, Any]]:
    """What metrics-server's chart makes."""
    labels = {"app.kubernetes.io/name": "metrics-server", "app.kubernetes.io/managed-by": "Helm"}
    behind = {"name": "metrics-server", "namespace": "kube-system", "port": 443}
    return {
        SERVICE: {"metadata": {"labels": labels}, "spec": {"type": "ClusterIP", "ports": [{"port": 443}]}},
        REGISTRATION: {"metadata": {"labels": labels}, "spec": {"service": behind, "insecureSkipTLSVerify": True}},
    }


def test_what_was_registered_is_removed_and_registering_twice_is_one() -> None:
    server = Server()
    register(server)
    register(server, 20010)
    assert server.objects.keys() == {SERVICE, REGISTRATION}
    unregister(server)
    assert not server.objects
    unregister(server)


@pytest.mark.parametrize("labelled", [True, False], ids=["by a chart", "by hand"])
@pytest.mark.parametrize("kept", [[SERVICE, REGISTRATION], [SERVICE], [REGISTRATION]], ids=["both", "one", "other"])
def test_somebody_elses_is_left_alone_and_not_changed(kept: list[str], labelled: bool) -> None:
    found = {path: each for path, each in theirs().items() if path in kept}
    for each in found.values():
        each["metadata"] = each["metadata"] if labelled else {}
    server = Server(**copy.deepcopy(found))
    unregister(server)
    assert server.objects == found
    with pytest.raises(ProviderError, match=r"has a metrics API already: .* was made by somebody else; remove that"):
        register(server)
    assert server.objects == found
