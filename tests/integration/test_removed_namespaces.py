"""Namespaces that are removed from a real control plane: gone with everything in them when the call returns."""

import pytest

from kumulus.kube import Client, namespaces, objects
from kumulus.kube.discovery import IN_EVERY_NAMESPACE, namespaced
from tests.integration.conftest import Plane, pod

pytestmark = pytest.mark.integration
SPACE = f"{namespaces.NAMESPACES}/passing"
QUOTA = {"metadata": {"name": "quota"}, "spec": {"hard": {"pods": "100"}}}


async def test_one_with_objects_in_it_is_gone_at_once_and_nothing_is_in_the_next_of_its_name(
    plane: Plane, client: Client
) -> None:
    plane.api.create(namespaces.NAMESPACES, {"metadata": {"name": "passing"}})
    plane.api.until(f"{SPACE}/serviceaccounts", lambda found: "default" in found)
    plane.api.create(f"{SPACE}/pods", pod("waits", "nowhere"))
    plane.api.create(f"{SPACE}/resourcequotas", QUOTA)
    plane.api.until(f"{SPACE}/events", lambda found: any("waits" in name for name in found))
    assert await namespaces.remove(client, SPACE)
    # The controller manager has not looked at it yet.
    assert await objects.find(client, SPACE) is None
    plane.api.create(namespaces.NAMESPACES, {"metadata": {"name": "passing"}})
    left = {
        (kind.kind, name)
        for kind in await namespaced(client)
        for name in await objects.names(client, kind.collection("passing"))
    }
    assert left <= IN_EVERY_NAMESPACE
    assert await namespaces.remove(client, SPACE)
    assert not await namespaces.remove(client, SPACE)


async def test_one_whose_objects_have_finalizers_goes_when_these_are_gone(plane: Plane, client: Client) -> None:
    plane.api.create(namespaces.NAMESPACES, {"metadata": {"name": "passing"}})
    held = {"metadata": {"name": "held", "finalizers": ["example.com/hold"]}}
    plane.api.create(f"{SPACE}/configmaps", held)
    assert await namespaces.remove(client, SPACE)
    assert (await client.get(SPACE))["spec"]["finalizers"] == ["kubernetes"]
    plane.api.merge(f"{SPACE}/configmaps/held", {"metadata": {"finalizers": None}})
    plane.api.until(namespaces.NAMESPACES, lambda found: "passing" not in found)
