"""Who gets a silenced node's lease back: whoever it was taken from, and nobody else's lease is touched."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from kumulus.kube import ApiError, Client
from kumulus.model.named_nodes import NamedNode
from kumulus.nodes.faults import leases, records
from kumulus.nodes.faults.records import Record
from kumulus.nodes.pools.result import explain
from tests.support.object_store import LEASES, MAPS, NODES, Object, Store, storing
from tests.unit.model.test_fault_changes import pool

NOW = datetime.now(UTC)


def add(cluster: Store, node: str, holder: str, ago: float = 1, kept_by: str = "", lasts: int = 40) -> None:
    note = {"kumulus.io/kept-by": json.dumps({"holderIdentity": kept_by, "leaseDurationSeconds": 200})}
    spec = {
        "holderIdentity": holder,
        "leaseDurationSeconds": lasts,
        "renewTime": (NOW - timedelta(seconds=ago)).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
    }
    cluster.put(LEASES, {"metadata": {"name": node, **({"annotations": note} if kept_by else {})}, "spec": spec})


def lease(cluster: Store, node: str) -> Object:
    return cluster.objects[f"{LEASES}/{node}"]


def holder(cluster: Store, node: str) -> str | None:
    found: str | None = lease(cluster, node)["spec"].get("holderIdentity")
    return found


def writes(cluster: Store) -> list[str]:
    return [path.rpartition("/")[2] for verb, path in cluster.asked if verb != "GET"]


def meanwhile(cluster: Store, node: str, taken_by: str) -> None:
    """Have somebody write a lease just before it is written."""

    def take(verb: str, _path: str, _body: Object) -> None:
        if verb != "GET" and len(writes(cluster)) == 1:
            there = lease(cluster, node)
            cluster.put(LEASES, {**there, "spec": {**there["spec"], "holderIdentity": taken_by}})

    cluster.refuse = take


@pytest.fixture
async def cluster() -> AsyncIterator[Store]:
    async with storing() as store:
        yield store


@pytest.fixture
async def client(cluster: Store) -> AsyncIterator[Client]:
    async with cluster.client(patience=2.0) as found:
        yield found


async def give_back(client: Client, node: str) -> None:
    await leases.give_back(client, node, await leases.look(client))


async def test_of_several_shards_the_one_gets_it_that_had_it(cluster: Store, client: Client) -> None:
    add(cluster, "a-0", "kwok-1", ago=9)
    add(cluster, "a-1", "kwok-2", ago=1)
    add(cluster, "a-2", leases.HOLDER, kept_by="kwok-1")
    await give_back(client, "a-2")
    assert lease(cluster, "a-2")["spec"]["holderIdentity"] == "kwok-1"
    assert lease(cluster, "a-2")["spec"]["leaseDurationSeconds"] == 40
    assert lease(cluster, "a-2")["metadata"]["annotations"] == {}


async def test_a_real_kubelet_never_gets_it(cluster: Store, client: Client) -> None:
    add(cluster, "real-1", "real-1", ago=0)
    add(cluster, "a-0", leases.HOLDER, kept_by="gone")
    add(cluster, "a-1", "kwok", ago=5)
    await give_back(client, "a-0")
    assert holder(cluster, "a-0") == "kwok"


async def test_it_becomes_free_where_it_is_not_known_whose_it_was(cluster: Store, client: Client) -> None:
    add(cluster, "a-0", "kwok-1")
    add(cluster, "a-1", "kwok-2")
    for node, kept_by in (("a-2", ""), ("a-3", "a controller that ended")):
        add(cluster, node, leases.HOLDER, kept_by=kept_by)
        await give_back(client, node)
        assert holder(cluster, node) is None


async def test_a_restarted_controller_gets_it(cluster: Store, client: Client) -> None:
    add(cluster, "a-0", "kwok-old", ago=300, lasts=40)
    add(cluster, "a-1", "kwok-new", ago=1)
    add(cluster, "a-2", leases.HOLDER, kept_by="kwok-old")
    await give_back(client, "a-2")
    assert holder(cluster, "a-2") == "kwok-new"


async def test_where_every_node_is_silent_the_note_says_who(cluster: Store, client: Client) -> None:
    add(cluster, "a-0", leases.HOLDER, kept_by="kwok")
    add(cluster, "a-1", leases.HOLDER, kept_by="kwok")
    await give_back(client, "a-0")
    assert holder(cluster, "a-0") == "kwok"


@pytest.mark.parametrize("whose", ["a-0", "kwok-2", "another program", ""])
async def test_a_lease_that_no_fault_holds_is_left_alone(cluster: Store, client: Client, whose: str) -> None:
    add(cluster, "a-0", whose)
    add(cluster, "a-1", "kwok-1")
    await give_back(client, "a-0")
    await give_back(client, "gone")
    assert writes(cluster) == []
    assert holder(cluster, "a-0") == whose


async def test_a_lease_that_somebody_took_meanwhile_is_left_to_them(cluster: Store, client: Client) -> None:
    add(cluster, "a-0", leases.HOLDER, kept_by="kwok")
    add(cluster, "a-1", "kwok")
    meanwhile(cluster, "a-0", "kwok-2")
    await give_back(client, "a-0")
    assert writes(cluster) == ["a-0"]
    assert holder(cluster, "a-0") == "kwok-2"


async def test_a_lease_that_was_only_renewed_meanwhile_is_given_back(cluster: Store, client: Client) -> None:
    add(cluster, "a-0", leases.HOLDER, kept_by="kwok")
    add(cluster, "a-1", "kwok")
    meanwhile(cluster, "a-0", leases.HOLDER)
    await give_back(client, "a-0")
    assert writes(cluster) == ["a-0", "a-0"]
    assert holder(cluster, "a-0") == "kwok"


async def test_whom_a_lease_is_taken_from_is_noted(cluster: Store, client: Client) -> None:
    add(cluster, "real-1", "real-1", ago=0)
    add(cluster, "a-0", "kwok-1", ago=9, lasts=100)
    add(cluster, "a-1", "kwok-2", ago=1)
    add(cluster, "a-2", "")
    seen = await leases.look(client)
    for node in ("a-0", "a-2"):
        renewed = lease(cluster, node)["spec"]["renewTime"]
        await leases.take(client, node, seen)
        assert holder(cluster, node) == leases.HOLDER
        # Kubernetes 1.37 finds no lease expired that has changed without being renewed.
        assert lease(cluster, node)["spec"]["renewTime"] > renewed
    note = json.loads(lease(cluster, "a-0")["metadata"]["annotations"]["kumulus.io/kept-by"])
    assert note == {"holderIdentity": "kwok-1", "leaseDurationSeconds": 100}
    # Either of the two could have it one day.
    assert not lease(cluster, "a-2")["metadata"].get("annotations")


async def test_a_lease_that_a_fault_makes_goes_with_its_node(cluster: Store, client: Client) -> None:
    node = cluster.put(NODES, {"metadata": {"name": "a-0"}})["metadata"]
    for name, owners in ((node["name"], [node["uid"]]), ("none", [])):
        await leases.take(client, name, leases.LeaseSnapshot())
        assert holder(cluster, name) == leases.HOLDER
        assert [each["uid"] for each in lease(cluster, name)["metadata"].get("ownerReferences", ())] == owners


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


async def test_a_pool_of_ten_thousand_nodes_by_name_is_recorded_and_read_and_a_small_one_is_plain_again(
    cluster: Store, client: Client
) -> None:
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
    for wanted in (large, small, large):
        await records.write_pool(client, wanted)
        assert (await records.read(client)).pools == {small.name: wanted}
        stored = cluster.objects[path]
        # The API server refuses a ConfigMap with the same key in both.
        found = [field for field in ("data", "binaryData") if stored.get(field)]
        assert found == (["data"] if wanted is small else ["binaryData"])
        assert len(stored[found[0]]["record"]) < 300_000


@pytest.mark.parametrize("packed", ["AAAA", "no base 64!", ""])
async def test_a_compressed_record_that_was_changed_by_hand_is_ignored(
    cluster: Store, client: Client, packed: str
) -> None:
    await records.write_fault(client, Record("x"))
    cluster.objects[f"{MAPS}/kumulus-fault-x"] |= {"data": {}, "binaryData": {"record": packed}}
    assert (await records.read(client)).faults == {}
