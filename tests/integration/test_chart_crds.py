"""CRDs that are in a cluster already: used where they are the chart's own, refused otherwise, and never changed."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus.helm.charts import Chart
from kumulus.helm.crds import MADE_BY
from kumulus.nodes.errors import ProviderError
from kumulus.provider.connections import Connections
from kumulus.provider.resources.base import Properties
from kumulus.provider.resources.chart_crds import ChartCrds
from tests.integration.conftest import Plane, operation
from tests.support.api import Object
from tests.support.kinds import CRDS, crd, until_gone, without
from tests.support.said import Said

pytestmark = pytest.mark.integration
NAMES = ("ones.crds.kumulus.test", "twos.crds.kumulus.test")


@pytest.fixture
def bare(plane: Plane) -> Iterator[Plane]:
    """A cluster without these CRDs, before and after."""
    with without(plane.api, NAMES):
        yield plane


@pytest.fixture
async def resource() -> AsyncIterator[ChartCrds]:
    connections = Connections()
    yield ChartCrds(connections)
    await connections.close()


def asked(plane: Plane, resource: ChartCrds, *fields: str, cluster: str = "test", addon: str = "queue") -> Properties:
    """Inputs as the check of a chart gives them whose two CRDs have some fields."""
    chart = Chart(Path("/nowhere"), "-".join(fields), {name: yaml.safe_dump(crd(name, *fields)) for name in NAMES})
    inputs: Properties = {
        **plane.place,
        "clusterName": cluster,
        "name": addon,
        "chart": "oci://e.x/queue",
        "version": chart.version,
        "crds": chart.digests(),
    }
    resource._charts[(inputs["chart"], "", chart.version)] = chart
    return inputs


def there(plane: Plane) -> dict[str, Object]:
    """The CRDs, without what the API server writes into them by itself."""
    return {name: _made(plane.api.get(f"{CRDS}/{name}")) for name in NAMES}


def _made(crd: Object) -> Object:
    metadata = {key: value for key, value in crd["metadata"].items() if key != "resourceVersion"}
    metadata["managedFields"] = [each for each in metadata["managedFields"] if each.get("subresource") != "status"]
    return {"metadata": metadata, "spec": crd["spec"]}


async def test_another_crd_of_that_name_is_refused_in_the_preview_and_left_as_it_is(
    bare: Plane, resource: ChartCrds
) -> None:
    theirs: dict[str, Any] = {"labels": {"app.kubernetes.io/version": "9.9.9"}}
    helm = {"meta.helm.sh/release-name": "prom", "meta.helm.sh/release-namespace": "monitoring"}
    bare.api.create(CRDS, crd(NAMES[0], "size", "colour", **theirs))
    bare.api.create(CRDS, crd(NAMES[1], "size", "colour", annotations=helm))
    before = there(bare)
    # Theirs is the newer one: ours would take a field from it.
    inputs = asked(bare, resource, "size")
    for preview in (True, False):
        with pytest.raises(ProviderError) as caught:
            await resource.create(operation(preview=preview), inputs)
        one, two = str(caught.value).splitlines()
        assert f"the CRD {NAMES[0]} is there already and differs from the chart's (made with " in one
        assert "version 9.9.9, since 20" in one
        assert "(made by the Helm release monitoring/prom, since 20" in two
        for line in (one, two):
            assert "crds: Skip" in line
            assert f"{MADE_BY}=kumulus-crds-test-queue" in line
        with pytest.raises(ProviderError, match="is there already"):
            await resource.update(operation(preview=preview), "id", inputs, inputs)
    await resource.delete(operation(), "id", inputs)
    assert there(bare) == before


async def test_the_very_same_crd_is_used_and_left_as_it_is(bare: Plane, resource: ChartCrds) -> None:
    for name in NAMES:
        bare.api.create(CRDS, crd(name, "size"))
    before = there(bare)
    inputs = asked(bare, resource, "size")
    await resource.create(operation(preview=True), inputs)
    _, outputs = await resource.create(operation(), inputs)
    found = await resource.read(operation(), "id", outputs, inputs)
    assert found is not None
    assert "drift" not in found.outputs
    # The chart's next version has another: that is theirs to decide.
    for preview in (True, False):
        with pytest.raises(ProviderError, match="is there already"):
            await resource.update(operation(preview=preview), "id", outputs, asked(bare, resource, "size", "colour"))
    await resource.delete(operation(), "id", outputs)
    after = there(bare)
    assert after == before


async def test_one_that_is_handed_over_is_the_stacks(bare: Plane, resource: ChartCrds) -> None:
    for name in NAMES:
        bare.api.create(CRDS, crd(name, "size", annotations={MADE_BY: "kumulus-crds-test-queue"}))
    inputs = asked(bare, resource, "size", "colour")
    await resource.create(operation(), inputs)
    schema = there(bare)[NAMES[0]]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert set(schema["properties"]["spec"]["properties"]) == {"size", "colour"}
    await resource.delete(operation(), "id", inputs)
    until_gone(bare.api, NAMES)


async def test_ours_are_made_upgraded_and_removed_and_another_stacks_are_not(bare: Plane, resource: ChartCrds) -> None:
    first = asked(bare, resource, "size")
    _, outputs = await resource.create(operation(), first)
    second = asked(bare, resource, "size", "colour")
    outputs = await resource.update(operation(), "id", outputs, second)
    # Another add-on of the same stack, and another stack with the very same CRDs, share them.
    await resource.create(operation(), asked(bare, resource, "size", "colour", addon="other"))
    elsewhere = asked(bare, resource, "size", "colour", cluster="another")
    await resource.create(operation(), elsewhere)
    before = there(bare)
    older = asked(bare, resource, "size", cluster="another")
    for preview in (True, False):
        with pytest.raises(ProviderError, match=r"made by test-queue of another stack.* --overwrite"):
            await resource.update(operation(preview=preview), "id", elsewhere, older)
    assert there(bare) == before
    said = Said()
    await resource.delete(operation(said), "id", outputs)
    assert any("uses it too" in each for each in said.messages)
    assert there(bare).keys() == before.keys()


@pytest.mark.parametrize("order", [("queue", "other"), ("other", "queue")])
@pytest.mark.parametrize("identities", [{}, {"queue": "1" * 32, "other": "2" * 32}])
async def test_those_that_two_add_ons_use_go_with_the_last_of_them(
    bare: Plane, resource: ChartCrds, order: tuple[str, str], identities: dict[str, str]
) -> None:
    """Of one stack, or of two; the one called `queue` makes them."""
    made = {}
    for addon in ("queue", "other"):
        inputs = {**asked(bare, resource, "size", addon=addon), "stackId": identities.get(addon, "1" * 32)}
        _, made[addon] = await resource.create(operation(), inputs)
    await resource.delete(operation(), "id", made[order[0]])
    assert there(bare).keys() == set(NAMES)
    for found in there(bare).values():
        managers = {each["manager"] for each in found["metadata"]["managedFields"] if each["operation"] == "Apply"}
        assert managers == {f"kumulus-crds-test-{order[1]}"}
    await resource.delete(operation(), "id", made[order[1]])
    until_gone(bare.api, NAMES)


async def test_those_of_two_add_ons_that_go_at_once_go_too(bare: Plane, resource: ChartCrds) -> None:
    made = []
    for addon in ("queue", "other"):
        _, outputs = await resource.create(operation(), asked(bare, resource, "size", addon=addon))
        made.append(outputs)
    await asyncio.gather(*(resource.delete(operation(), "id", outputs) for outputs in made))
    until_gone(bare.api, NAMES)


async def test_one_that_a_killed_run_had_just_made_is_ours(bare: Plane, resource: ChartCrds) -> None:
    inputs = asked(bare, resource, "size")
    await resource.create(operation(), inputs)
    for name in NAMES:
        bare.api.merge(f"{CRDS}/{name}", {"metadata": {"annotations": {MADE_BY: None, "kumulus.io/crd-digest": None}}})
    await resource.create(operation(), asked(bare, resource, "size", "colour"))
    assert there(bare)[NAMES[0]]["metadata"]["annotations"][MADE_BY] == "kumulus-crds-test-queue"


def identity_of(plane: Plane) -> str | None:
    labels: dict[str, str] = there(plane)[NAMES[0]]["metadata"].get("labels") or {}
    return labels.get("kumulus.io/stack-id")


async def test_one_without_an_identity_is_marked_by_whoever_made_it(bare: Plane, resource: ChartCrds) -> None:
    first, second = (asked(bare, resource, "size", cluster=cluster) for cluster in ("test", "others"))
    _, outputs = await resource.create(operation(), first)
    _, theirs = await resource.create(operation(), {**second, "stackId": "2" * 32})
    assert identity_of(bare) is None
    outputs = await resource.update(operation(), "id", outputs, {**first, "stackId": "1" * 32})
    assert identity_of(bare) == "1" * 32
    # A stack that is given its identity anew is recorded with the one from before.
    newer = {**asked(bare, resource, "size", "colour"), "stackId": "3" * 32}
    for preview in (True, False):
        assert (await resource.update(operation(preview=preview), "id", outputs, newer))["crds"] == newer["crds"]
    assert identity_of(bare) == "3" * 32
    await resource.delete(operation(), "id", newer)
    # The other stack uses it, and marks it at its next update.
    assert identity_of(bare) is None
    await resource.update(operation(), "id", theirs, {**second, "stackId": "2" * 32})
    assert identity_of(bare) == "2" * 32


async def test_of_two_stacks_of_the_same_names_the_second_changes_nothing_of_the_first_ones(
    bare: Plane, resource: ChartCrds
) -> None:
    first, second = ({**asked(bare, resource, "size"), "stackId": digit * 32} for digit in "12")
    _, outputs = await resource.create(operation(), first)
    before = there(bare)
    assert before[NAMES[0]]["metadata"]["labels"] == {"kumulus.io/stack-id": "1" * 32}
    # The very same are used, and left as they are.
    _, theirs = await resource.create(operation(), second)
    assert there(bare) == before
    newer = {**asked(bare, resource, "size", "colour"), "stackId": "2" * 32}
    for preview in (True, False):
        with pytest.raises(ProviderError, match=r"of another stack.*; kubectl label crd .* kumulus.io/stack-id-"):
            await resource.update(operation(preview=preview), "id", theirs, newer)
    await resource.delete(operation(), "id", theirs)
    assert there(bare) == before
    outputs = await resource.update(
        operation(), "id", outputs, {**asked(bare, resource, "size", "colour"), "stackId": "1" * 32}
    )
    await resource.delete(operation(), "id", outputs)
    until_gone(bare.api, NAMES)
