"""The resource metrics API of a cluster: what somebody else has registered is neither changed nor deleted."""

import asyncio
import copy
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus import toolchain
from kumulus.kube import ApiError
from kumulus.nodes.errors import ProviderError
from kumulus.runtimes.kwok import additions, configuration, metrics_server
from kumulus.runtimes.kwok.layout import Layout
from tests.unit.runtimes.kwok.test_monitoring import configure, layout, wanted

SERVICE = "/api/v1/namespaces/kube-system/services/metrics-server"
REGISTRATION = "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.metrics.k8s.io"
NODES = "/api/v1/nodes"
__all__ = ["layout"]


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


@pytest.fixture(autouse=True)
def tool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Any program is found: none is started here."""
    monkeypatch.setattr(toolchain, "find", lambda name, version=None: tmp_path / name)


def test_it_is_one_more_component_on_ports_of_its_own_which_it_keeps(layout: Layout) -> None:
    configure(layout, kueue={"origin": "a"})
    assert "kueue" in layout.components()
    before = {name: port for name, port in layout.ports().items() if name.startswith("kueue")}
    assert len({*before.values()}) == len(before) == 3
    configure(layout, kueue={"origin": "a", "workerLostTimeout": "1m"})
    assert before.items() <= layout.ports().items()
    written = yaml.safe_load((layout.directory / "kueue" / "config.yaml").read_text())
    assert written["multiKueue"] == {"gcInterval": "1m", "origin": "a", "workerLostTimeout": "1m"}
    configure(layout, kueue={"origin": "a", "dispatcher": "incremental", "stepSize": 2})
    other = yaml.safe_load((layout.directory / "kueue" / "config.yaml").read_text())["multiKueue"]
    assert other["dispatcherName"] == "kueue.x-k8s.io/multikueue-dispatcher-incremental"
    assert other["incrementalDispatcherConfig"] == {"stepSize": 2}
    assert written["webhook"]["port"] == before["kueue (webhooks)"]
    assert written["webhook"]["host"] == "127.0.0.1"


def test_another_timeout_restarts_it_and_not_kwok_controller(layout: Layout) -> None:
    asked = wanted(kueue={"origin": "a"})
    configure(layout, kueue={"origin": "a"})
    assert {"kueue", "kwok-controller"}.isdisjoint(additions.outdated(layout, asked))
    other = wanted(kueue={"origin": "a", "workerLostTimeout": "1m"})
    assert {"kueue", "kwok-controller"} & {*additions.outdated(layout, other)} == {"kueue"}
    assert configuration.fingerprint(other.options) != configuration.fingerprint(asked.options)


def test_without_it_nothing_is_left_of_it(layout: Layout) -> None:
    configure(layout, kueue={"origin": "a"})
    configure(layout)
    assert "kueue" not in layout.components()
    assert not (layout.directory / "kueue").exists()
    assert not [name for name in layout.ports() if name.startswith("kueue")]
