"""Who gets a silenced node's lease back: whoever it was taken from, and nobody else's lease is touched."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp import web

from kumulus.kube import ApiError, Client, Connection
from kumulus.model.named_nodes import NamedNode
from kumulus.nodes.faults import leases, records
from kumulus.nodes.faults.records import Record
from kumulus.nodes.pools.result import explain
from tests.support.apiserver import listening
from tests.support.object_store import MAPS, NODES, storing
from tests.unit.model.test_fault_changes import pool

NOW = datetime.now(UTC)


@dataclass
class Cluster:
    """An API server that has leases, and takes a change of one only at the version that was read."""

    leases: dict[str, dict[str, Any]] = field(default_factory=dict)
    writes: list[str] = field(default_factory=list)
    meanwhile: dict[str, str] = field(default_factory=dict)

    def add(self, node: str, holder: str, ago: float = 1, kept_by: str = "", lasts: int = 40) -> None:
        note = {"kumulus.io/kept-by": json.dumps({"holderIdentity": kept_by, "leaseDurationSeconds": 200})}
        self.leases[node] = {
            "metadata": {"name": node, "resourceVersion": "1", **({"annotations": note} if kept_by else {})},
            "spec": {
                "holderIdentity": holder,
                "leaseDurationSeconds": lasts,
                "renewTime": (NOW - timedelta(seconds=ago)).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            },
        }

    def holder(self, node: str) -> str | None:
        found: str | None = self.leases[node]["spec"].get("holderIdentity")
        return found

    async def answer(self, request: web.Request) -> web.Response:
        name = request.path.removeprefix(leases.LEASES).strip("/")
        if not name:
            return web.json_response({"metadata": {}, "items": list(self.leases.values())})
        lease = self.leases.get(name)
        if lease is None:
            return web.json_response({"kind": "Status", "reason": "NotFound"}, status=404)
        if request.method == "GET":
            return web.json_response(lease)
        self.writes.append(name)
        if name in self.meanwhile:
            lease["spec"]["holderIdentity"] = self.meanwhile.pop(name)
            lease["metadata"]["resourceVersion"] = "2"
        body = await request.json()
        version = body["metadata"].get("resourceVersion")
        if version is not None and version != lease["metadata"]["resourceVersion"]:
            return web.json_response({"kind": "Status", "reason": "Conflict"}, status=409)
        for key, value in body["spec"].items():
            lease["spec"][key] = value
        lease["metadata"]["annotations"] = {
            key: value
            for key, value in {
                **lease["metadata"].get("annotations", {}),
                **body["metadata"].get("annotations", {}),
            }.items()
            if value is not None
        }
        return web.json_response(lease)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[Client]:
    async with listening(cluster.answer) as address, Client(Connection(address, "test"), patience=2.0) as found:
        yield found


async def give_back(client: Client, node: str) -> None:
    await leases.give_back(client, node, await leases.look(client))


async def test_of_several_shards_the_one_gets_it_that_had_it(cluster: Cluster, client: Client) -> None:
    cluster.add("a-0", "kwok-1", ago=9)
    cluster.add("a-1", "kwok-2", ago=1)
    cluster.add("a-2", leases.HOLDER, kept_by="kwok-1")
    await give_back(client, "a-2")
    assert cluster.leases["a-2"]["spec"]["holderIdentity"] == "kwok-1"
    assert cluster.leases["a-2"]["spec"]["leaseDurationSeconds"] == 40
    assert cluster.leases["a-2"]["metadata"]["annotations"] == {}


async def test_a_real_kubelet_never_gets_it(cluster: Cluster, client: Client) -> None:
    cluster.add("real-1", "real-1", ago=0)
    cluster.add("a-0", leases.HOLDER, kept_by="gone")
    cluster.add("a-1", "kwok", ago=5)
    await give_back(client, "a-0")
    assert cluster.holder("a-0") == "kwok"


async def test_it_becomes_free_where_it_is_not_known_whose_it_was(cluster: Cluster, client: Client) -> None:
    cluster.add("a-0", "kwok-1")
    cluster.add("a-1", "kwok-2")
    for node, kept_by in (("a-2", ""), ("a-3", "a controller that ended")):
        cluster.add(node, leases.HOLDER, kept_by=kept_by)
        await give_back(client, node)
        assert cluster.holder(node) is None


async def test_a_restarted_controller_gets_it(cluster: Cluster, client: Client) -> None:
    cluster.add("a-0", "kwok-old", ago=300, lasts=40)
    cluster.add("a-1", "kwok-new", ago=1)
    cluster.add("a-2", leases.HOLDER, kept_by="kwok-old")
    await give_back(client, "a-2")
    assert cluster.holder("a-2") == "kwok-new"


async def test_where_every_node_is_silent_the_note_says_who(cluster: Cluster, client: Client) -> None:
    cluster.add("a-0", leases.HOLDER, kept_by="kwok")
    cluster.add("a-1", leases.HOLDER, kept_by="kwok")
    await give_back(client, "a-0")
    assert cluster.holder("a-0") == "kwok"


@pytest.mark.parametrize("holder", ["a-0", "kwok-2", "another program", ""])
async def test_a_lease_that_no_fault_holds_is_left_alone(cluster: Cluster, client: Client, holder: str) -> None:
    cluster.add("a-0", holder)
    cluster.add("a-1", "kwok-1")
    await give_back(client, "a-0")
    await give_back(client, "gone")
    assert cluster.writes == []
    assert cluster.holder("a-0") == holder


async def test_a_lease_that_somebody_took_meanwhile_is_left_to_them(cluster: Cluster, client: Client) -> None:
    cluster.add("a-0", leases.HOLDER, kept_by="kwok")
    cluster.add("a-1", "kwok")
    cluster.meanwhile["a-0"] = "kwok-2"
    await give_back(client, "a-0")
    assert cluster.writes == ["a-0"]
    assert cluster.holder("a-0") == "kwok-2"


async def test_a_lease_that_was_only_renewed_meanwhile_is_given_back(cluster: Cluster, client: Client) -> None:
    cluster.add("a-0", leases.HOLDER, kept_by="kwok")
    cluster.add("a-1", "kwok")
    cluster.meanwhile["a-0"] = leases.HOLDER
    await give_back(client, "a-0")
    assert cluster.writes == ["a-0", "a-0"]
    assert cluster.holder("a-0") == "kwok"


async def test_whom_a_lease_is_taken_from_is_noted(cluster: Cluster, client: Client) -> None:
    cluster.add("real-1", "real-1", ago=0)
    cluster.add("a-0", "kwok-1", ago=9, lasts=100)
    cluster.add("a-1", "kwok-2", ago=1)
    cluster.add("a-2", "")
    seen = await leases.look(client)
    for node in ("a-0", "a-2"):
        renewed = cluster.leases[node]["spec"]["renewTime"]
        await leases.take(client, node, seen)
        assert cluster.holder(node) == leases.HOLDER
        # Kubernetes 1.37 finds no lease expired that has changed without being renewed.
        assert cluster.leases[node]["spec"]["renewTime"] > renewed
    note = json.loads(cluster.leases["a-0"]["metadata"]["annotations"]["kumulus.io/kept-by"])
    assert note == {"holderIdentity": "kwok-1", "leaseDurationSeconds": 100}
    # Either of the two could have it one day.
    assert not cluster.leases["a-2"]["metadata"].get("annotations")


async def test_a_lease_that_a_fault_makes_goes_with_its_node() -> None:
    async with storing() as store, store.client() as client:
        node = store.put(NODES, {"metadata": {"name": "a-0"}})["metadata"]
        for name, owners in ((node["name"], [node["uid"]]), ("none", [])):
            await leases.take(client, name, leases.LeaseSnapshot())
            made = store.objects[f"{leases.LEASES}/{name}"]
            assert made["spec"]["holderIdentity"] == leases.HOLDER
            assert [each["uid"] for each in made["metadata"].get("ownerReferences", ())] == owners


def test_what_an_error_is_about_follows_from_its_path() -> None:
    paths = {
        "/api/v1/nodes/a-1/status": "node",
        "/apis/resource.k8s.io/v1/resourceslices": "resource slice",
        "/api/v1/namespaces/kube-system/configmaps": "ConfigMap",
        "/api/v1/namespaces/x/pods/y": "pod",
        "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/a-1": "lease",
        "/apis/kwok.x-k8s.io/v1alpha1/stages": "stages",
        "/api/v1/namespaces/x": "namespaces",
    }
    for path, what in paths.items():
        assert explain(ApiError(422, "Invalid", "too long", "POST", path)) == f"POST {what}: 422 Invalid: too long"


async def test_a_pool_of_ten_thousand_nodes_by_name_is_recorded_and_read_and_a_small_one_is_plain_again() -> None:
    small = pool()
    nodes = tuple(
        NamedNode(
            f"ip-10-12-{n // 256}-{n % 256}.us-west-2.compute.internal",
            {"topology.kumulus.io/rack": f"rack-{n // 16:05d}", "topology.kumulus.io/block": f"block-{n // 256:04d}"},
        )
        for n in range(10_000)
    )
    large = replace(small, replicas=len(nodes), nodes=nodes)
    path = f"{MAPS}/kumulus-pool-{small.name}"
    async with storing() as store, store.client() as client:
        for wanted in (large, small, large):
            await records.write_pool(client, wanted)
            assert (await records.read(client)).pools == {small.name: wanted}
            stored = store.objects[path]
            # The API server refuses a ConfigMap with the same key in both.
            found = [field for field in ("data", "binaryData") if stored.get(field)]
            assert found == (["data"] if wanted is small else ["binaryData"])
            assert len(stored[found[0]]["record"]) < 300_000


@pytest.mark.parametrize("packed", ["AAAA", "no base 64!", ""])
async def test_a_compressed_record_that_was_changed_by_hand_is_ignored(packed: str) -> None:
    async with storing() as store, store.client() as client:
        await records.write_fault(client, Record("x"))
        there = store.objects[f"{MAPS}/kumulus-fault-x"]
        there |= {"data": {}, "binaryData": {"record": packed}}
        assert (await records.read(client)).faults == {}
