"""What a restore through the API does not touch, and what it refuses before it touches anything."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from kumulus.extras.snapshots import objects
from kumulus.extras.snapshots.objects import restore, save
from kumulus.extras.snapshots.restored import MEANWHILE, OF_CLAIMS, CutOff, RestoreRefused
from kumulus.kube import Client
from tests.integration.conftest import Plane, remove_namespaces
from tests.support import kinds
from tests.support.api import Api, Object

pytestmark = pytest.mark.integration
NAMESPACES = "/api/v1/namespaces"
NAME, CRD = "restore-mine", "databases.restore.example.com"
SPACE = f"{NAMESPACES}/{NAME}"
CLAIMS, MAPS, SECRETS = f"{SPACE}/persistentvolumeclaims", f"{SPACE}/configmaps", f"{SPACE}/secrets"
SERVICES, BINDINGS = f"{SPACE}/services", f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAME}/rolebindings"
SETS, DATABASES = (
    f"/apis/apps/v1/namespaces/{NAME}/statefulsets",
    f"/apis/restore.example.com/v1/namespaces/{NAME}/databases",
)


@pytest.fixture
def api(plane: Plane) -> Iterator[Api]:
    """The API, with a namespace, and a kind of object that an operator would have: nobody makes anything for it."""
    definition = kinds.crd(CRD, "size")
    definition["spec"]["scope"] = "Namespaced"
    with kinds.without(plane.api, [CRD]):
        plane.api.create(kinds.CRDS, definition)
        plane.api.until(kinds.CRDS, lambda found: "Established" in str(found.get(CRD, {}).get("status")))
        plane.api.create(NAMESPACES, {"metadata": {"name": NAME}})
        plane.api.until(f"{SPACE}/serviceaccounts", lambda found: "default" in found)
        yield plane.api
        for each in plane.api.metadata(DATABASES):
            plane.api.merge(f"{DATABASES}/{each['name']}", {"metadata": {"finalizers": None}})
        remove_namespaces(plane, NAME)


def claim(api: Api, name: str, *owners: Object) -> None:
    references = [
        {**{key: each[key] for key in ("apiVersion", "kind")}, "name": each["metadata"]["name"], "uid": uid(each)}
        for each in owners
    ]
    spec = {"storageClassName": "", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    api.create(CLAIMS, {"metadata": {"name": name, "ownerReferences": references}, "spec": spec})


def uid(found: Object) -> str:
    return str(found["metadata"]["uid"])


def uids(api: Api, path: str) -> dict[str, str]:
    return {each["name"]: each["uid"] for each in api.metadata(path)}


def database(api: Api, name: str) -> Object:
    metadata = {"name": name, "finalizers": ["restore.example.com/keep"]}
    return api.create(
        DATABASES,
        {"apiVersion": "restore.example.com/v1", "kind": "Database", "metadata": metadata, "spec": {"size": "1"}},
    )


def stateful(api: Api, name: str) -> Object:
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "none"}]}}
    spec = {"serviceName": name, "replicas": 0, "selector": {"matchLabels": {"app": name}}, "template": template}
    return api.create(SETS, {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name}, "spec": spec})


async def test_volume_claims_are_neither_deleted_nor_made_again(api: Api, client: Client, tmp_path: Path) -> None:
    """Whatever has become of them, of their owner and of what was made since: a storage class may delete the data."""
    file = tmp_path / "full.snapshot"
    claim(api, "same")
    claim(api, "bound-since")
    owner = database(api, "owns")
    claim(api, "of-an-operator", owner)
    keeper = stateful(api, "keeper")
    claim(api, "of-a-set", keeper)
    about = await save(client, "dev", file, [NAME])
    assert about.keys == len(api.list("/api/v1/nodes")) + 3, "the namespace, the database and the set"

    api.merge(f"{CLAIMS}/bound-since", {"spec": {"volumeName": "somewhere"}})
    api.merge(f"{DATABASES}/owns", {"spec": {"size": "2"}})
    api.merge(f"{SETS}/keeper", {"metadata": {"labels": {"changed": "since"}}})
    claim(api, "made-since")
    claim(api, "with-an-owner-made-since", database(api, "made-since"))
    before = uids(api, CLAIMS)

    done = await restore(client, file)
    assert uids(api, CLAIMS) == before
    assert api.get(f"{CLAIMS}/bound-since")["spec"]["volumeName"] == "somewhere"
    assert done.left == {OF_CLAIMS: (f"{NAME}/keeper", f"{NAME}/made-since")}
    assert (done.written, done.removed) == (1, 0)
    again = api.get(f"{DATABASES}/owns")
    assert (uid(again), again["spec"]["size"]) == (uid(owner), "1"), "changed back in its place"
    assert again["metadata"]["finalizers"] == ["restore.example.com/keep"]


async def test_what_cannot_be_changed_back_is_refused_before_anything_is_removed(
    api: Api, client: Client, tmp_path: Path
) -> None:
    file = tmp_path / "full.snapshot"
    api.create(SECRETS, {"metadata": {"name": "key"}, "stringData": {"a": "1"}, "immutable": True})
    await save(client, "dev", file, [NAME])
    api.delete(f"{SECRETS}/key")
    api.create(SECRETS, {"metadata": {"name": "key"}, "stringData": {"a": "2"}, "immutable": True})
    api.create(MAPS, {"metadata": {"name": "later"}, "data": {}})
    before = {**uids(api, SECRETS), **uids(api, MAPS)}
    with pytest.raises(RestoreRefused) as refused:
        await restore(client, file)
    first, remedy = str(refused.value).splitlines()
    assert first.startswith(f"the cluster would refuse to change back Secret {NAME}/key, and nothing was changed: ")
    assert "immutable" in first
    assert remedy == "  Change it back or delete it yourself, if that is meant, and restore again"
    assert {**uids(api, SECRETS), **uids(api, MAPS)} == before
    api.delete(f"{SECRETS}/key")
    assert (await restore(client, file)).removed == 1
    assert api.get(f"{SECRETS}/key")["data"] == {"a": "MQ=="}


async def test_a_few_kinds_without_data_are_replaced_where_a_field_is_immutable(
    api: Api, client: Client, tmp_path: Path
) -> None:
    file, ports = tmp_path / "full.snapshot", [{"port": 80}]
    group = "rbac.authorization.k8s.io"
    api.create(SERVICES, {"metadata": {"name": "db"}, "spec": {"clusterIP": "None", "ports": ports}})
    role = {"apiGroup": group, "kind": "ClusterRole", "name": "view"}
    api.create(BINDINGS, {"metadata": {"name": "who"}, "roleRef": role})
    await save(client, "dev", file, [NAME])
    api.delete(f"{SERVICES}/db")
    api.create(SERVICES, {"metadata": {"name": "db"}, "spec": {"ports": ports}})
    api.delete(f"{BINDINGS}/who")
    api.create(BINDINGS, {"metadata": {"name": "who"}, "roleRef": {**role, "name": "edit"}})
    plan = await objects.plan(client, file)
    assert plan.replaced == {f"{SERVICES}/db", f"{BINDINGS}/who"}
    assert (plan.changed, plan.removed) == (frozenset(), frozenset())
    await restore(client, file)
    assert api.get(f"{BINDINGS}/who")["roleRef"]["name"] == "view"
    assert api.get(f"{SERVICES}/db")["spec"]["clusterIP"] == "None", "headless, as it was"


async def test_what_was_not_agreed_to_is_left_alone(api: Api, client: Client, tmp_path: Path) -> None:
    file = tmp_path / "full.snapshot"
    api.create(MAPS, {"metadata": {"name": "settings"}, "data": {"a": "1"}})
    await save(client, "dev", file, [NAME])
    api.merge(f"{MAPS}/settings", {"data": {"a": "2"}})
    agreed = (await objects.plan(client, file)).touched
    api.create(MAPS, {"metadata": {"name": "later"}, "data": {}})
    begun: list[object] = []
    done = await restore(client, file, begun.append, only=agreed)
    assert begun == [agreed]
    assert done.left == {MEANWHILE: (f"{NAME}/later",)}
    assert api.get(f"{MAPS}/settings")["data"] == {"a": "1"}
    assert "later" in uids(api, MAPS)


async def test_one_that_is_stopped_before_its_first_change_changes_nothing(
    api: Api, client: Client, tmp_path: Path
) -> None:
    file, stop = tmp_path / "full.snapshot", asyncio.Event()
    begun: list[object] = []
    await save(client, "dev", file, [NAME])
    api.create(MAPS, {"metadata": {"name": "later"}, "data": {}})
    stop.set()
    with pytest.raises(CutOff, match="stopped before it changed anything"):
        await restore(client, file, begun.append, stop)
    assert begun == []
    assert "later" in uids(api, MAPS)
