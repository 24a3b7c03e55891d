"""The records of pools and faults in a cluster: a ConfigMap for each, which takes 1 MiB."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kumulus.kube import ApiError
from kumulus.model.named_nodes import NamedNode
from kumulus.nodes.faults import records
from kumulus.nodes.faults.records import Record
from kumulus.nodes.pools.result import explain
from tests.support.object_store import MAPS, storing
from tests.unit.model.test_fault_changes import pool


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
