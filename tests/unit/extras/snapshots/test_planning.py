"""What a restore does with each object, decided beforehand: what is deleted, changed in place, created, left alone."""

from collections.abc import Collection
from typing import Any

import pytest

from kumulus.extras.snapshots.planning import RestorePlan, planned
from kumulus.extras.snapshots.restored import FORBIDDEN, MEANWHILE, OF_CLAIMS, RELEASED
from kumulus.extras.snapshots.restoring import moved
from kumulus.extras.snapshots.scope import UserObjects, contents
from kumulus.kube import ApiError
from tests.support.object_store import Store, storing

Objects = dict[str, dict[str, Any]]
SPACE = "/api/v1/namespaces/shop"
PODS, SECRETS, CLAIMS = "/api/v1/pods", "/api/v1/secrets", "/api/v1/persistentvolumeclaims"
TEAM = "/api/v1/namespaces/team"
VERBS = ["list", "create", "delete"]
RUNS = {
    "phase": "Running",
    "startTime": "2026-11-23T10:00:00Z",
    "conditions": [{"type": "Ready", "lastTransitionTime": "2026-11-23T10:00:02Z"}],
    "initContainerStatuses": [
        {"state": {"terminated": {"startedAt": "2026-11-23T10:00:00Z", "finishedAt": "2026-11-23T10:00:01Z"}}}
    ],
    "containerStatuses": [{"name": "c", "state": {"running": {"startedAt": "2026-11-23T10:00:01Z"}}, "lastState": {}}],
}


def path(kind: str, name: str) -> str:
    return f"{SPACE}/{kind.lower()}s/{name}"


def thing(kind: str, name: str, *owners: str, **fields: Any) -> Objects:
    """An object of a kind; its owners by kind and name, as in `Deployment/web`."""
    of = [{"kind": each.split("/")[0], "name": each.split("/")[1], "uid": f"uid-{each}"} for each in owners]
    metadata = {"name": name, "namespace": "shop", "uid": f"uid-{kind}/{name}", "ownerReferences": of}
    return {path(kind, name): {"apiVersion": "v1", "kind": kind, "metadata": metadata, **fields}}


def plan(
    then: Objects, now: Objects, claimants: Collection[str] = (), only: Collection[str] | None = None
) -> RestorePlan:
    return planned(then, UserObjects(now, (), (), frozenset(claimants)), only)


def web(replicas: int, *pods: str) -> Objects:
    found = thing("Deployment", "web", spec={"replicas": replicas})
    found |= thing("ReplicaSet", "web-1", "Deployment/web", spec={"replicas": replicas})
    for each in pods:
        found |= thing("Pod", each, "ReplicaSet/web-1", spec={"nodeName": "n"}, status={"phase": "Running"})
    return found


def test_workloads_are_replaced_and_what_holds_no_pods_is_changed_in_its_place() -> None:
    then = {**web(1, "a"), **thing("ConfigMap", "settings", data={"a": "1"}), **thing("Secret", "gone", data={})}
    now = {**web(2, "a", "b"), **thing("ConfigMap", "settings", data={"a": "2"}), **thing("Secret", "later", data={})}
    found = plan(then, now)
    workloads = {path("Deployment", "web"), path("ReplicaSet", "web-1"), path("Pod", "a")}
    assert found.replaced == workloads
    assert found.changed == {path("ConfigMap", "settings")}
    assert found.created == {path("Secret", "gone")}
    assert found.removed == {path("Pod", "b"), path("Secret", "later")}
    assert (found.remade, found.left) == ((), {})
    assert found.touched == {*workloads, *found.changed, *found.created, *found.removed}


def test_claims_of_an_earlier_snapshot_are_not_restored() -> None:
    then = {**thing("PersistentVolumeClaim", "data", spec={"a": 1}), **thing("VolumeSnapshot", "data", spec={})}
    assert plan(then, {}).touched == set()


def test_what_would_take_a_claim_along_is_left_alone_with_its_family_and_named() -> None:
    then, now = web(1, "a"), web(2, "a", "b")
    found = plan(then, now, ["uid-Pod/b"])
    assert found.touched == set()
    assert found.left == {OF_CLAIMS: ("shop/web",)}
    assert found.wanted == {}, "nor are its pods' times"
    assert plan(now, now, ["uid-Pod/b"]).left == {}, "there is nothing to be left alone"


def test_a_namespace_with_claims_is_not_deleted_but_what_was_put_into_it_is() -> None:
    metadata = {"name": "shop", "uid": "uid-shop"}
    now = {SPACE: {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}, **thing("Secret", "later", data={})}
    found = plan({}, now, ["uid-shop"])
    assert found.removed == {path("Secret", "later")}
    assert found.left == {OF_CLAIMS: ("shop",)}
    assert plan({}, now).removed == {SPACE, path("Secret", "later")}


def database(replicas: int, *pods: str) -> Objects:
    found = thing("Database", "db", spec={"replicas": replicas})
    for each in pods:
        found |= thing("Pod", each, "Database/db", spec={"nodeName": "n"}, status={"phase": "Running"})
    return found


def test_an_operator_s_object_that_owns_claims_is_changed_in_its_place_and_its_pods_are_the_operator_s() -> None:
    found = plan(database(1, "db-0"), database(2, "db-0", "db-1"), ["uid-Database/db"])
    assert found.changed == {path("Database", "db")}
    assert found.removed == {path("Pod", "db-0"), path("Pod", "db-1")}
    assert found.remade == ("shop/db",)
    # One that was made since would be deleted, and its claims with it.
    assert plan({}, database(1, "db-0"), ["uid-Database/db"]).left == {OF_CLAIMS: ("shop/db",)}
    assert plan({}, database(1, "db-0")).removed == {path("Database", "db"), path("Pod", "db-0")}


def test_what_was_agreed_limits_what_is_touched_to_whole_families() -> None:
    then, now = {**web(1, "a"), **thing("Secret", "s", data={})}, web(2, "a", "b")
    agreed = plan(then, now).touched
    again = plan(then, {**now, **thing("Secret", "later", data={})}, only=agreed)
    assert again.touched == agreed
    assert again.left == {MEANWHILE: ("shop/later",)}
    # Half of it is done, and somebody has made a pod for it since.
    half = {key: each for key, each in web(2, "a", "c").items() if key != path("Deployment", "web")}
    found = plan(then, half, only=agreed)
    assert found.touched == {path("Secret", "s")}
    assert found.left == {MEANWHILE: ("shop/web", "shop/web-1")}


def test_of_an_operator_s_family_only_what_was_agreed_is_deleted() -> None:
    agreed = plan(database(1, "db-0"), database(2, "db-0", "db-1")).touched
    found = plan(database(1, "db-0"), database(2, "db-7"), only=agreed)
    assert found.touched == {path("Database", "db")}
    assert found.left == {}


def test_released_namespaces_and_kinds_that_may_not_be_listed_are_left_alone() -> None:
    then = thing("Secret", "s", data={})
    found = planned(then, UserObjects({}, ("shop",), (), frozenset()))
    assert found.touched == set()
    assert found.left == {RELEASED: ("shop",)}
    found = planned(then, UserObjects({}, (), ("secrets",), frozenset()))
    assert found.touched == set()
    assert found.left == {FORBIDDEN: ("secrets",)}


def filled(store: Store, *, namespace: bool, released: bool) -> None:
    resources = [
        {"name": name, "kind": kind, "namespaced": True, "verbs": VERBS}
        for name, kind in (("pods", "Pod"), ("secrets", "Secret"))
    ]
    store.objects |= {"/apis": {"groups": [], "metadata": {}}, "/api/v1": {"resources": resources, "metadata": {}}}
    store.served |= {"/api/v1/namespaces", PODS, SECRETS, f"{TEAM}/pods", f"{TEAM}/secrets"}
    if namespace:
        store.put("/api/v1/namespaces", {"metadata": {"name": "team"}})
    if released:
        metadata = {"name": "sh.helm.release.v1.x.v1", "namespace": "team"}
        store.put(f"{TEAM}/secrets", {"metadata": metadata, "type": "helm.sh/release.v1"})


@pytest.mark.parametrize(("namespace", "released"), [(False, False), (True, True)])
async def test_of_named_namespaces_of_which_none_is_left_nothing_is_listed(namespace: bool, released: bool) -> None:
    async with storing() as store, store.client() as client:
        filled(store, namespace=namespace, released=released)
        found = await contents(client, ["team"])
        assert (found.objects, found.left, found.forbidden) == ({}, ("team",) if released else (), ())
        listed = [path for _, path in store.asked if path in store.served]
        assert listed == ([f"{TEAM}/secrets"] if released else [])


async def test_claims_are_no_contents_but_their_namespaces_and_owners_are_known() -> None:
    async with storing() as store, store.client() as client:
        filled(store, namespace=True, released=False)
        store.objects["/api/v1"]["resources"] += [
            {"name": "persistentvolumeclaims", "kind": "PersistentVolumeClaim", "namespaced": True, "verbs": VERBS}
        ]
        store.served |= {CLAIMS, f"{TEAM}/persistentvolumeclaims"}
        metadata = {"name": "data", "namespace": "team", "ownerReferences": [{"kind": "Database", "uid": "uid-db"}]}
        store.put(f"{TEAM}/persistentvolumeclaims", {"metadata": metadata})
        found = await contents(client, ["team"])
        assert list(found.objects) == [TEAM]
        assert found.claimants == {store.objects[TEAM]["metadata"]["uid"], "uid-db"}
        store.refuse = lambda _verb, path, _body: 403 if path.endswith("claims") else None
        with pytest.raises(ApiError, match="403"):
            await contents(client, ["team"])


async def test_of_all_namespaces_the_whole_cluster_is_listed() -> None:
    async with storing() as store, store.client() as client:
        filled(store, namespace=True, released=False)
        assert list((await contents(client)).objects) == [TEAM]
        assert {PODS, SECRETS} <= {path for _, path in store.asked}


def test_a_pod_that_runs_has_begun_later() -> None:
    found = moved(RUNS, 3600)
    assert found["startTime"] == "2026-11-23T11:00:00Z"
    assert found["containerStatuses"][0]["state"] == {"running": {"startedAt": "2026-11-23T11:00:01Z"}}
    over = found["initContainerStatuses"][0]["state"]["terminated"]
    assert over == {"startedAt": "2026-11-23T11:00:00Z", "finishedAt": "2026-11-23T11:00:01Z"}
    assert found["conditions"] == RUNS["conditions"]


def test_one_that_has_ended_and_one_that_has_not_begun_stay() -> None:
    for status in ({**RUNS, "phase": "Succeeded"}, {**RUNS, "phase": "Failed"}, {"phase": "Pending"}, {}):
        assert moved(status, 3600) == status
