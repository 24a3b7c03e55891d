"""Replacing never destroys: whatever makes Pulumi replace a resource by itself, its cluster is as it was before.

Every test here is of every class in the registry: a new one needs an example in ``replacing``.
"""

import json
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kumulus.extras.scaling import registry as autoscalers
from kumulus.helm import charts
from kumulus.helm.charts import Chart
from kumulus.model.consequences import ARROW, MINUS
from kumulus.model.identity import STACK_ID
from kumulus.provider.resources.base import Properties, Resource
from kumulus.provider.resources.node_pool import NodePool
from kumulus.provider.resources.registry import CLASSES, resources
from kumulus.provider.resources.release import ReleaseMark, ReleasePreparation
from kumulus.provider.resources.state_only import StackIdentityResource
from tests.support.kinds import CRDS, crd
from tests.support.object_store import NODES, Store
from tests.unit.provider.replacing import (
    EXAMPLES,
    MINE,
    ON_CHANGES,
    WAYS,
    State,
    Update,
    Way,
    autoscaler,
    declared,
    discovery,
    react,
    urn,
)
from tests.unit.provider.stored import stored
from tests.unit.provider.test_rpc import serving

OTHER = "b" * 32
every_class = pytest.mark.parametrize("resource", CLASSES, ids=lambda each: each.__name__)
_COUNTED = ("uid", "resourceVersion", "generation")
orders = pytest.mark.parametrize("way", ON_CHANGES.values(), ids=ON_CHANGES)
every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


@dataclass
class World:
    """A cluster, the home of clusters' files, and plugins that work on them."""

    store: Store
    home: Path
    place: Properties
    plugins: AsyncExitStack
    states: list[State] = field(default_factory=list)

    async def begin(self) -> Update:
        """A plugin process of its own."""
        return Update(await self.plugins.enter_async_context(serving(resources(), str(self.home))))

    async def made(self, resource: type[Resource]) -> State:
        """An example as the first update makes it, with what other programs make then."""
        example = EXAMPLES[resource]
        self.store.served |= {*example.served}
        for each in example.needs:
            await self.made(each)
        state = await (await self.begin()).create(urn(resource.token), self.declared(resource))
        self.states.append(state)
        for collection, body in example.joined:
            self.store.put(collection, body)
        return state

    def declared(self, resource: type[Resource], **own: Any) -> Properties:
        return {**declared(resource, self.place, self.home), **own}

    def seen(self, resource: type[Resource]) -> dict[str, object]:
        """All that is there, but for the counters of changes."""
        found: dict[str, object] = {}
        for path, body in self.store.objects.items():
            metadata = {key: value for key, value in body["metadata"].items() if key != "resourceVersion"}
            found[path] = {**body, "metadata": metadata}
        found |= {str(file): file.read_text() for file in self.home.rglob("*") if file.is_file()}
        moving = EXAMPLES[resource].moving
        return {path: deepcopy(each) for path, each in found.items() if not (moving and path.endswith(moving))}

    async def destroyed(self, resource: type[Resource], state: State) -> None:
        """The end: other programs remove what they have made, but for CRDs, which Helm leaves."""
        for collection, body in EXAMPLES[resource].joined:
            if collection != CRDS:
                del self.store.objects[f"{collection}/{body['metadata']['name']}"]
        up = await self.begin()
        for each in (state, *reversed(self.states[:-1])):
            await up.delete(each)
        self.states.clear()

    def contents(self) -> dict[str, object]:
        """All that is there, whenever it was made."""
        return {path: _timeless(body) for path, body in self.store.objects.items()}


def _timeless(value: Any) -> Any:
    """A value without times, what a server counts, and what is empty."""
    if isinstance(value, dict):
        kept = {key: _timeless(each) for key, each in value.items() if key not in _COUNTED and not key.endswith("Time")}
        return {key: each for key, each in kept.items() if each not in ({}, [], None)}
    if isinstance(value, list):
        return [_timeless(each) for each in value]
    return re.sub(r'"since":"[^"]*"', "", value) if isinstance(value, str) else value


@pytest.fixture
async def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    async def read(_: object) -> Chart:
        return Chart(Path("/"), "1.0.0", {"ones.things.io": json.dumps(crd("ones.things.io"))})

    async def check_values(*_: object) -> None:
        """The chart has no schema."""

    monkeypatch.setattr(charts, "read", read)
    monkeypatch.setattr(charts, "check_values", check_values)
    monkeypatch.setattr(autoscalers, "get", autoscaler)
    place = {"stackId": MINE, "clusterOutlivesStack": True}
    async with stored(tmp_path, **place) as cluster, AsyncExitStack() as plugins:
        cluster.store.react = react
        discovery(cluster.store)
        yield World(cluster.store, tmp_path / "home", cluster.place, plugins)


def test_every_class_of_the_registry_has_an_example() -> None:
    assert set(EXAMPLES) == set(CLASSES)


@every_way
@every_class
async def test_a_replacement_leaves_the_cluster_as_the_program_says(
    world: World, resource: type[Resource], way: Way
) -> None:
    old = await world.made(resource)
    before = world.seen(resource)
    new = await way(world.begin, old, world.declared(resource))
    assert world.seen(resource) == before
    # And the next update finds nothing to do, nor does one that refreshes first.
    up = await world.begin()
    assert await up.keep(new, world.declared(resource)) == []
    found = await up.read(new)
    assert found == new.outputs


@every_class
async def test_a_preview_of_a_replacement_changes_nothing(world: World, resource: type[Resource]) -> None:
    old = await world.made(resource)
    before = world.seen(resource)
    await (await world.begin()).create(old.urn, world.declared(resource), preview=True)
    assert world.seen(resource) == before


@orders
@every_class
async def test_what_was_replaced_is_removed_by_a_destroy(world: World, resource: type[Resource], way: Way) -> None:
    nothing = world.seen(resource)
    new = await way(world.begin, await world.made(resource), world.declared(resource))
    await world.destroyed(resource, new)
    assert world.seen(resource) == nothing


@orders
@pytest.mark.parametrize(
    "resource", [each for each in CLASSES if EXAMPLES[each].changed], ids=lambda each: each.__name__
)
async def test_a_replacement_with_changes_leaves_nothing_of_what_was_declared_before(
    world: World, resource: type[Resource], way: Way
) -> None:
    """`replaceOnChanges`: what it leaves is what a stack has that is made anew."""
    changed = world.declared(resource, **EXAMPLES[resource].changed)
    new = await way(world.begin, await world.made(resource), changed)
    up = await world.begin()
    assert (await up.keep(new, changed), await up.read(new)) == ([], new.outputs)
    replaced = world.contents()
    await world.destroyed(resource, new)
    for each in EXAMPLES[resource].needs:
        await world.made(each)
    await (await world.begin()).create(new.urn, changed)
    assert world.contents() == replaced


@every_class
async def test_a_stack_that_gets_another_identity_keeps_what_it_has(world: World, resource: type[Resource]) -> None:
    """As when the state has lost its StackIdentity, or that one is replaced."""
    nothing = world.seen(resource)
    await world.made(resource)
    uids = {path: body["metadata"].get("uid") for path, body in world.store.objects.items()}
    classes = (*EXAMPLES[resource].needs, resource)
    theirs = {f"{each}/{body['metadata']['name']}" for each, body in EXAMPLES[resource].joined}
    for number, each in enumerate(classes):
        if each is StackIdentityResource or "stackId" not in {*each.keys()}:
            return
        wanted, up = world.declared(each, stackId=OTHER), await world.begin()
        assert await up.keep(world.states[number], wanted) == ["stackId"]
        world.states[number] = await up.update(world.states[number], wanted)
        assert await (await world.begin()).keep(world.states[number], wanted) == []
    assert {path: body["metadata"].get("uid") for path, body in world.store.objects.items()} == uids
    marks = {path: (body["metadata"].get("labels") or {}).get(STACK_ID) for path, body in world.store.objects.items()}
    assert MINE not in {mark for path, mark in marks.items() if resource is ReleaseMark or path not in theirs}
    assert MINE not in "".join(file.read_text() for file in world.home.rglob("*") if file.is_file())
    await world.destroyed(resource, world.states[-1])
    assert world.seen(resource) == nothing


async def test_the_preview_of_a_replaced_pool_says_what_stays_and_what_goes(world: World) -> None:
    """As one of an update does, and not as if all its nodes were new."""
    old = await world.made(NodePool)
    for number, (replicas, said) in enumerate(((12, "stays"), (5, f"{MINUS}7 nodes (12 {ARROW} 5)"))):
        up = await world.begin()
        await up.create(old.urn, world.declared(NodePool, replicas=replicas), preview=True)
        messages = up.plugin.messages()
        assert len(messages) == number + 1
        assert said in messages[-1]
        assert "pool a100-use1 is there already, and stays" in messages


async def test_a_replaced_pool_keeps_the_nodes_that_an_autoscaler_has_made(world: World) -> None:
    old = await world.made(NodePool)
    scaled = world.declared(NodePool, replicas=3, minReplicas=1, maxReplicas=20)
    new = await WAYS["create_first"](world.begin, old, scaled)
    assert (len(world.store.under(NODES)), new.outputs["replicas"]) == (12, 3)


async def test_a_replaced_preparation_has_its_release_changed_whatever_was_repaired_before(world: World) -> None:
    """The release is marked as failed, as if it had left the state; its description says "repaired 2 times"."""
    old = await world.made(ReleasePreparation)
    assert old.outputs["repairs"] == 0
    new = await WAYS["create_first"](world.begin, old, world.declared(ReleasePreparation))
    assert new.outputs["repairs"] == 3
