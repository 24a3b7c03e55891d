"""Two stacks in one cluster: neither takes over a pool or a namespace of the other's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from kumulus.cluster.errors import ProviderError
from kumulus.provider.connections import Connections
from kumulus.provider.resources.base import Properties
from kumulus.provider.resources.namespace import Namespace
from tests.integration.conftest import Plane, Pools, Said, operation, pod
from tests.support.api import Refused

pytestmark = pytest.mark.integration

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


# --- namespaces ------------------------------------------------------------------------------------------------------


@dataclass
class Namespaces:
    """Namespaces on the control plane, through the resource."""

    plane: Plane
    resource: Namespace
    made: list[str] = field(default_factory=list)

    def inputs(self, name: str, stack: str = OWNER, **more: Any) -> Properties:
        self.made.append(name)
        properties = {
            "kubeconfig": self.plane.observed.kubeconfig,
            "clusterIdentity": self.plane.identity,
            "clusterName": "test",
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
    found = Namespaces(plane, Namespace(connections))
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
    with pytest.raises(ProviderError, match=f"is the stack {OWNER}'s, of an earlier version of Kumulus"):
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
    with pytest.raises(ProviderError, match=r"namespace stuck is being deleted: .*; the next run goes on"):
        await namespaces.resource.delete(operation(timeout=0.5), "id", inputs)
    with pytest.raises(ProviderError, match="is being deleted; run it again in a moment"):
        await namespaces.create(inputs)
    plane.api.until(NAMESPACES, lambda state: "example.com/hold" in str(state["stuck"]["status"]), timeout=60)
    with pytest.raises(ProviderError, match=r"being deleted: .*example.com/hold.*"):
        await namespaces.resource.delete(operation(timeout=0.5), "id", inputs)
    plane.api.merge(f"{path}/held", {"metadata": {"finalizers": None}})
