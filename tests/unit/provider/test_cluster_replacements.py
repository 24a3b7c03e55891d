"""A cluster that a runtime makes on this machine is made again only with consent, and is there afterwards."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import grpc.aio
import pytest

from kumulus.extras.journal.book import Journal
from kumulus.extras.journal.changes import JournaledChanges
from kumulus.host import lifetime
from kumulus.model.contents import contents
from kumulus.nodes.reporter import Reporter
from kumulus.provider.connections import Connections
from kumulus.provider.resources.base import Properties
from kumulus.provider.resources.cluster import ClusterResource
from kumulus.provider.resources.cluster_place import UNSHOWN
from kumulus.provider.settings import PluginSettings
from kumulus.runtimes import directories
from kumulus.runtimes.base import MISSING, Observed, RecordedControlPlane, Runtime, WantedControlPlane
from kumulus.runtimes.place import Place
from tests.unit.provider.replacing import MINE, WAYS, State, Update, Way, urn
from tests.unit.provider.test_rpc import refusal, serving

PREVIEW, UPDATE = (contents([], [], preview=preview) for preview in (True, False))
REFUSED = (
    "cluster dev is there and would be made again, without the pods, Jobs and whatever else was put into it in "
    "addition to what the stack declares; nothing was changed."
)


class Folders(Runtime):
    """A runtime whose clusters are folders: what is in the file `identity` answers."""

    name: ClassVar[str] = "kwok"
    replaced_by: ClassVar[frozenset[str]] = frozenset({"featureGates"})

    def problems(self, options: dict[str, Any]) -> dict[str, str]:
        return {}

    def removed(self, directory: str) -> bool:
        return Place(Path(directory)).removed()

    async def create(self, wanted: WantedControlPlane, report: Reporter, stop: asyncio.Event) -> Observed:
        place = Place.of(wanted.home, wanted.name)
        directories.require_free(place, wanted.owner)
        directories.remove(place)
        place.directory.mkdir(parents=True)
        place.write_note({"owner": wanted.owner})
        place.kubeconfig.write_text(uuid.uuid4().hex)
        return self._seen(place)

    async def read(self, recorded: RecordedControlPlane, report: Reporter) -> Observed | None:
        place = Place(Path(recorded.directory))
        if not place.directory.exists() or recorded.identity not in ("", self._seen(place).identity):
            return None
        return self._seen(place)

    async def repair(self, wanted: WantedControlPlane, identity: str, report: Reporter) -> Observed:
        place = Place.of(wanted.home, wanted.name)
        place.write_note({**place.note(), "owner": wanted.owner})
        return self._seen(place)

    async def delete(self, recorded: RecordedControlPlane, report: Reporter) -> None:
        directories.remove(Place(Path(recorded.directory)))

    def _seen(self, place: Place) -> Observed:
        there = place.kubeconfig.exists()
        identity = place.kubeconfig.read_text() if there else ""
        states = {"etcd": "running" if there else MISSING}
        return Observed(identity, str(place.kubeconfig), "", str(place.directory), states)


@dataclass
class Machine:
    """Where the clusters are, and the plugins that a command starts."""

    home: Path
    plugins: AsyncExitStack
    settings: dict[str, Any] = field(default_factory=dict)

    async def begin(self) -> Update:
        resource = ClusterResource({"kwok": Folders()}, Connections(), PluginSettings(**self.settings))
        return Update(
            await self.plugins.enter_async_context(serving({ClusterResource.token: resource}, str(self.home)))
        )

    def declared(self, **own: Any) -> Properties:
        return {"name": "dev", "runtime": "kwok", "home": str(self.home), "stackId": MINE, **own}

    @property
    def directory(self) -> Path:
        return self.home / "clusters" / "dev"

    @property
    def identity(self) -> str:
        return (self.directory / "kubeconfig.yaml").read_text()

    async def made(self) -> State:
        return await (await self.begin()).create(urn(ClusterResource.token), self.declared())


@pytest.fixture
async def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Machine]:
    monkeypatch.delenv(UNSHOWN, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    async with AsyncExitStack() as plugins:
        yield Machine(tmp_path / "home", plugins)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
async def test_a_replaced_cluster_is_there_and_is_the_one_in_the_state(machine: Machine, way: Way) -> None:
    old = await machine.made()
    new = await way(machine.begin, old, machine.declared())
    assert machine.identity == new.outputs["identity"] != old.outputs["identity"]
    up = await machine.begin()
    assert await up.keep(new, machine.declared()) == []
    assert await up.read(new) == new.outputs
    await (await machine.begin()).delete(new)
    assert not machine.directory.exists()


async def test_a_cluster_that_changes_its_name_leaves_nothing_under_the_old_one(machine: Machine) -> None:
    """It is replaced by the change of a property, of which Pulumi asks with the recorded name."""
    for way in (WAYS["on_changes_create_first"], WAYS["on_changes_delete_first"]):
        old = await machine.made()
        new = await way(machine.begin, old, machine.declared(name="other"))
        assert [each.name for each in machine.directory.parent.iterdir()] == ["other"]
        await (await machine.begin()).delete(new)


async def test_a_forced_replacement_that_no_preview_has_shown_is_refused_before_anything_is_done(
    machine: Machine,
) -> None:
    old = await machine.made()
    before = machine.identity
    up = await machine.begin()
    assert REFUSED in await refusal(up.plugin.check(old.urn, machine.declared(contents=UPDATE)))
    # Nor is one of a cluster that has another URN now.
    assert REFUSED in await refusal(up.plugin.check(f"{old.urn}-renamed", machine.declared(contents=UPDATE)))
    # Nor of one whose note alone is gone.
    (machine.directory / "kumulus.json").unlink()
    assert REFUSED in await refusal(up.plugin.check(old.urn, machine.declared(contents=UPDATE)))
    assert machine.identity == before


async def test_one_that_a_run_uses_is_not_made_again_whatever_was_agreed_to(machine: Machine) -> None:
    old = await machine.made()
    machine.settings = {"allow_replace": True}
    journal = Journal(JournaledChanges("one", "training", machine.identity, lifetime.own()))
    journal.add()
    try:
        for way in WAYS.values():
            with pytest.raises(grpc.aio.AioRpcError, match=r"experiment training runs .*; nothing was removed"):
                await way(machine.begin, old, machine.declared(contents=PREVIEW))
        # Nor is it replaced by a changed option, before which Pulumi would delete what is in it.
        for changed in ({"name": "other"}, {"options": {"featureGates": "x"}}):
            with pytest.raises(grpc.aio.AioRpcError, match=r"experiment training runs .*; nothing was removed"):
                await (await machine.begin()).keep(old, machine.declared(contents=PREVIEW, **changed))
        assert machine.identity == old.outputs["identity"]
    finally:
        journal.discard()


async def test_its_preview_says_what_is_lost_and_is_leave_for_the_same_commands_update(machine: Machine) -> None:
    old = await machine.made()
    preview = await machine.begin()
    await preview.create(old.urn, machine.declared(contents=PREVIEW), preview=True)
    assert [each for each in preview.plugin.messages() if "dev is there and is made again, without the pods" in each]
    new = await WAYS["delete_first"](machine.begin, old, machine.declared(contents=UPDATE))
    assert machine.identity == new.outputs["identity"]


async def test_the_users_word_is_leave_without_a_preview(machine: Machine) -> None:
    old = await machine.made()
    machine.settings = {"allow_replace": True}
    new = await WAYS["create_first"](machine.begin, old, machine.declared(contents=UPDATE))
    assert machine.identity == new.outputs["identity"]


@pytest.mark.parametrize("missing", ["declared.json", "kubeconfig.yaml"])
async def test_what_an_interrupted_run_or_a_loss_has_left_is_cleared_without_a_word(
    machine: Machine, missing: str
) -> None:
    old = await machine.made()
    (machine.directory / missing).unlink()
    await (await machine.begin()).create(old.urn, machine.declared(contents=UPDATE))
    assert machine.identity


async def test_another_stacks_cluster_in_the_place_is_refused_as_ever(machine: Machine) -> None:
    old = await machine.made()
    up = await machine.begin()
    with pytest.raises(Exception, match="that this stack did not make is at"):
        await up.create(old.urn, machine.declared(stackId="b" * 32, contents=UPDATE))


async def test_an_update_in_place_keeps_the_settings_for_the_size_of_the_fleet(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    repair, sizes = Folders.repair, []

    async def repaired(self: Folders, wanted: WantedControlPlane, identity: str, report: Reporter) -> Observed:
        sizes.append(wanted.nodes)
        return await repair(self, wanted, identity, report)

    monkeypatch.setattr(Folders, "repair", repaired)
    many = machine.declared(stackId="b" * 32, contents=contents([], [], nodes=30_000, preview=False))
    await (await machine.begin()).update(await machine.made(), many)
    assert sizes == [30_000]


async def test_a_changed_identity_is_a_difference_and_its_update_marks_the_note(machine: Machine) -> None:
    """As after a state has lost its StackIdentity: a later replacement would be refused as that of another stack."""
    old = await machine.made()
    declared = machine.declared(stackId="b" * 32)
    assert await (await machine.begin()).keep(old, declared) == ["stackId"]
    new = await (await machine.begin()).update(old, declared)
    assert machine.identity == old.outputs["identity"]
    owner = json.loads(json.loads((machine.directory / "kumulus.json").read_text())["owner"])
    assert owner["stackId"] == "b" * 32
    again = await WAYS["create_first"](machine.begin, new, declared)
    assert machine.identity == again.outputs["identity"]
