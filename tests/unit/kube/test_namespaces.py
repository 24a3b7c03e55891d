"""Namespaces that are removed: emptied and finalized by the client where one API server knows of the deletion."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from kumulus.kube import Client, Connection, namespaces
from tests.support.apiserver import listening

SPACE = "/api/v1/namespaces/team"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
VERBS = ["create", "delete", "list"]


def kinds(*plurals: str) -> dict[str, Any]:
    return {"resources": [{"name": each, "kind": each, "namespaced": True, "verbs": VERBS} for each in plurals]}


@dataclass
class Space:
    """An API server with one namespace, in which there are pods; one of its kinds has just been removed."""

    servers: int = 1
    """How many API servers the cluster has."""
    objects: dict[str, int] = field(default_factory=lambda: {f"{SPACE}/pods": 3, f"{SPACE}/events": 0})
    """How many objects there are, by collection."""
    stuck: set[str] = field(default_factory=set)
    """Collections whose objects have a finalizer that nobody removes."""
    late: str = ""
    """Where there is one more object once pods are deleted: by then, the first look at all collections is over."""
    forbidden: str = "none"
    """What is refused."""
    metadata: dict[str, Any] = field(default_factory=lambda: {"name": "team", "resourceVersion": "7"})
    finalizers: list[str] = field(default_factory=lambda: ["kubernetes"])
    asked: list[str] = field(default_factory=list)
    """The requests that change something."""
    finalized: dict[str, Any] = field(default_factory=dict)
    """The namespace as it was finalized."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        verb, path = request.method, request.path
        if verb != "GET":
            self.asked.append(f"{verb} {path}")
        if path == f"{SPACE}/widgets":
            return web.json_response({"kind": "Status", "code": 404, "reason": "NotFound"}, status=404)
        if path == self.forbidden:
            return web.json_response({"kind": "Status", "code": 403, "reason": "Forbidden"}, status=403)
        if path == f"{SPACE}/finalize":
            self.finalized = json.loads(await request.read())
        elif verb == "DELETE" and path == SPACE:
            self.metadata["deletionTimestamp"] = "2026-11-26T00:00:00Z"
        elif verb == "DELETE" and path not in self.stuck:
            self.objects[path] = 0
            if path == f"{SPACE}/pods" and self.late:
                self.objects[self.late], self.late = 1, ""
        return web.json_response(self.answer(path))

    def answer(self, path: str) -> dict[str, Any]:
        if path == LEASES:
            return {"metadata": {}, "items": [{"metadata": {"name": str(each)}} for each in range(self.servers)]}
        if path in self.objects:
            items = [{"metadata": {"name": str(each)}} for each in range(self.objects[path])]
            return {"metadata": {}, "items": items}
        known = {"/apis": {"groups": []}, "/api/v1": kinds("pods", "events", "widgets")}
        return known.get(path, {"metadata": self.metadata, "spec": {"finalizers": self.finalizers}})


@pytest.fixture
def space() -> Space:
    return Space()


@pytest.fixture
async def client(space: Space) -> AsyncIterator[Client]:
    async with listening(space.handle) as address, Client(Connection(address, "test", {}), patience=1.0) as made:
        yield made


async def test_the_only_api_server_s_namespace_is_emptied_and_finalized_at_once(space: Space, client: Client) -> None:
    assert await namespaces.remove(client, SPACE, {"preconditions": {"uid": "u"}})
    assert space.asked[0] == f"DELETE {SPACE}"
    assert space.asked[1:-1] == [f"DELETE {SPACE}/pods"]
    assert space.asked[-1] == f"PUT {SPACE}/finalize"
    assert space.finalized["spec"] == {"finalizers": []}
    assert space.finalized["metadata"]["resourceVersion"] == "7", "no other namespace of that name"


@pytest.mark.parametrize("kind", ["pods", "events"])
async def test_what_was_being_created_meanwhile_is_deleted_before_the_end(
    space: Space, client: Client, kind: str
) -> None:
    space.late = f"{SPACE}/{kind}"
    assert await namespaces.remove(client, SPACE)
    assert space.asked.count(f"DELETE {SPACE}/pods") == (2 if kind == "pods" else 1)
    assert space.objects == {f"{SPACE}/pods": 0, f"{SPACE}/events": 0}
    assert space.finalized


async def test_finalizers_of_others_stay(space: Space, client: Client) -> None:
    space.finalizers = ["kubernetes", "example.com/theirs"]
    assert await namespaces.remove(client, SPACE)
    assert space.finalized["spec"] == {"finalizers": ["example.com/theirs"]}


@pytest.mark.parametrize("servers", [0, 2])
async def test_unless_there_is_exactly_one_api_server_it_is_left_to_the_controller(
    space: Space, client: Client, servers: int
) -> None:
    space.servers = servers
    assert await namespaces.remove(client, SPACE)
    assert space.asked == [f"DELETE {SPACE}"]


async def test_one_that_was_being_deleted_before_is_left_to_the_controller(space: Space, client: Client) -> None:
    space.metadata["deletionTimestamp"] = "2026-11-25T00:00:00Z"
    assert await namespaces.remove(client, SPACE)
    assert space.asked == [f"DELETE {SPACE}"]


@pytest.mark.parametrize("forbidden", [LEASES, "/apis", f"{SPACE}/pods", f"{SPACE}/finalize"])
async def test_without_a_right_it_is_left_to_the_controller(space: Space, client: Client, forbidden: str) -> None:
    space.forbidden = forbidden
    assert await namespaces.remove(client, SPACE)
    assert space.asked[0] == f"DELETE {SPACE}"
    assert not space.finalized


async def test_one_whose_objects_stay_is_left_to_the_controller_in_time(
    space: Space, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(namespaces, "_HEAD_START_S", 0.5)
    space.stuck = {f"{SPACE}/pods"}
    begun = asyncio.get_running_loop().time()
    assert await namespaces.remove(client, SPACE)
    assert asyncio.get_running_loop().time() - begun < 3
    assert not space.finalized
    assert space.objects == {f"{SPACE}/pods": 3, f"{SPACE}/events": 0}
