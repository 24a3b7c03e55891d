"""The hub's way to a worker, led through a proxy and put back: the address alone, and nobody else's."""

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from kumulus.extras.journal import book, federation, undo
from kumulus.extras.journal.book import Journal
from kumulus.extras.journal.changes import JournaledChanges, Rerouted
from kumulus.extras.journal.errors import NotPutBack
from kumulus.host import lifetime
from kumulus.kube import Client, Connection
from tests.support.apiserver import listening

SECRET = "/api/v1/namespaces/kueue-system/secrets/multikueue-worker-0"
OWN, PROXY = "https://127.0.0.1:6443", "https://127.0.0.1:7777"
LED = Rerouted(SECRET, OWN, PROXY)


class Hub:
    """A hub with one Secret, which it keeps as an API server does."""

    def __init__(self, server: str = OWN, **cluster: Any) -> None:
        entry = {"server": server, "certificate-authority-data": "Y2E=", **cluster}
        self.document: dict[str, Any] = {
            "clusters": [{"name": "w", "cluster": entry}],
            "users": [{"user": {"token": "secret-token"}}],
        }
        self.there = True
        self.versions: list[str] = []

    @property
    def cluster(self) -> dict[str, Any]:
        found: dict[str, Any] = self.document["clusters"][0]["cluster"]
        return found

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if request.path != SECRET or not self.there:
            return web.json_response({"kind": "Status", "code": 404, "reason": "NotFound"}, status=404)
        if request.method == "PATCH":
            body = json.loads(await request.read())
            self.versions.append(body["metadata"]["resourceVersion"])
            self.document = json.loads(base64.b64decode(body["data"]["kubeconfig"]))
        text = base64.b64encode(json.dumps(self.document).encode()).decode()
        return web.json_response({"metadata": {"resourceVersion": "41"}, "data": {"kubeconfig": text}})


@asynccontextmanager
async def asked(hub: Hub) -> AsyncIterator[Client]:
    async with listening(hub.handle) as address, Client(Connection(address, "test"), patience=2) as client:
        yield client


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Journal:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    made = Journal(JournaledChanges("one", "training", "5d4f", lifetime.own()))
    made.add()
    return made


async def test_a_worker_is_reached_by_a_proxy_and_then_as_before_with_all_else_as_it_was(journal: Journal) -> None:
    hub = Hub()
    before = json.loads(json.dumps(hub.document))
    async with asked(hub) as client:
        assert await federation.server_of(client, SECRET) == OWN
        await federation.reroute(client, journal, LED)
        assert hub.cluster["server"] == PROXY
        (found,) = book.read("5d4f")[0]
        assert found.changes.rerouted == (LED,)
        assert "secret-token" not in found.file.read_text()
        assert await undo.put_back(client, journal) == [f"the hub reaches {OWN} again"]
    assert hub.document == before
    assert hub.versions == ["41", "41"], "somebody else's write in between must be seen"
    assert journal.changes.empty


async def test_a_certificate_for_another_name_than_the_proxys_is_asked_for_by_its_name(journal: Journal) -> None:
    far = Rerouted(SECRET, "https://east.example.com:6443", PROXY)
    hub = Hub(far.server)
    async with asked(hub) as client:
        await federation.reroute(client, journal, far)
        assert hub.cluster["tls-server-name"] == "east.example.com"
        await federation.reach_directly(client, far)
    assert "tls-server-name" not in hub.cluster


async def test_an_address_that_somebody_else_has_written_since_is_left_alone(journal: Journal) -> None:
    hub = Hub("https://127.0.0.1:9999")
    journal.add(rerouted=[LED])
    async with asked(hub) as client:
        assert await undo.put_back(client, journal) == []
        hub.there = False
        assert not await federation.reach_directly(client, LED)
    assert (hub.cluster["server"], hub.versions) == ("https://127.0.0.1:9999", [])


async def test_a_hub_without_the_secret_says_how_it_is_made_again(journal: Journal) -> None:
    hub = Hub()
    hub.there = False
    async with asked(hub) as client:
        with pytest.raises(NotPutBack, match="up --refresh"):
            await federation.server_of(client, SECRET)
        hub.there = True
        hub.document = {}
        assert await federation.server_of(client, SECRET) == ""


async def test_a_worker_that_went_with_its_stack_is_not_brought_back(journal: Journal, tmp_path: Path) -> None:
    journal.add(killed=[str(tmp_path / "worker-0" / "kubeconfig.yaml")])
    async with asked(Hub()) as client:
        assert await undo.put_back(client, journal) == []
    assert journal.changes.empty
