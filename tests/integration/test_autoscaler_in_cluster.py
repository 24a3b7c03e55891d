"""An autoscaler as a deployment: whose it is, what is left of one that does not come up, and of one that was cut off.

Nothing runs containers here, so it never works; that it does is for the tests of the runtimes kind and existing.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kumulus.extras.scaling import deploying
from kumulus.extras.scaling.resource import AutoscalerResource
from kumulus.model.identity import drawn
from kumulus.nodes.errors import PartialFailure, ProviderError
from kumulus.provider.connections import Connections
from kumulus.stackfile.load import load
from tests.integration.conftest import NODES, Plane, operation
from tests.support.api import Object
from tests.support.said import Said
from tests.support.tools import require

pytestmark = pytest.mark.integration
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SYSTEM = "/api/v1/namespaces/kube-system"
DEPLOYMENTS = "/apis/apps/v1/namespaces/kube-system/deployments"
CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"


@pytest.fixture
async def resource(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[AutoscalerResource]:
    require("karpenter")
    monkeypatch.setattr(deploying, "_PATIENCE", 3.0)
    monkeypatch.setattr(deploying, "_EMPTYING", 10.0)
    connections = Connections()
    yield AutoscalerResource(connections)
    await connections.close()


def inputs(plane: Plane, owner: str) -> dict[str, Any]:
    section = {"name": "karpenter", "zones": ["us-central1-a"], "instanceTypes": ["e2-standard-4"]}
    asked = load({"cluster": {"autoscaler": section}}, "dev", Path()).section_options["autoscaler"]
    assert asked is not None
    return {
        **plane.place,
        "stackId": owner,
        "autoscaler": {**asked, "image": "karpenter:x", "stages": False},
    }


def objects(plane: Plane) -> dict[str, Object]:
    """Everything that Karpenter has in the cluster, by its place."""
    places = (ROLES, BINDINGS, DEFINITIONS, f"{SYSTEM}/configmaps", f"{SYSTEM}/serviceaccounts", DEPLOYMENTS)
    return {
        f"{place}/{each['metadata']['name']}": each
        for place in places
        for each in plane.api.list(place)
        if "karpenter" in each["metadata"]["name"]
    }


async def made(resource: AutoscalerResource, given: dict[str, Any]) -> PartialFailure:
    """Make it; it cannot come up here."""
    with pytest.raises(PartialFailure) as caught:
        await resource.create(operation(), given)
    return caught.value


async def test_one_that_does_not_come_up_says_why_is_on_record_and_goes_whole(
    plane: Plane, resource: AutoscalerResource
) -> None:
    given = inputs(plane, drawn())
    failure = await made(resource, given)
    assert "kube-system/karpenter: it does not work after 3 s" in failure.message
    assert failure.outputs["drift"] == {"deployment": "was not seen to work"}
    assert len(objects(plane)) > 6
    # A refresh sees that all of it is there.
    found = await resource.read(operation(), failure.resource_id, failure.outputs, given)
    assert found is not None
    assert "drift" not in found.outputs
    await resource.delete(operation(), failure.resource_id, failure.outputs)
    assert objects(plane) == {}
    assert await resource.read(operation(), failure.resource_id, failure.outputs, given) is None
    # Once more is no error.
    await resource.delete(operation(), failure.resource_id, failure.outputs)


async def test_another_stacks_is_refused_in_the_preview_and_left_as_it_is(
    plane: Plane, resource: AutoscalerResource
) -> None:
    first = inputs(plane, drawn())
    failure = await made(resource, first)
    before = {place: each["metadata"]["resourceVersion"] for place, each in objects(plane).items()}
    second = inputs(plane, drawn())
    for preview in (True, False):
        with pytest.raises(ProviderError, match=r"autoscaler karpenter: .* belongs to another stack"):
            await resource.create(operation(preview=preview), second)
    # It is nothing of the second's, whatever its state says.
    await resource.delete(operation(), "test/autoscaler", second)
    found = {place: each for place, each in objects(plane).items() if not place.startswith(DEPLOYMENTS)}
    assert {place: each["metadata"]["resourceVersion"] for place, each in found.items()} == {
        place: version for place, version in before.items() if not place.startswith(DEPLOYMENTS)
    }
    # The status of a deployment whose pod has no node is the controller manager's to write.
    assert objects(plane).keys() == before.keys()
    await resource.delete(operation(), failure.resource_id, failure.outputs)
    assert objects(plane) == {}


async def test_one_of_somebody_elses_hand_is_refused_by_name(plane: Plane, resource: AutoscalerResource) -> None:
    plane.api.create(ROLES, {"metadata": {"name": "kumulus-karpenter"}, "rules": []})
    try:
        with pytest.raises(ProviderError, match="ClusterRole kumulus-karpenter was made by somebody else"):
            await resource.create(operation(), inputs(plane, drawn()))
        assert objects(plane).keys() == {f"{ROLES}/kumulus-karpenter"}
    finally:
        plane.api.delete(f"{ROLES}/kumulus-karpenter")


async def test_one_that_was_cut_off_is_finished_by_the_next(plane: Plane, resource: AutoscalerResource) -> None:
    given = inputs(plane, drawn())
    making = asyncio.create_task(resource.create(operation(), given))
    async with asyncio.timeout(30):
        while len(objects(plane)) < 3:  # noqa: ASYNC110 - of the cluster nobody says so
            await asyncio.sleep(0.01)
    making.cancel()
    await asyncio.gather(making, return_exceptions=True)
    assert making.cancelled()
    begun = objects(plane)
    assert f"{DEPLOYMENTS}/karpenter" not in begun
    failure = await made(resource, given)
    assert f"{DEPLOYMENTS}/karpenter" in objects(plane)
    kept = {place: each["metadata"]["uid"] for place, each in begun.items()}
    assert kept.items() <= {place: each["metadata"]["uid"] for place, each in objects(plane).items()}.items()
    await resource.delete(operation(), failure.resource_id, failure.outputs)
    assert objects(plane) == {}


async def test_what_nobody_finishes_is_taken_away_with_it(plane: Plane, resource: AutoscalerResource) -> None:
    """A claim and its node, whose finalizers only a Karpenter takes away that does not run."""
    given, said = inputs(plane, drawn()), Said()
    failure = await made(resource, given)
    held = {"finalizers": ["karpenter.sh/termination"]}
    claim = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": "held", **held},
        "spec": {
            "requirements": [],
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
        },
    }
    plane.api.create(CLAIMS, claim)
    plane.api.create(NODES, {"metadata": {"name": "held", "labels": {"karpenter.sh/nodepool": "default"}, **held}})
    await resource.delete(operation(said), failure.resource_id, failure.outputs)
    assert "1 of its nodes are still there" in said.statuses
    assert objects(plane) == {}
    assert "held" not in {each["metadata"]["name"] for each in plane.api.list(NODES)}
