"""The resource Fault, on an API server that keeps objects in memory: what Pulumi records when only part was done."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kumulus.cluster.errors import PartialFailure
from kumulus.cluster.faults import records
from kumulus.model.posted import posted_node, record_of
from kumulus.provider.connections import Connections
from kumulus.provider.resources.base import Operation, Properties
from kumulus.provider.resources.fault import Fault
from tests.support.object_store import NODES, Store, storing
from tests.support.said import Said
from tests.unit.model.test_fault_changes import GPU, NOW, pool

POOL = pool()
KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: c
contexts: [{{name: c, context: {{cluster: c, user: u}}}}]
clusters: [{{name: c, cluster: {{server: "{address}"}}}}]
users: [{{name: u, user: {{}}}}]
"""


@dataclass
class Place:
    """A cluster with a pool of twelve nodes, and the resource."""

    store: Store
    resource: Fault
    kubeconfig: Path
    identity: str

    def inputs(self, **own: Any) -> Properties:
        place = {
            "kubeconfig": str(self.kubeconfig),
            "clusterIdentity": self.identity,
            "clusterName": "dev",
            "clusterOutlivesStack": False,
        }
        described = {"name": "xid", "kind": "", "nodes": {POOL.name: "0-3"}, "node": {"capacity": {GPU: "-1"}}}
        checked = self.resource.check({}, {**place, **described, **own}, "/")
        assert checked.failures == []
        return checked.inputs

    async def looked(self, inputs: Properties) -> str:
        found = await self.resource.read(operation(), "dev/xid", inputs, inputs)
        assert found is not None
        return str(found.outputs.get("drift", ""))


def operation() -> Operation:
    return Operation("urn:pulumi:dev::p::kumulus:index:Fault::xid", Said(), asyncio.Event())


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async with storing() as store, store.client() as client:
        await records.write_pool(client, POOL)
        for n in range(POOL.replicas):
            store.put(NODES, posted_node(POOL, n, NOW, record_of(POOL, n)))
        namespace = store.put("/api/v1/namespaces", {"metadata": {"name": "kube-system"}})
        kubeconfig = tmp_path / "kubeconfig.yaml"
        kubeconfig.write_text(KUBECONFIG.format(address=store.address))
        connections = Connections()
        yield Place(store, Fault(connections), kubeconfig, namespace["metadata"]["uid"])
        await connections.close()


async def test_a_beginning_that_was_cut_off_is_drift_until_it_is_finished(place: Place) -> None:
    place.store.refuse = lambda verb, path, _: 403 if (verb, path.startswith(NODES)) == ("PATCH", True) else None
    inputs = place.inputs()
    with pytest.raises(PartialFailure) as caught:
        await place.resource.create(operation(), inputs)
    assert caught.value.outputs["drift"].startswith("4 nodes left to do: ")
    assert "cut off" in await place.looked(inputs)
    place.store.refuse = lambda *_: None
    await place.resource.update(operation(), "dev/xid", caught.value.outputs, inputs)
    assert await place.looked(inputs) == ""
    gpus = [node["status"]["allocatable"][GPU] for node in place.store.under(NODES)]
    assert sorted(gpus) == ["7"] * 4 + ["8"] * 8
