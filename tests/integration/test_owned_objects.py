"""Objects of a stack's own on a real API server, which knows what it has been given and by whom."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from kumulus.kube import objects
from kumulus.nodes.errors import ProviderError
from kumulus.provider.connections import Connections
from kumulus.provider.resources.base import Properties
from kumulus.provider.resources.kubernetes_object import TOKEN, KubernetesObjectResource
from tests.integration.conftest import Plane, operation
from tests.support.api import Object

pytestmark = pytest.mark.integration
ONE, TWO = "1" * 32, "2" * 32
QUOTAS = "/api/v1/namespaces/default/resourcequotas"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings"


def manifest(api_version: str, kind: str, name: str = "owned", **content: Any) -> Object:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}


def quota(**hard: str) -> Object:
    return manifest("v1", "ResourceQuota", spec={"hard": hard})


def binding(role: str) -> Object:
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    subjects = [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}]
    return manifest("rbac.authorization.k8s.io/v1", "RoleBinding", roleRef=reference, subjects=subjects)


class Stack:
    """A stack with one object on a control plane."""

    def __init__(self, plane: Plane, connections: Connections, identity: str) -> None:
        self.resource = KubernetesObjectResource(connections)
        self.place = {**plane.place, "clusterName": "dev", "stackId": identity}

    def inputs(self, of: Object) -> Properties:
        return {**self.place, "manifest": of}

    async def made(self, of: Object) -> Properties:
        return (await self.resource.create(operation(), self.inputs(of)))[1]

    async def changed(self, outputs: Properties, to: Object) -> Properties:
        return await self.resource.update(operation(), "id", outputs, self.inputs(to))

    async def drift(self, outputs: Properties) -> Any:
        found = await self.resource.read(operation(), "id", outputs, self.inputs(outputs["manifest"]))
        return found.outputs.get("drift", {}) if found else None


@pytest.fixture
async def connections(plane: Plane) -> AsyncIterator[Connections]:
    made = Connections()
    yield made
    await made.close()
    for path in (QUOTAS, BINDINGS):
        plane.api.delete(path)


async def test_what_the_server_writes_otherwise_or_adds_is_no_drift_and_a_change_by_hand_is(
    plane: Plane, connections: Connections
) -> None:
    stack = Stack(plane, connections, ONE)
    # The server writes 2 and 1Gi.
    outputs = await stack.made(quota(**{"requests.cpu": "2000m", "requests.memory": "1024Mi", "pods": "5"}))
    assert plane.api.get(f"{QUOTAS}/owned")["spec"]["hard"]["requests.cpu"] == "2"
    assert await stack.drift(outputs) == {}
    plane.api.merge(f"{QUOTAS}/owned", {"metadata": {"labels": {"a": "b"}}, "spec": {"hard": {"services": "1"}}})
    assert await stack.drift(outputs) == {}
    plane.api.merge(f"{QUOTAS}/owned", {"spec": {"hard": {"pods": "6", "requests.cpu": None}}})
    assert await stack.drift(outputs) == {
        "spec.hard.pods": '"6" instead of "5"',
        'spec.hard["requests.cpu"]': 'missing instead of "2"',
    }
    outputs = await stack.changed(outputs, quota(pods="7"))
    # What was declared has gone with its declaration; what others have stays.
    assert plane.api.get(f"{QUOTAS}/owned")["spec"]["hard"] == {"pods": "7", "services": "1"}
    assert await stack.drift(outputs) == {}
    await stack.resource.delete(operation(), "id", outputs)
    assert await stack.drift(outputs) is None


async def test_a_binding_of_another_role_is_made_again(plane: Plane, connections: Connections) -> None:
    stack = Stack(plane, connections, ONE)
    outputs = await stack.made(binding("edit"))
    outputs = await stack.changed(outputs, binding("view"))
    assert plane.api.get(f"{BINDINGS}/owned")["roleRef"]["name"] == "view"
    assert await stack.drift(outputs) == {}


async def test_a_change_in_a_namespace_that_somebody_has_deleted_is_told_what_brings_it_back(
    plane: Plane, connections: Connections
) -> None:
    stack, metadata = Stack(plane, connections, ONE), {"name": "owned", "namespace": "gone"}
    with pytest.raises(
        ProviderError, match=r"^ResourceQuota owned in gone: .*not found; make it, .*up --refresh` does$"
    ):
        await stack.changed(stack.inputs(quota(pods="5")), {**quota(pods="6"), "metadata": metadata})


@pytest.mark.parametrize("first", [ONE, TWO])
async def test_of_two_stacks_with_an_object_of_one_name_the_second_is_refused_and_removes_nothing(
    plane: Plane, connections: Connections, first: str
) -> None:
    one, two = (Stack(plane, connections, each) for each in (first, TWO if first == ONE else ONE))
    outputs = await one.made(quota(pods="5"))
    for preview in (True, False):
        with pytest.raises(ProviderError, match=r"ResourceQuota owned in default is there already and belongs to the"):
            await two.resource.create(operation(preview=preview), two.inputs(quota(pods="6")))
    await two.resource.delete(operation(), "id", two.inputs(quota(pods="5")))
    # A stack that is given its identity anew keeps what it has.
    again = await two.resource.update(operation(), "id", outputs, two.inputs(quota(pods="5")))
    assert await two.drift(again) == {}
    assert await one.drift(outputs) is None
    assert plane.api.get(f"{QUOTAS}/owned")["spec"] == {"hard": {"pods": "5"}}


async def test_of_two_that_are_made_at_the_same_moment_the_server_refuses_the_second(
    plane: Plane, connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have looked and found nothing."""
    one, two = Stack(plane, connections, ONE), Stack(plane, connections, TWO)
    outputs = await one.made(quota(pods="5"))
    looks = iter([None])
    find = objects.find

    async def late(client: Any, path: str, patience: float | None = None) -> Any:
        return next(looks, await find(client, path, patience)) if path.endswith("/owned") else await find(client, path)

    monkeypatch.setattr(objects, "find", late)
    with pytest.raises(ProviderError, match="belongs to the stack"):
        await two.made(quota(pods="6"))
    assert await one.drift(outputs) == {}


async def test_a_secret_gets_its_token(plane: Plane, connections: Connections) -> None:
    stack, path = Stack(plane, connections, ONE), "/api/v1/namespaces/default/secrets/owned"
    of = manifest("v1", "Secret", type=TOKEN)
    of["metadata"]["annotations"] = {"kubernetes.io/service-account.name": "default"}
    outputs = await stack.made(of)
    assert outputs["data"] == plane.api.get(path)["data"]
    assert {"token", "ca.crt"} <= set(outputs["data"])
    assert await stack.drift(outputs) == {}
    await stack.resource.delete(operation(), "id", outputs)
