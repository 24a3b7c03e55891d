"""Single objects and bound pods against a small HTTP server: what is there or gone already is as good as done."""

import json
from collections.abc import AsyncIterator

import pytest

from kumulus.kube import ApiError, objects
from kumulus.kube.pods import each_bound
from tests.support.apiserver import Server, ok, serving, status

MAPS = "/api/v1/namespaces/default/configmaps"
BODY = {"metadata": {"name": "a"}, "data": {"x": "1"}}
GONE, THERE = status(404, "NotFound", "gone"), status(409, "AlreadyExists", "there")


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as found:
        yield found


def verbs(server: Server) -> list[str]:
    return [seen.verb for seen in server.seen]


async def test_what_is_gone_is_found_as_nothing_and_removed(server: Server) -> None:
    server.answers = [GONE, GONE, ok({})]
    async with server.client() as client:
        assert await objects.find(client, f"{MAPS}/a") is None
        assert await objects.remove(client, f"{MAPS}/a") is False
        assert await objects.remove(client, f"{MAPS}/a", {"gracePeriodSeconds": 0}) is True
    assert server.seen[-1].body == b'{"gracePeriodSeconds":0}'


@pytest.mark.parametrize("code", [403, 422])
async def test_any_other_refusal_is_an_error(server: Server, code: int) -> None:
    server.answers = [status(code, "No", "no")]
    async with server.client() as client:
        for attempt in (
            objects.find(client, f"{MAPS}/a"),
            objects.remove(client, f"{MAPS}/a"),
            objects.replace(client, MAPS, BODY),
            objects.create_or_merge(client, MAPS, BODY),
            objects.merge_or_create(client, f"{MAPS}/a", BODY, BODY),
        ):
            with pytest.raises(ApiError, match=str(code)):
                await attempt


async def test_an_object_that_is_there_is_replaced_whole_in_the_version_that_was_read(server: Server) -> None:
    server.answers = [THERE, ok({"metadata": {"resourceVersion": "7"}}), ok({})]
    async with server.client() as client:
        await objects.replace(client, MAPS, BODY)
    assert verbs(server) == ["POST", "GET", "PUT"]
    assert json.loads(server.seen[-1].body) == {**BODY, "metadata": {"name": "a", "resourceVersion": "7"}}
    assert BODY["metadata"] == {"name": "a"}


async def test_an_object_that_others_change_meanwhile_is_read_again(server: Server) -> None:
    versions = [ok({"metadata": {"resourceVersion": number}}) for number in ("7", "8")]
    server.answers = [THERE, versions[0], status(409, "Conflict", "changed"), versions[1], ok({})]
    async with server.client() as client:
        await objects.replace(client, MAPS, BODY)
    assert verbs(server) == ["POST", "GET", "PUT", "GET", "PUT"]
    assert json.loads(server.seen[-1].body)["metadata"]["resourceVersion"] == "8"


async def test_an_object_is_merged_or_made_whichever_is_likelier_first(server: Server) -> None:
    server.answers = [THERE, ok({}), GONE, ok({}), GONE, THERE, ok({})]
    async with server.client() as client:
        await objects.create_or_merge(client, MAPS, BODY)
        await objects.merge_or_create(client, f"{MAPS}/a", {"data": {"x": "2"}}, BODY)
        # Somebody else made it between the two.
        await objects.merge_or_create(client, f"{MAPS}/a", BODY, BODY)
    assert verbs(server) == ["POST", "PATCH", "PATCH", "POST", "PATCH", "POST", "PATCH"]


async def test_a_change_that_others_get_in_the_way_of_is_tried_again_but_not_for_ever(server: Server) -> None:
    server.answers = [status(409, "Conflict", "changed")]
    tries = 0

    async def attempt() -> bool:
        nonlocal tries
        tries += 1
        if tries == 3:
            return True
        await objects.find(client, f"{MAPS}/a")
        return False

    async with server.client() as client:
        await objects.persist(attempt, f"{MAPS}/a", "the map a")
        assert tries == 3
        tries = 3
        with pytest.raises(ApiError, match="the map a is changed by others all the time"):
            await objects.persist(attempt, f"{MAPS}/a", "the map a")


@pytest.mark.parametrize(("count", "requests"), [(3, 3), (41, 1)])
async def test_pods_of_few_nodes_are_asked_for_by_node_and_of_many_at_once(
    server: Server, count: int, requests: int
) -> None:
    nodes = [f"n{number}" for number in range(count)]
    listed = [{"metadata": {"name": node}, "spec": {"nodeName": node}} for node in ("n1", "elsewhere")]
    server.answers = [ok({"metadata": {}, "items": listed})]
    found: list[str] = []
    async with server.client() as client:
        await each_bound(client, nodes, lambda pod: found.append(pod["spec"]["nodeName"]), unfinished=True)
    assert set(found) == {"n1"}
    assert len(server.seen) == requests
    assert all("status.phase!=Succeeded" in seen.query["fieldSelector"] for seen in server.seen)


@pytest.mark.parametrize(
    ("version", "kind", "namespace", "path"),
    [
        ("v1", "Namespace", None, "/api/v1/namespaces/a"),
        ("v1", "Secret", "kueue-system", "/api/v1/namespaces/kueue-system/secrets/a"),
        ("batch/v1", "Job", "default", "/apis/batch/v1/namespaces/default/jobs/a"),
        ("a.b/v1", "Ingress", None, "/apis/a.b/v1/ingresses/a"),
        ("a.b/v1", "Topology", None, "/apis/a.b/v1/topologies/a"),
        ("a.b/v1", "Gateway", None, "/apis/a.b/v1/gateways/a"),
        ("karpenter.kwok.sh/v1alpha1", "KWOKNodeClass", None, "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses/a"),
    ],
)
def test_an_object_is_in_the_collection_of_its_kind(version: str, kind: str, namespace: str | None, path: str) -> None:
    metadata = {"name": "a", **({"namespace": namespace} if namespace else {})}
    assert objects.address({"apiVersion": version, "kind": kind, "metadata": metadata}) == path


@pytest.mark.parametrize(("status", "holds"), [("True", True), ("False", False), ("Unknown", False)])
def test_a_condition_holds_if_its_status_is_true(status: str, holds: bool) -> None:
    others = [{"type": "Other", "status": "True"}, {"type": "Available", "status": status}]
    assert objects.holds({"status": {"conditions": others}}, "Available") == holds
    assert not objects.holds({"status": None}, "Available")


async def test_what_is_looked_for_is_looked_for_until_it_comes_or_the_time_is_over() -> None:
    found = iter(range(100))

    async def look() -> int:
        return next(found)

    assert await objects.wait_until(look, lambda number: number == 3, within=10, every=0.001)
    assert next(found) == 4
    assert not await objects.wait_until(look, lambda _: False, within=0.0, every=0.001)
