"""What of a cluster moves into another stack's: what users have put there, and nothing of the cluster's own."""

import asyncio
import json
import threading
from pathlib import Path

import pytest

from kumulus.extras.snapshots.kwok import _order, _paused_controllers
from kumulus.extras.snapshots.kwok_workloads import _TABLES, StoragePath, defined, place_of, workloads
from kumulus.kube.message_tables import classes_of
from kumulus.kube.messages import MAGIC, enveloped
from kumulus.model.identity import STACK_ID
from kumulus.runtimes.directories import exclusive
from kumulus.runtimes.kwok.layout import Layout

_CLASSES = classes_of(_TABLES)
KNOWN = frozenset({"kueue.x-k8s.io/workloads", "kueue.x-k8s.io/clusterqueues", "kwok.x-k8s.io/stages"})


def stored(kind: str = "Any", labels: dict[str, str] | None = None, **rest: object) -> bytes:
    item = _CLASSES[kind](metadata={"labels": labels or {}}, **rest)
    return enveloped("v1", kind, item.SerializeToString())


@pytest.mark.parametrize(
    ("key", "found"),
    [
        ("pods/shop/web-0", StoragePath("pods", "shop", "web-0")),
        ("services/specs/shop/web", StoragePath("services/specs", "shop", "web")),
        ("namespaces/shop", StoragePath("namespaces", "", "shop")),
        ("kueue.x-k8s.io/workloads/shop/job-1", StoragePath("kueue.x-k8s.io/workloads", "shop", "job-1")),
        ("kueue.x-k8s.io/clusterqueues/all", StoragePath("kueue.x-k8s.io/clusterqueues", "", "all")),
        ("minions/a", None),
        ("clusterroles/admin", None),
        ("leases/kube-node-lease/a", None),
        ("ranges/serviceips", None),
        ("kwok.x-k8s.io/stages/node-initialize", None),
        ("unknown.example.com/things/shop/a", None),
        ("pods", None),
    ],
)
def test_what_may_move_is_known_by_where_it_is_kept(key: str, found: StoragePath | None) -> None:
    assert place_of(b"/registry/" + key.encode(), KNOWN) == found


def test_the_custom_resources_of_a_cluster_are_read_off_its_keys() -> None:
    keys = [b"/registry/apiextensions.k8s.io/customresourcedefinitions/workloads.kueue.x-k8s.io", b"/registry/pods/a/b"]
    assert defined(keys) == {"kueue.x-k8s.io/workloads"}


def test_what_a_stack_made_and_what_the_cluster_made_stays() -> None:
    mine = {STACK_ID: "0" * 32}
    entries = {
        b"/registry/pods/shop/web": stored(),
        b"/registry/namespaces/shop": stored(),
        b"/registry/namespaces/tenant": stored(labels=mine),
        b"/registry/resourcequotas/tenant/quota": stored(labels=mine),
        b"/registry/pods/tenant/theirs": stored(),
        b"/registry/namespaces/default": stored(),
        b"/registry/configmaps/shop/kube-root-ca.crt": stored(),
        b"/registry/configmaps/kube-system/x": stored(),
        b"/registry/serviceaccounts/shop/default": stored(),
        b"/registry/secrets/shop/token": stored("Secret", type="kubernetes.io/service-account-token"),
        b"/registry/secrets/shop/password": stored("Secret", type="Opaque"),
        b"/registry/priorityclasses/system-node-critical": stored(),
        b"/registry/priorityclasses/urgent": stored(),
        b"/registry/kueue.x-k8s.io/clusterqueues/ours": json.dumps({"metadata": {"labels": mine}}).encode(),
        b"/registry/kueue.x-k8s.io/clusterqueues/theirs": json.dumps({"metadata": {}}).encode(),
    }
    found = workloads(entries, KNOWN)
    assert {key.removeprefix(b"/registry/").decode() for key in found.entries} == {
        "pods/shop/web",
        "namespaces/shop",
        "pods/tenant/theirs",
        "secrets/shop/password",
        "priorityclasses/urgent",
        "kueue.x-k8s.io/clusterqueues/theirs",
    }
    assert found.left == ()


def test_a_namespace_with_a_helm_release_stays_as_a_whole_here_and_there() -> None:
    entries = {
        b"/registry/secrets/addon/sh.helm.release.v1.kueue.v3": stored("Secret", type="helm.sh/release.v1"),
        b"/registry/pods/addon/manager": stored(),
        b"/registry/namespaces/addon": stored(),
        b"/registry/pods/shop/web": stored(),
        b"/registry/pods/other/web": stored(),
    }
    found = workloads(entries, KNOWN, staying=["other"])
    assert (found.left, list(found.entries)) == (("addon",), [b"/registry/pods/shop/web"])


def test_nothing_comes_into_a_namespace_that_is_not_there() -> None:
    entries = {
        b"/registry/namespaces/tenant": stored(labels={STACK_ID: "0" * 32}),
        b"/registry/pods/tenant/a": stored(),
        b"/registry/kueue.x-k8s.io/workloads/tenant/a": b'{"metadata": {}}',
        b"/registry/kueue.x-k8s.io/clusterqueues/all": b'{"metadata": {}}',
        b"/registry/namespaces/shop": stored(),
        b"/registry/pods/shop/a": stored(),
    }
    found = workloads(entries, KNOWN)
    moving = found.within(["default"], KNOWN)
    assert moving.left == ("tenant",)
    assert [key for key in entries if key not in moving.entries] == list(entries)[:3]
    assert found.within(["tenant"], KNOWN) == found


def test_the_nodes_that_pods_are_on_are_those_that_have_to_be_there() -> None:
    entries = {
        b"/registry/pods/shop/a": stored("Pod", spec={"nodeName": "n-1"}),
        b"/registry/pods/shop/b": stored("Pod"),
        b"/registry/pods/shop/c": MAGIC + b"\xff",
        b"/registry/pods/kube-system/d": stored("Pod", spec={"nodeName": "n-2"}),
    }
    assert workloads(entries, KNOWN).nodes() == {"n-1"}


def test_owners_are_put_back_before_what_they_own_and_pods_last() -> None:
    keys = [b"/registry/pods/a/p", b"/registry/replicasets/a/r", b"/registry/resourceslices/s", b"/registry/minions/n"]
    keys += [b"/registry/deployments/a/d", b"/registry/namespaces/a", b"/registry/jobs/a/j", b"/registry/cronjobs/a/c"]
    ordered = [key.split(b"/")[2].decode() for key in sorted(keys, key=_order)]
    assert ordered == [
        *("namespaces", "minions", "cronjobs", "deployments", "replicasets", "jobs", "resourceslices", "pods"),
    ]


async def test_controllers_are_not_paused_while_another_run_changes_the_cluster(tmp_path: Path) -> None:
    layout = Layout.of(str(tmp_path), "dev")
    layout.directory.mkdir(parents=True)
    paused, done = threading.Event(), threading.Event()

    def restore() -> None:
        with _paused_controllers(layout):
            paused.set()
            done.wait(10)

    async def update() -> bool:
        async with exclusive(layout) as waited:
            return waited

    async with exclusive(layout):
        restoring = asyncio.create_task(asyncio.to_thread(restore))
        await asyncio.sleep(0.3)
        assert not paused.is_set()
    assert await asyncio.to_thread(paused.wait, 10)
    updating = asyncio.create_task(update())
    await asyncio.sleep(0.3)
    assert not updating.done()
    done.set()
    await restoring
    assert await updating
