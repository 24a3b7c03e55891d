"""What a kwok-controller writes into leases is learned once from each that is started, from one node."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from aiohttp import web

from kumulus.kube import ApiError, Client
from kumulus.nodes.faults.leases import HOLDER
from kumulus.runtimes.kwok import storage
from kumulus.runtimes.kwok.hung import expired
from kumulus.runtimes.kwok.layout import Layout, dump
from kumulus.runtimes.kwok.priority import bearable
from kumulus.runtimes.kwok.storage import LeaseHolder
from tests.support.apiserver import Server, serving
from tests.unit.kube.test_stored import lease as a_lease

NOW = datetime(2026, 11, 23, 3, 0, tzinfo=UTC)
LASTS = 200.0


@dataclass
class Cluster:
    """A cluster whose controller needs some looks until a node has its lease."""

    client: Client
    layout: Layout
    posted: list[str] = field(default_factory=list)
    """The nodes that were posted."""
    looks: int = 2
    """How often a lease is not there yet."""
    lease: bytes = field(default_factory=a_lease)
    """What it is then."""

    async def post(self) -> str:
        self.posted.append(f"n-{len(self.posted)}")
        return self.posted[-1]

    async def answer(self, request: web.Request) -> web.StreamResponse:
        assert request.path.endswith(f"/leases/{self.posted[-1]}")
        if self.looks > 0:
            self.looks -= 1
            return web.json_response({"kind": "Status", "code": 404, "reason": "NotFound"}, status=404)
        return web.Response(body=self.lease, content_type="application/vnd.kubernetes.protobuf")

    def started(self, pid: int) -> None:
        file = self.layout.directory / "pids" / "kwok-controller.pid"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(str(pid))


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with serving() as server:
        assert isinstance(server, Server)
        client = server.client()
        found = Cluster(client, Layout.of(str(tmp_path), "dev"))
        server.answers = [found.answer]
        found.started(17)
        yield found
        await client.close()


async def test_one_node_is_posted_for_all_pools(cluster: Cluster) -> None:
    holder = LeaseHolder(cluster.layout)
    first = await holder.leases(cluster.client, cluster.post)
    assert first is not None
    assert first.holder == "vm_1"
    assert await holder.leases(cluster.client, cluster.post) is first
    assert cluster.posted == ["n-0"]


async def test_a_controller_that_was_started_since_is_asked_anew(cluster: Cluster) -> None:
    holder = LeaseHolder(cluster.layout)
    first = await holder.leases(cluster.client, cluster.post)
    cluster.started(18)
    assert await holder.leases(cluster.client, cluster.post) is not first
    assert cluster.posted == ["n-0", "n-1"]


async def test_without_a_controller_nothing_is_posted(cluster: Cluster) -> None:
    (cluster.layout.directory / "pids" / "kwok-controller.pid").unlink()
    assert await LeaseHolder(cluster.layout).leases(cluster.client, cluster.post) is None
    assert cluster.posted == []


async def test_one_that_is_behind_makes_its_leases_itself(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "_PATIENCE_S", 0.1)
    cluster.looks = 1000
    holder = LeaseHolder(cluster.layout)
    assert await holder.leases(cluster.client, cluster.post) is None
    # And is not waited for again by each of the pools.
    assert await holder.leases(cluster.client, cluster.post) is None
    assert cluster.posted == ["n-0"]


@pytest.mark.parametrize("whose", ["", HOLDER, "n-0"], ids=["nobody's", "a fault's", "a kubelet's"])
async def test_what_is_not_a_controllers_is_no_model(cluster: Cluster, whose: str) -> None:
    cluster.lease = a_lease(whose)
    assert await LeaseHolder(cluster.layout).leases(cluster.client, cluster.post) is None


async def test_a_node_that_cannot_be_posted_is_for_the_caller_and_the_next_one_tries_again(cluster: Cluster) -> None:
    holder = LeaseHolder(cluster.layout)

    async def refused() -> str:
        raise ApiError(403, "Forbidden", "no", "POST", "/api/v1/nodes")

    with pytest.raises(ApiError):
        await holder.leases(cluster.client, refused)
    assert await holder.leases(cluster.client, cluster.post) is not None


@pytest.mark.parametrize(
    ("ages", "ended"),
    [
        ([], 0),
        ([10, 60, 190], 0),
        ([10, 60, 201], 0),  # one node that is late is no controller that is stuck
        ([10, 201], 0),
        ([1, 201, 300], 2),  # of a node in the queue twice the lease is renewed all the time
        ([201, 300, 4000], 3),
    ],
)
def test_a_controller_is_suspect_when_most_leases_have_run_out(ages: list[float], ended: int) -> None:
    held = {f"n-{number}": (NOW - timedelta(seconds=age), LASTS) for number, age in enumerate(ages)}
    assert len(expired(held, NOW)) == ended


@pytest.mark.parametrize(("lease", "seconds"), [(40, 15), (80, 30), (None, 15), (200, 45)])
def test_controllers_stand_back_for_as_long_as_a_lease_bears_and_pods_wait(
    tmp_path: Path, lease: int | None, seconds: float
) -> None:
    options = {"nodeLeaseDurationSeconds": lease} if lease else {}
    (tmp_path / "kwok.yaml").write_text(dump([{"kind": "KwokctlConfiguration", "options": options}]))
    assert bearable(Layout(tmp_path)) == seconds
