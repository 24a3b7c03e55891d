"""What a snapshot of objects asks a cluster for: of named namespaces, nothing outside them."""

from __future__ import annotations

import pytest

from kumulus.extras.snapshots.scope import contents
from kumulus.kube import ApiError
from tests.support.object_store import Store, storing

PODS, SECRETS, CLAIMS = "/api/v1/pods", "/api/v1/secrets", "/api/v1/persistentvolumeclaims"
TEAM = "/api/v1/namespaces/team"
VERBS = ["list", "create", "delete"]


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
