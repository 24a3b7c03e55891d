"""What is posted in protobuf is, to a real API server, what it would be in JSON."""

from dataclasses import replace
from typing import Any

import pytest

from kumulus.kube import ApiError, Client, load_kubeconfig
from kumulus.kube.codecs import PROTOBUF
from kumulus.kube.protobuf import encode_node
from kumulus.model.pool_form import pool_from_properties
from kumulus.model.pools import Pool
from kumulus.model.topology import Level, Topology
from kumulus.nodes.pools.single import Bodies
from tests.integration.conftest import NODES, Plane, Pools

pytestmark = [pytest.mark.integration, pytest.mark.every_version]


def pool_of(pools: Pools, **changes: Any) -> Pool:
    inputs = pools.inputs(40, annotations={"note": "ü · " + "long " * 60})
    plain = {key: value for key, value in inputs.items() if key not in ("kubeconfig", "clusterIdentity", "clusterName")}
    return replace(pool_from_properties(plain), **changes)


def substance(node: dict[str, Any]) -> dict[str, Any]:
    meta = {key: node["metadata"][key] for key in ("name", "labels", "annotations")}
    return {"metadata": meta, "spec": node["spec"], "status": node["status"]}


async def stored(plane: Plane, name: str, body: bytes | dict[str, Any]) -> dict[str, Any]:
    """The node as the server has it after this body was posted, and removes it."""
    async with Client(load_kubeconfig(plane.observed.kubeconfig)) as client:
        if isinstance(body, bytes):
            await client.write("POST", NODES, body, content_type=PROTOBUF)
        else:
            await client.create(NODES, body)
        found = substance(await client.get(f"{NODES}/{name}"))
        await client.delete(f"{NODES}/{name}")
    return found


@pytest.mark.parametrize("ordinal", [0, 1, 37])
async def test_a_node_is_the_same_in_either_encoding(plane: Plane, pools: Pools, ordinal: int) -> None:
    pool = pool_of(pools)
    bodies = Bodies(pool)
    name = f"{pool.name}-{ordinal}"
    plain = bodies.manifest(ordinal)
    as_json = await stored(plane, name, plain)
    assert len(as_json["status"]["conditions"]) == 5
    assert await stored(plane, name, bodies.of(ordinal)) == as_json
    assert await stored(plane, name, encode_node(plain)) == as_json


async def test_labels_that_differ_from_node_to_node_are_each_nodes_own(plane: Plane, pools: Pools) -> None:
    topology = Topology((Level("rack", "example.com/rack", 4),))
    pool = pool_of(pools, topology=topology)
    bodies = Bodies(pool)
    for ordinal in (0, 4, 39):
        name = f"{pool.name}-{ordinal}"
        plain = bodies.manifest(ordinal)
        found = await stored(plane, name, bodies.of(ordinal))
        assert found["metadata"]["labels"] == plain["metadata"]["labels"]
        assert found["metadata"]["labels"]["example.com/rack"]


async def test_a_refusal_is_read_from_protobuf(plane: Plane, pools: Pools) -> None:
    pool = pool_of(pools, name="-not-a-name-")
    async with Client(load_kubeconfig(plane.observed.kubeconfig)) as client:
        with pytest.raises(ApiError) as refused:
            await client.write("POST", NODES, Bodies(pool).of(0), content_type=PROTOBUF)
    assert (refused.value.status, refused.value.reason) == (422, "Invalid")
    assert 'Node "-not-a-name--0" is invalid: [metadata.name: ' in refused.value.message
