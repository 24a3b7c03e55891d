"""Two stacks in one cluster: neither takes over a pool or a namespace of the other's."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kumulus.nodes.errors import PartialFailure, ProviderError
from kumulus.provider.connections import Connections
from kumulus.provider.resources.base import Properties
from kumulus.provider.resources.namespace import NamespaceResource
from kumulus.provider.resources.registry import resources
from tests.integration.conftest import Faults, Plane, Pools, operation, pod
from tests.support.api import Refused
from tests.support.said import Said

pytestmark = pytest.mark.integration

RECORDS = "/api/v1/namespaces/kube-system/configmaps"
NAMESPACES = "/api/v1/namespaces"
ONE, TWO = "1" * 32, "2" * 32
OWNER, OTHER = "organization/kumulus/one", "organization/kumulus/two"


# --- pools -----------------------------------------------------------------------------------------------------------


def of_another_stack(inputs: Properties, **changed: Any) -> Properties:
    """A pool as another stack declares it, which calls the cluster ``other``."""
    labels = {**inputs["labels"], "kumulus.io/cluster": "other"}
    return {**inputs, "clusterName": "other", "labels": labels, **changed}


async def test_a_pool_that_another_stack_has_is_refused_and_its_nodes_are_left_as_they_are(pools: Pools) -> None:
    first = pools.inputs(3, "shared-z")
    await pools.create(first)
    before = {name: node["metadata"]["resourceVersion"] for name, node in pools.nodes(first).items()}
    second = of_another_stack(first, replicas=5)
    for preview in (True, False):
        with pytest.raises(ProviderError) as told:
            await pools.resource.create(operation(preview=preview), second)
        assert "pool shared-z: node shared-z-" in str(told.value)
        assert "is another stack's, which calls its cluster test; rename the node group or its zone" in str(told.value)
    assert {name: node["metadata"]["resourceVersion"] for name, node in pools.nodes(first).items()} == before


async def test_two_stacks_pools_stand_side_by_side_and_go_alone(pools: Pools) -> None:
    first = pools.inputs(3, "one-z")
    second = of_another_stack(pools.inputs(2, "two-z"))
    await asyncio.gather(pools.create(first), pools.create(second))
    assert (len(pools.nodes(first)), len(pools.nodes(second))) == (3, 2)
    kept = pools.uids(first)
    await pools.delete(second)
    assert pools.uids(first) == kept
    assert not await pools.drift(first)


async def test_another_clusters_name_on_a_node_of_ones_own_is_drift_and_repaired(pools: Pools) -> None:
    inputs = pools.inputs(2, "mine-z")
    outputs = await pools.create(inputs)
    pools.plane.api.merge("/api/v1/nodes/mine-z-0", {"metadata": {"labels": {"kumulus.io/cluster": "x"}}})
    assert "mine-z-0" in (await pools.drift(inputs))["altered"]
    await pools.update(inputs, outputs)
    assert not await pools.drift(inputs)


async def test_a_pool_that_a_killed_run_began_is_finished(pools: Pools) -> None:
    inputs = pools.inputs(4, "begun-z")
    await pools.create({**inputs, "replicas": 2})
    kept = pools.uids(inputs)
    await pools.create(inputs)
    assert kept.items() < pools.uids(inputs).items()


@pytest.mark.parametrize("first", [ONE, TWO])
async def test_of_two_stacks_with_the_same_pool_the_second_is_refused_and_its_destroy_removes_nothing(
    pools: Pools, first: str
) -> None:
    second = TWO if first == ONE else ONE
    theirs = {**pools.inputs(3, f"alike{first[0]}-z"), "stackId": first}
    ours = {**theirs, "stackId": second, "replicas": 5}
    outputs = await pools.create(theirs)
    assert {node["metadata"]["labels"]["kumulus.io/stack-id"] for node in pools.nodes(theirs).values()} == {first}
    before, record = pools.nodes(theirs), pools.plane.api.get(f"{RECORDS}/kumulus-pool-{theirs['name']}")
    for preview in (True, False):
        with pytest.raises(ProviderError, match=rf"belongs to .*\(identity {first[:8]}\); rename the node group"):
            await pools.resource.create(operation(preview=preview), ours)
        # One whose state believes that it has them, too.
        with pytest.raises(ProviderError, match="belongs to"):
            await pools.resource.update(operation(preview=preview), "id", ours, ours)
    await pools.resource.delete(operation(), "id", ours)
    assert (pools.nodes(theirs), pools.plane.api.get(f"{RECORDS}/kumulus-pool-{theirs['name']}")) == (before, record)
    assert await pools.resource.read(operation(), "id", ours, ours) is None
    await pools.update(theirs, outputs)
    assert pools.nodes(theirs) == before


async def test_a_pool_of_a_state_without_an_identity_is_marked_in_place(pools: Pools) -> None:
    formerly = pools.inputs(3, "older-z")
    inputs = {**formerly, "stackId": ONE}
    outputs = await pools.create(formerly)
    uids = pools.uids(formerly)
    # Nothing tells a new stack from the one that made it.
    with pytest.raises(ProviderError, match="rename the node group"):
        await pools.resource.create(operation(preview=True), {**inputs, "stackId": TWO})
    await pools.update(inputs, outputs)
    assert pools.uids(inputs) == uids
    assert {node["metadata"]["labels"]["kumulus.io/stack-id"] for node in pools.nodes(inputs).values()} == {ONE}
    assert not await pools.drift(inputs)
    with pytest.raises(ProviderError, match="belongs to"):
        await pools.resource.update(operation(preview=True), "id", outputs, {**inputs, "stackId": TWO})
    await pools.delete(formerly)
    assert pools.uids(inputs) == uids
    await pools.delete(inputs)
    assert pools.uids(inputs) == {}


async def test_nodes_that_somebody_made_by_hand_under_a_pools_names_are_left_alone(pools: Pools) -> None:
    inputs = {**pools.inputs(3, "hand-z"), "stackId": ONE}
    api = pools.plane.api
    made = api.create("/api/v1/nodes", {"metadata": {"name": "hand-z-1", "labels": {"type": "kwok"}}})
    try:
        with pytest.raises(PartialFailure, match="node hand-z-1 is not this stack's; nothing was done to it"):
            await pools.create(inputs)
        now = api.get("/api/v1/nodes/hand-z-1")
        assert (now["metadata"]["labels"], now["metadata"]["uid"]) == (
            made["metadata"]["labels"],
            made["metadata"]["uid"],
        )
        await pools.delete(inputs)
        assert api.get("/api/v1/nodes/hand-z-1")["metadata"]["uid"] == made["metadata"]["uid"]
    finally:
        api.delete("/api/v1/nodes/hand-z-1")


# --- a first preview -------------------------------------------------------------------------------------------------


async def test_the_first_preview_on_an_existing_cluster_knows_it_and_refuses_what_is_anothers(
    pools: Pools, tmp_path: Path
) -> None:
    theirs = {**pools.inputs(2, "early-z"), "stackId": ONE}
    await pools.create(theirs)
    served = resources()
    cluster, pool = served["kumulus:index:Cluster"], served["kumulus:index:NodePool"]
    given = {"name": "test", "runtime": "existing", "home": str(tmp_path), "stackId": TWO}
    options = {"kubeconfig": pools.plane.observed.kubeconfig}
    checked = cluster.check({}, {**given, "options": options}, "/")
    assert checked.failures == []
    _, found = await cluster.create(operation(preview=True), checked.inputs)
    assert (found["identity"], os.listdir(tmp_path)) == (pools.plane.identity, [])
    place = {"kubeconfig": found["kubeconfig"], "clusterIdentity": found["identity"], "stackId": TWO}
    with pytest.raises(ProviderError, match="belongs to"):
        await pool.create(operation(preview=True), {**theirs, **place})
    assert (await pool.create(operation(preview=True), {**theirs, **place, "name": "free-z"}))[1]["name"] == "free-z"


# --- faults ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [ONE, TWO])
async def test_of_two_stacks_with_a_fault_of_one_name_the_second_is_refused_and_its_end_is_not_the_firsts(
    pools: Pools, faults: Faults, first: str
) -> None:
    second = TWO if first == ONE else ONE
    pool = {**pools.inputs(2, f"f{first[0]}-z"), "stackId": first}
    other = {**pools.inputs(2, f"g{first[0]}-z"), "stackId": second}
    await asyncio.gather(pools.create(pool), pools.create(other))
    name = f"alike-{first[0]}"
    theirs = {**faults.inputs(name, {pool["name"]: "0"}, "gpu-fell-off-bus"), "stackId": first}
    ours = {**faults.inputs(name, {other["name"]: "0"}, "gpu-fell-off-bus"), "stackId": second}
    await faults.begin(theirs)
    before, record = pools.nodes(pool), faults.plane.api.get(f"{RECORDS}/kumulus-fault-{name}")
    for preview in (True, False):
        with pytest.raises(ProviderError, match="a fault of that name is already active and belongs to"):
            await faults.resource.create(operation(preview=preview), ours)
        with pytest.raises(ProviderError, match="belongs to"):
            await faults.resource.update(operation(preview=preview), "id", ours, ours)
    said = Said()
    await faults.resource.delete(operation(said), "id", ours)
    assert any("it is left alone" in message for message in said.messages)
    assert await faults.resource.read(operation(), "id", ours, ours) is None
    assert faults.plane.api.get(f"{RECORDS}/kumulus-fault-{name}") == record
    assert spec_of(pools.nodes(pool)) == spec_of(before)


async def test_a_fault_of_a_state_without_an_identity_is_marked_by_its_next_update(
    pools: Pools, faults: Faults
) -> None:
    pool = {**pools.inputs(2, "fo-z"), "stackId": ONE}
    await pools.create(pool)
    formerly = faults.inputs("older-fault", {pool["name"]: "0"}, "gpu-fell-off-bus")
    await faults.begin(formerly)
    inputs = {**formerly, "stackId": ONE}
    path = f"{RECORDS}/kumulus-fault-older-fault"
    since = json.loads(faults.plane.api.get(path)["data"]["record"])["since"]
    with pytest.raises(ProviderError, match="is declared by a stack without an identity"):
        await faults.resource.create(operation(preview=True), {**inputs, "stackId": TWO})
    await faults.change(formerly, inputs)
    record = faults.plane.api.get(path)
    assert record["metadata"]["labels"]["kumulus.io/stack-id"] == ONE
    assert json.loads(record["data"]["record"])["since"] == since
    faults.made["older-fault"] = inputs


def spec_of(nodes: dict[str, Any]) -> dict[str, Any]:
    """What faults change of nodes."""
    return {
        name: (node["metadata"]["labels"], node["spec"], node["status"]["capacity"]) for name, node in nodes.items()
    }


# --- namespaces ------------------------------------------------------------------------------------------------------


@dataclass
class Namespaces:
    """Namespaces on the control plane, through the resource."""

    plane: Plane
    resource: NamespaceResource
    made: list[str] = field(default_factory=list)

    def inputs(self, name: str, stack: str = OWNER, **more: Any) -> Properties:
        self.made.append(name)
        properties = {
            **self.plane.place,
            "name": name,
            "stack": stack,
            "stackId": ONE,
            "labels": {"kumulus.io/tenant": name},
            "annotations": {"example.com/owner": "research"},
            **more,
        }
        checked = self.resource.check({}, properties, "/")
        assert checked.failures == []
        return checked.inputs

    async def create(self, inputs: Properties, **options: Any) -> Properties:
        return (await self.resource.create(operation(**options), inputs))[1]

    async def drift(self, inputs: Properties) -> Properties | None:
        """What a read finds not to be as wanted; None when it finds nothing."""
        found = await self.resource.read(operation(), "id", inputs, inputs)
        return None if found is None else found.outputs.get("drift", {})

    def metadata(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.plane.api.get(f"{NAMESPACES}/{name}")["metadata"]
        return found


@pytest.fixture
async def namespaces(plane: Plane) -> AsyncIterator[Namespaces]:
    connections = Connections()
    found = Namespaces(plane, NamespaceResource(connections))
    yield found
    for name in found.made:
        with suppress(Refused):
            plane.api.delete(f"{NAMESPACES}/{name}")
    await connections.close()


async def test_a_namespace_lives_and_goes_with_what_is_in_it(namespaces: Namespaces, plane: Plane) -> None:
    inputs = namespaces.inputs("research")
    assert await namespaces.drift(inputs) is None
    await namespaces.create(inputs)
    metadata = namespaces.metadata("research")
    assert metadata["annotations"] == {"example.com/owner": "research", "kumulus.io/stack": OWNER}
    assert metadata["labels"].items() >= {"kumulus.io/tenant": "research", "kumulus.io/stack-id": ONE}.items()
    assert await namespaces.drift(inputs) == {}
    plane.api.create("/api/v1/namespaces/research/pods", pod("left", "nowhere"))
    await namespaces.resource.delete(operation(), "id", inputs)
    with pytest.raises(Refused, match="404"):
        namespaces.metadata("research")
    await namespaces.resource.delete(operation(), "id", inputs)


async def test_what_was_changed_by_hand_is_named_and_put_right_and_other_labels_stay(namespaces: Namespaces) -> None:
    inputs = namespaces.inputs("altered")
    outputs = await namespaces.create(inputs)
    change = {"labels": {"kumulus.io/tenant": "x", "theirs": "1"}, "annotations": {"example.com/owner": None}}
    namespaces.plane.api.merge(f"{NAMESPACES}/altered", {"metadata": change})
    assert await namespaces.drift(inputs) == {
        'labels["kumulus.io/tenant"]': '"x" instead of "altered"',
        'annotations["example.com/owner"]': 'missing instead of "research"',
    }
    wanted = {**inputs, "labels": {"kumulus.io/tenant": "altered", "new": "2"}, "annotations": {}}
    await namespaces.resource.update(operation(), "id", outputs, wanted)
    metadata = namespaces.metadata("altered")
    assert metadata["labels"].items() >= {"kumulus.io/tenant": "altered", "new": "2", "theirs": "1"}.items()
    assert metadata["annotations"] == {"kumulus.io/stack": OWNER}
    assert await namespaces.drift(wanted) == {}


async def test_a_create_that_was_killed_is_finished_and_a_stack_that_moved_keeps_its_own(
    namespaces: Namespaces,
) -> None:
    inputs = namespaces.inputs("again")
    await namespaces.create(inputs)
    uid = namespaces.metadata("again")["uid"]
    outputs = await namespaces.create(inputs)
    moved = {**inputs, "stack": "acme/kumulus/one"}
    await namespaces.resource.update(operation(), "id", outputs, moved)
    assert namespaces.metadata("again")["uid"] == uid
    assert namespaces.metadata("again")["annotations"]["kumulus.io/stack"] == "acme/kumulus/one"


@pytest.mark.parametrize("preview", [True, False])
@pytest.mark.parametrize("owner", [OTHER, ""])
async def test_somebody_elses_namespace_is_refused_and_never_removed(
    namespaces: Namespaces, plane: Plane, owner: str, preview: bool
) -> None:
    name = f"theirs-{'stack' if owner else 'hand'}-{'preview' if preview else 'up'}"
    marks = {"annotations": {"kumulus.io/stack": owner}, "labels": {"kumulus.io/stack-id": TWO}} if owner else {}
    inputs = namespaces.inputs(name)
    plane.api.create(NAMESPACES, {"metadata": {"name": name, **marks}})
    whose = rf"belongs to the stack {OTHER} \(identity 22222222\)" if owner else "was made by somebody else"
    with pytest.raises(ProviderError, match=f"the namespace {name} is there already and {whose}; write another"):
        await namespaces.create(inputs, preview=preview)
    said = Said()
    await namespaces.resource.delete(operation(said), "id", inputs)
    assert namespaces.metadata(name)["uid"]
    assert any("left alone" in message for message in said.messages)
    assert await namespaces.drift(inputs) is None


@pytest.mark.parametrize("first", [ONE, TWO])
async def test_of_two_stacks_called_alike_in_every_way_the_second_is_refused_and_removes_nothing(
    namespaces: Namespaces, plane: Plane, first: str
) -> None:
    """Two checkouts of one project on a self-managed backend: `organization/kumulus/one` are both."""
    second = TWO if first == ONE else ONE
    name = f"alike-{first[0]}"
    theirs = namespaces.inputs(name, stackId=first)
    ours = namespaces.inputs(name, stackId=second)
    await namespaces.create(theirs)
    plane.api.create(f"{NAMESPACES}/{name}/pods", pod("running", "nowhere"))
    before = namespaces.metadata(name)
    for preview in (True, False):
        with pytest.raises(ProviderError, match=rf"belongs to the stack {OWNER} \(identity {first[:8]}\); write"):
            await namespaces.create(ours, preview=preview)
        with pytest.raises(ProviderError, match="belongs to the stack"):
            await namespaces.resource.update(operation(preview=preview), "id", ours, ours)
    said = Said()
    await namespaces.resource.delete(operation(said), "id", ours)
    assert any("it is left alone" in message for message in said.messages)
    assert namespaces.metadata(name) == before
    await namespaces.resource.update(operation(), "id", theirs, theirs)
    await namespaces.resource.delete(operation(), "id", theirs)


async def test_a_namespace_of_a_state_without_an_identity_is_marked_by_its_next_update(
    namespaces: Namespaces, plane: Plane
) -> None:
    inputs = namespaces.inputs("older")
    formerly = {key: value for key, value in inputs.items() if key != "stackId"}
    await namespaces.create(formerly)
    assert "kumulus.io/stack-id" not in namespaces.metadata("older")["labels"]
    # A new stack of the same name has nothing that would prove it.
    with pytest.raises(ProviderError, match=f"is the stack {OWNER}'s, which has no identity"):
        await namespaces.create({**inputs, "stackId": TWO}, preview=True)
    uid = namespaces.metadata("older")["uid"]
    await namespaces.resource.update(operation(), "id", formerly, inputs)
    metadata = namespaces.metadata("older")
    assert (metadata["uid"], metadata["labels"]["kumulus.io/stack-id"]) == (uid, ONE)
    # And another old one, which believes that it is its own, comes too late.
    with pytest.raises(ProviderError, match="belongs to the stack"):
        await namespaces.resource.update(operation(), "id", formerly, {**inputs, "stackId": TWO})
    await namespaces.resource.delete(operation(), "id", {**formerly, "stackId": TWO})
    await namespaces.resource.delete(operation(), "id", formerly)
    assert namespaces.metadata("older")["uid"] == uid


async def test_a_namespace_that_does_not_go_in_time_is_told_with_what_is_left(
    namespaces: Namespaces, plane: Plane
) -> None:
    inputs = namespaces.inputs("stuck")
    await namespaces.create(inputs)
    path = "/api/v1/namespaces/stuck/configmaps"
    plane.api.create(path, {"metadata": {"name": "held", "finalizers": ["example.com/hold"]}})
    try:
        with pytest.raises(ProviderError, match=r"namespace stuck is being deleted: .*; the next run goes on"):
            await namespaces.resource.delete(operation(timeout=0.5), "id", inputs)
        with pytest.raises(ProviderError, match="is being deleted; run it again in a moment"):
            await namespaces.create(inputs)
        plane.api.until(NAMESPACES, lambda state: "example.com/hold" in str(state["stuck"]["status"]), timeout=60)
        with pytest.raises(ProviderError, match=r"being deleted: .*example.com/hold.*"):
            await namespaces.resource.delete(operation(timeout=0.5), "id", inputs)
    finally:
        plane.api.merge(f"{path}/held", {"metadata": {"finalizers": None}})
