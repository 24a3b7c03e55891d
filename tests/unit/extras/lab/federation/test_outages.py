"""What a timeline does to workers: led through a proxy, cut off, killed, brought back; each in the journal before."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from kumulus.extras.journal import book
from kumulus.extras.journal import outages as runtime
from kumulus.extras.journal.book import Journal
from kumulus.extras.journal.changes import JournaledChanges
from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.federation.members import RunningFederation, Worker
from kumulus.extras.lab.federation.outages import Outages
from kumulus.extras.lab.file.timeline import TimelineEvent
from kumulus.host import lifetime
from kumulus.kube import Client, Connection
from tests.support.apiserver import listening

EVENTS = [TimelineEvent(partition="east"), TimelineEvent(restore="east")]


class Hub:
    """A hub whose Kueue connects with the worker at the address in its Secret, and says whether it could."""

    def __init__(self, server: str) -> None:
        self.server = server
        self.open: list[asyncio.StreamWriter] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if request.path.endswith("multikueueclusters/east"):
            return web.json_response({"status": {"conditions": [{"type": "Active", "status": "True"}]}})
        if request.method == "PATCH":
            text = base64.b64decode(json.loads(await request.read())["data"]["kubeconfig"])
            self.server = json.loads(text)["clusters"][0]["cluster"]["server"]
            await self.reach()
        document = json.dumps({"clusters": [{"cluster": {"server": self.server}}]}).encode()
        data = {"kubeconfig": base64.b64encode(document).decode()}
        return web.json_response({"metadata": {"resourceVersion": "1"}, "data": data})

    async def reach(self) -> bool:
        found = urlsplit(self.server)
        try:
            reader, writer = await asyncio.open_connection(found.hostname, found.port)
        except OSError:
            return False
        self.open.append(writer)
        writer.write(b"x")
        return await asyncio.wait_for(reader.read(1), 5) == b"x"


class Struck:
    """Outages of one worker, which echoes."""

    def __init__(self, outages: Outages, hub: Hub, own: str, journal: Journal) -> None:
        self.outages, self.hub, self.own, self.journal = outages, hub, own, journal

    def written(self) -> JournaledChanges:
        (found,) = book.read("5d4f")[0]
        return found.changes


@asynccontextmanager
async def federation(tmp_path: Path) -> AsyncIterator[Struck]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(10):
            writer.write(data)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    own = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    hub = Hub(own)
    workers = (Worker("east", tmp_path / "fed-east" / "kubeconfig.yaml"),)
    of = RunningFederation(
        "hub", tmp_path / "fed-hub" / "kubeconfig.yaml", "fed-hub", workers, "default", "kueue-system"
    )
    journal = Journal(JournaledChanges("one", "training", "5d4f", lifetime.own()))
    journal.add()
    async with listening(hub.handle) as address, Client(Connection(address, "test"), patience=2) as client:
        try:
            yield Struck(Outages(client, of, journal, lambda: 7.0), hub, own, journal)
        finally:
            for writer in hub.open:
                writer.close()
            server.close()


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


async def test_a_worker_is_cut_off_and_reached_again_and_in_the_end_as_before(tmp_path: Path) -> None:
    async with federation(tmp_path) as struck:
        await struck.outages.prepare(EVENTS)
        assert struck.outages.led == ["east"]
        proxy = struck.hub.server
        assert proxy != struck.own
        assert [each.proxy for each in struck.written().rerouted] == [proxy]
        assert await struck.hub.reach()
        said = await struck.outages.do(EVENTS[0])
        assert said == "east is cut off: 2 connections of the hub severed"
        assert not await struck.hub.reach()
        assert struck.outages.unreached() == {"east"}
        assert not struck.outages.away()[0], "the run itself reaches it"
        assert (await struck.outages.do(EVENTS[1])).startswith("east is back")
        assert await struck.hub.reach()
        await struck.outages.undo()
        assert struck.hub.server == struck.own
        assert struck.written().empty


async def test_a_worker_that_is_cut_off_at_the_end_is_reached_again_without_the_proxy(tmp_path: Path) -> None:
    async with federation(tmp_path) as struck:
        await struck.outages.prepare(EVENTS)
        await struck.outages.do(EVENTS[0])
        await struck.outages.undo()
        assert (struck.hub.server, struck.outages.led) == (struck.own, [])
        assert await struck.hub.reach()


async def test_a_worker_is_killed_once_it_is_in_the_journal_and_brought_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    async def kill(kubeconfig: Path) -> list[str]:
        assert book.read("5d4f")[0][0].changes.killed == (str(kubeconfig),)
        done.append("killed")
        return ["etcd", "kube-apiserver"] if len(done) == 1 else []

    async def bring_back(kubeconfig: Path) -> bool:
        done.append(f"{kubeconfig.parent.name} started")
        return True

    monkeypatch.setattr(runtime, "kill", kill)
    monkeypatch.setattr(runtime, "bring_back", bring_back)
    async with federation(tmp_path) as struck:
        strike, restore = TimelineEvent(kill="east"), TimelineEvent(restore="east")
        assert await struck.outages.do(strike) == "east is killed: etcd, kube-apiserver"
        assert struck.outages.away() == ({"east"}, {})
        await struck.outages.do(restore)
        assert struck.outages.away() == (set(), {"east": 7.0})
        assert struck.written().empty
        with pytest.raises(LabError, match="of which nothing runs"):
            await struck.outages.do(strike)
        await struck.outages.undo()
        assert done == ["killed", "fed-east started", "killed", "fed-east started"]
        assert struck.written().empty
