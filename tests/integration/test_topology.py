"""Topology labels and HyperNodes on a real control plane: given, repaired, changed in place, removed."""

from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Any

import pytest

from kumulus.extras.schedulers.resource import HyperNodes
from kumulus.nodes.errors import ProviderError
from kumulus.provider.connections import Connections
from kumulus.provider.resources.base import Properties
from tests.integration.conftest import NODES, Plane, Pools, operation
from tests.support import volcano
from tests.support.api import Object, Refused
from tests.support.said import Said

pytestmark = pytest.mark.integration
RACK, BLOCK = "example.com/rack", "example.com/block"
TOPOLOGY = {"rack": {"label": RACK, "nodes": 2}, "block": {"label": BLOCK, "nodes": 4}}


def racks(nodes: dict[str, Object], key: str = RACK) -> dict[str, str]:
    """The last part of a label's value, by node name; nodes without the label are left out."""
    labels = {name: node["metadata"]["labels"] for name, node in nodes.items()}
    return {name: found[key].rpartition("-")[2] for name, found in labels.items() if key in found}


async def test_nodes_carry_their_places_and_a_resize_touches_none_of_them(pools: Pools) -> None:
    inputs = pools.inputs(5, topology=TOPOLOGY)
    outputs = await pools.create(inputs)
    assert outputs == inputs
    name, made = inputs["name"], pools.nodes(inputs)
    assert racks(made) == {f"{name}-{n}": f"r{n // 2}" for n in range(5)}
    assert racks(made, BLOCK) == {f"{name}-{n}": f"b{n // 4}" for n in range(5)}
    assert await pools.drift(inputs) == {}

    versions = {key: node["metadata"]["labels"] for key, node in made.items()}
    more = pools.inputs(7, name, topology=TOPOLOGY)
    await pools.update(more, outputs)
    after = pools.nodes(inputs)
    assert racks(after) == {f"{name}-{n}": f"r{n // 2}" for n in range(7)}
    assert {key: after[key]["metadata"]["uid"] for key in made} == {k: n["metadata"]["uid"] for k, n in made.items()}
    assert {key: {**after[key]["metadata"]["labels"], **labels} for key, labels in versions.items()} == {
        key: after[key]["metadata"]["labels"] for key in versions
    }


async def test_a_place_altered_by_hand_is_found_on_its_node_and_put_right(plane: Plane, pools: Pools) -> None:
    inputs = pools.inputs(4, topology=TOPOLOGY)
    outputs = await pools.create(inputs)
    name = inputs["name"]
    plane.api.merge(f"{NODES}/{name}-3", {"metadata": {"labels": {RACK: f"{name}-r0", BLOCK: None}}})
    found = await pools.read(inputs, outputs)
    assert found is not None
    assert found.outputs["drift"] == {
        "altered": {
            f"{name}-3": f'labels["{RACK}"]: "{name}-r0" instead of "{name}-r1"; '
            f'labels["{BLOCK}"]: missing instead of "{name}-b0"'
        }
    }
    assert [each.path for each in pools.resource.diff(found.outputs, inputs)] == ["drift.altered"]
    await pools.update(inputs, found.outputs)
    assert racks(pools.nodes(inputs))[f"{name}-3"] == "r1"
    assert await pools.drift(inputs) == {}


async def test_another_topology_relabels_nodes_in_place_and_none_takes_the_labels_off(pools: Pools) -> None:
    inputs = pools.inputs(4, topology=TOPOLOGY)
    outputs = await pools.create(inputs)
    name, uids = inputs["name"], pools.uids(inputs)
    wider = pools.inputs(4, name, topology={"rack": {"label": RACK, "nodes": 3}})
    assert {(each.path, each.kind) for each in pools.resource.diff(outputs, wider)} == {
        ("topology.block", "delete"),
        ("topology.rack.nodes", "update"),
    }
    said = Said()
    await pools.update(wider, outputs, said, preview=True)
    assert said.messages == [f"group {name}: 4 nodes changed: topology rack, block"]
    outputs = await pools.update(wider, outputs)
    assert racks(pools.nodes(inputs)) == {f"{name}-0": "r0", f"{name}-1": "r0", f"{name}-2": "r0", f"{name}-3": "r1"}
    assert racks(pools.nodes(inputs), BLOCK) == {}

    flat = pools.inputs(4, name)
    await pools.update(flat, outputs)
    assert racks(pools.nodes(inputs)) == {}
    assert pools.uids(inputs) == uids


# --- HyperNodes ------------------------------------------------------------------------------------------------------


@pytest.fixture
def kind(plane: Plane) -> Iterator[None]:
    """Remove Volcano's kind after the test, which may have installed it."""
    yield
    with suppress(Refused):
        plane.api.delete(f"{volcano.CRDS}/{volcano.CRD}")
    plane.api.until(volcano.CRDS, lambda found: volcano.CRD not in found)


@pytest.fixture
async def resource() -> AsyncIterator[HyperNodes]:
    connections = Connections()
    yield HyperNodes(connections)
    await connections.close()


def asked(plane: Plane, resource: HyperNodes, replicas: int, **topology: Any) -> Properties:
    """Checked inputs for one pool."""
    properties = {
        **plane.place,
        "pools": {"a-z": {"zone": "z", "replicas": replicas, "topology": topology or TOPOLOGY}},
    }
    checked = resource.check({}, properties, "/")
    assert checked.failures == []
    return checked.inputs


def tiers(plane: Plane) -> dict[str, int]:
    return {item["metadata"]["name"]: item["spec"]["tier"] for item in plane.api.list(volcano.HYPERNODES)}


async def test_without_volcano_one_notice_says_so_and_a_refresh_finds_it_when_it_comes(
    plane: Plane, resource: HyperNodes, kind: None
) -> None:
    inputs, said = asked(plane, resource, 8), Said()
    _, preview = await resource.create(operation(said, preview=True), inputs)
    assert preview == inputs
    assert said.messages == [
        "+7 HyperNodes: +4 rack, +2 block, +1 zone; made if Volcano's CRD hypernodes.topology.volcano.sh is there"
    ]
    said = Said()
    _, outputs = await resource.create(operation(said), inputs)
    assert len(said.messages) == 1
    assert "no HyperNode was made: the cluster has no hypernodes.topology.volcano.sh" in said.messages[0]
    assert outputs == {**inputs, "made": 0}
    assert resource.diff(outputs, inputs) == []
    found = await resource.read(operation(), "id", outputs, inputs)
    assert found is not None
    assert found.outputs == outputs
    await resource.delete(operation(), "id", outputs)

    volcano.install(plane.api)
    found = await resource.read(operation(), "id", outputs, inputs)
    assert found is not None
    assert [each.path for each in resource.diff(found.outputs, inputs)] == ["drift.missing"]
    assert await resource.update(operation(), "id", found.outputs, inputs) == {**inputs, "made": 7}
    assert len(tiers(plane)) == 7


async def test_hypernodes_are_made_repaired_resized_and_removed(plane: Plane, resource: HyperNodes, kind: None) -> None:
    volcano.install(plane.api)
    theirs = {"kind": "HyperNode", "apiVersion": "topology.volcano.sh/v1alpha1", "metadata": {"name": "theirs"}}
    plane.api.create(volcano.HYPERNODES, {**theirs, "spec": {"tier": 9}})
    inputs = asked(plane, resource, 6)
    _, outputs = await resource.create(operation(), inputs)
    ours = {"a-z-r0": 1, "a-z-r1": 1, "a-z-r2": 1, "a-z-b0": 2, "a-z-b1": 2, "zone-z": 3}
    assert tiers(plane) == {"theirs": 9, **ours}

    plane.api.merge(f"{volcano.HYPERNODES}/a-z-b0", {"spec": {"tier": 5}})
    plane.api.merge(f"{volcano.HYPERNODES}/a-z-r1", {"metadata": {"labels": {"kumulus.io/cluster": None}}})
    plane.api.delete(f"{volcano.HYPERNODES}/a-z-r2")
    found = await resource.read(operation(), "id", outputs, inputs)
    assert found is not None
    assert found.outputs["drift"] == {"missing": "2: a-z-r1, a-z-r2", "altered": "1: a-z-b0 (tier: 5 instead of 2)"}
    outputs = await resource.update(operation(), "id", found.outputs, inputs)
    assert tiers(plane) == {"theirs": 9, **ours}

    fewer, said = asked(plane, resource, 4), Said()
    await resource.update(operation(said, preview=True), "id", outputs, fewer)
    assert said.messages == ["4 HyperNodes (were 6), 1 changed: −1 rack, −1 block"]
    outputs = await resource.update(operation(), "id", outputs, fewer)
    assert set(tiers(plane)) == {"theirs", "a-z-r0", "a-z-r1", "a-z-b0", "zone-z"}
    found = await resource.read(operation(), "id", outputs, fewer)
    assert found is not None
    assert found.outputs == {**fewer, "made": 4}

    await resource.delete(operation(), "id", outputs)
    assert tiers(plane) == {"theirs": 9}
    await resource.delete(operation(), "id", outputs)


async def test_hypernodes_of_others_are_not_taken_over(plane: Plane, resource: HyperNodes, kind: None) -> None:
    volcano.install(plane.api)
    head = {"kind": "HyperNode", "apiVersion": "topology.volcano.sh/v1alpha1"}
    another = {"name": "zone-z", "labels": {"kumulus.io/cluster": "another"}}
    plane.api.create(volcano.HYPERNODES, {**head, "metadata": {"name": "a-z-r0"}, "spec": {"tier": 9}})
    plane.api.create(volcano.HYPERNODES, {**head, "metadata": another, "spec": {"tier": 8}})
    before = plane.api.get(volcano.HYPERNODES)["items"]
    inputs = asked(plane, resource, 6)
    for preview in (True, False):
        with pytest.raises(ProviderError) as caught:
            await resource.create(operation(preview=preview), inputs)
        said = str(caught.value)
        assert "a-z-r0 (made with " in said
        assert "zone-z (of the cluster 'another' of another stack)" in said
        assert "kubectl delete hypernode a-z-r0" in said
    # As in a state that has them: an update is refused likewise, and a destroy takes nothing.
    outputs = {**inputs, "made": 6}
    for preview in (True, False):
        with pytest.raises(ProviderError, match="not this stack's: a-z-r0"):
            await resource.update(operation(preview=preview), "id", outputs, asked(plane, resource, 4))
    await resource.delete(operation(), "id", outputs)
    assert plane.api.get(volcano.HYPERNODES)["items"] == before
    plane.api.delete(f"{volcano.HYPERNODES}/a-z-r0")
    plane.api.delete(f"{volcano.HYPERNODES}/zone-z")
    _, outputs = await resource.create(operation(), inputs)
    assert len(tiers(plane)) == 6
    await resource.delete(operation(), "id", outputs)
