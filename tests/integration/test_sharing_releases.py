"""Two stacks with the same add-on in one cluster: the second is refused, and what Helm has of the first stays."""

from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from kumulus.helm.history import encoded
from kumulus.nodes.errors import ProviderError
from kumulus.provider.connections import Connections
from kumulus.provider.resources.base import Properties
from kumulus.provider.resources.release import ReleaseMark, ReleasePreparation
from tests.integration.conftest import Plane, operation
from tests.support.api import Refused
from tests.support.said import Said

pytestmark = pytest.mark.integration

ONE, TWO = "a" * 32, "b" * 32
NAMESPACES = "/api/v1/namespaces"
HOME = "queues"


@dataclass
class Releases:
    """Helm releases as Helm keeps them, and the resources around them."""

    plane: Plane
    ground: ReleasePreparation
    mark: ReleaseMark
    names: Iterator[str] = field(default_factory=lambda: (f"queue-{n}" for n in range(99)))

    def inputs(self, name: str, stack: str) -> Properties:
        return {
            **self.plane.place,
            "namespace": HOME,
            "name": name,
            **({"stackId": stack} if stack else {}),
        }

    def installed(self, name: str, number: int, status: str = "deployed", **labels: str) -> None:
        """A revision as Helm writes it, with the labels of the one before."""
        release = {"name": name, "version": number, "info": {"status": status}}
        metadata = {
            "name": f"sh.helm.release.v1.{name}.v{number}",
            "labels": {"owner": "helm", "name": name, "version": str(number), "status": status, **labels},
        }
        self.plane.api.create(
            f"{NAMESPACES}/{HOME}/secrets",
            {"metadata": metadata, "type": "helm.sh/release.v1", "data": {"release": encoded(release)}},
        )

    def labels(self, name: str, number: int) -> dict[str, str]:
        found = self.plane.api.get(f"{NAMESPACES}/{HOME}/secrets/sh.helm.release.v1.{name}.v{number}")
        labels: dict[str, str] = found["metadata"]["labels"]
        return labels

    def secrets(self) -> dict[str, Any]:
        return {each["metadata"]["name"]: each for each in self.plane.api.list(f"{NAMESPACES}/{HOME}/secrets")}


@pytest.fixture
async def releases(plane: Plane) -> AsyncIterator[Releases]:
    with suppress(Refused):
        plane.api.create(NAMESPACES, {"metadata": {"name": HOME}})
    connections = Connections()
    yield Releases(plane, ReleasePreparation(connections), ReleaseMark(connections))
    for name in [each["metadata"]["name"] for each in plane.api.list(f"{NAMESPACES}/{HOME}/secrets")]:
        plane.api.delete(f"{NAMESPACES}/{HOME}/secrets/{name}")
    await connections.close()


@pytest.mark.parametrize("first", [ONE, TWO])
async def test_the_second_stack_with_an_add_on_is_refused_and_its_destroy_leaves_the_first_ones(
    releases: Releases, first: str
) -> None:
    second = TWO if first == ONE else ONE
    theirs, ours = releases.inputs("shared", first), releases.inputs("shared", second)
    _, outputs = await releases.ground.create(operation(), theirs)
    releases.installed("shared", 1)
    await releases.mark.create(operation(), theirs)
    assert releases.labels("shared", 1).items() >= {"kumulus.io/recorded": "true", "kumulus.io/stack-id": first}.items()
    # Twelve upgrades later Helm has the last ten revisions, none of which either stack has ever seen.
    labels = {"kumulus.io/recorded": "true", "kumulus.io/stack-id": first}
    for number in range(4, 14):
        releases.installed("shared", number, "deployed" if number == 13 else "superseded", **labels)
    releases.plane.api.delete(f"{NAMESPACES}/{HOME}/secrets/sh.helm.release.v1.shared.v1")
    before = releases.secrets()
    for preview in (True, False):
        with pytest.raises(ProviderError, match=r"queues/shared is there already \(revision 13, deployed\) "):
            await releases.ground.create(operation(preview=preview), ours)
        with pytest.raises(ProviderError, match=rf"belongs to another stack \(identity {first[:8]}\)"):
            await releases.ground.update(operation(preview=preview), "id", {**ours, "repairs": 0, "foreign": ""}, ours)
    with pytest.raises(ProviderError, match="is another stack's"):
        await releases.mark.create(operation(), ours)
    said = Said()
    await releases.ground.delete(operation(said), "queues/shared", {**ours, "repairs": 0, "foreign": ""})
    assert any("it is left alone" in message for message in said.messages)
    assert releases.secrets() == before
    # The first goes on as before.
    assert await releases.ground.compare(outputs, theirs) == []


async def test_a_release_that_was_installed_by_hand_is_refused_with_the_way_to_take_it_over(releases: Releases) -> None:
    releases.installed("theirs", 1, "failed")
    inputs, said = releases.inputs("theirs", ONE), ""
    for preview in (True, False):
        with pytest.raises(ProviderError, match="was installed by somebody else; nothing was changed") as told:
            await releases.ground.create(operation(preview=preview), inputs)
        said = str(told.value)
    command = said.split("take it over: ")[1].split(",")[0]
    assert f"kumulus.io/stack-id={ONE}" in said
    assert command.startswith("kubectl -n queues label secret -l owner=helm")
    path = f"{NAMESPACES}/{HOME}/secrets/sh.helm.release.v1.theirs.v1"
    releases.plane.api.merge(path, {"metadata": {"labels": {"kumulus.io/stack-id": ONE}}})
    await releases.ground.create(operation(), inputs)


async def test_a_release_of_a_state_without_an_identity_is_marked_by_its_next_update_and_not_upgraded(
    releases: Releases,
) -> None:
    formerly, inputs = releases.inputs("older", ""), releases.inputs("older", ONE)
    _, outputs = await releases.ground.create(operation(), formerly)
    releases.installed("older", 1, **{"kumulus.io/recorded": "true"})
    with pytest.raises(ProviderError, match="is a stack's that has no identity"):
        await releases.ground.create(operation(preview=True), releases.inputs("older", TWO))
    updated = await releases.ground.update(operation(), "id", outputs, inputs)
    # The release's description follows from this, and a description that changes is an upgrade.
    assert updated["repairs"] == outputs["repairs"]
    assert await releases.mark.compare(formerly, inputs) != []
    await releases.mark.update(operation(), "id", formerly, inputs)
    assert releases.labels("older", 1)["kumulus.io/stack-id"] == ONE
    assert await releases.mark.compare(inputs, inputs) == []
    with pytest.raises(ProviderError, match="belongs to another stack"):
        await releases.ground.update(operation(preview=True), "id", outputs, releases.inputs("older", TWO))


async def test_a_release_that_has_left_the_state_is_taken_up_where_it_stands(releases: Releases) -> None:
    """As after a destroy that was refused on another machine: of the release the engine has forgotten all."""
    inputs = releases.inputs("left", ONE)
    _, first = await releases.ground.create(operation(), inputs)
    releases.installed("left", 1)
    await releases.mark.create(operation(), inputs)
    previewed, said = Said(), Said()
    await releases.ground.create(operation(previewed, preview=True), inputs)
    assert releases.labels("left", 1)["status"] == "deployed"
    assert previewed.messages == ["release queues/left is this stack's and has left its state; it is taken up again"]
    _, again = await releases.ground.create(operation(said), inputs)
    assert said.messages == ["release queues/left is this stack's and has left its state; it was taken up again"]
    # `helm install --replace` goes on from a failed revision, and adopts what is there.
    assert releases.labels("left", 1)["status"] == "failed"
    assert again["repairs"] == first["repairs"] + 1
