"""The namespaces of Helm releases on a real API server: every kind that it has is asked about before one is removed."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kumulus.helm import namespaces
from kumulus.kube import ApiError, Client, load_kubeconfig
from kumulus.kube.objects import is_established
from kumulus.model.identity import Owner
from tests.integration.conftest import Plane
from tests.support.elsewhere import Elsewhere
from tests.support.kinds import CRDS, crd, without

pytestmark = pytest.mark.integration
MINE = Owner("1" * 32, "kumulus/dev")
NAMESPACES, TASKS = "/api/v1/namespaces", "tasks.spaces.kumulus.test"


@pytest.fixture
def tasks(plane: Plane) -> Iterator[str]:
    """The path of objects of a kind that only one version of its group has, and not the preferred one."""
    older, newer = crd(TASKS, "size"), crd("others.spaces.kumulus.test", "size")
    for each in (older, newer):
        each["spec"]["scope"] = "Namespaced"
    older["spec"]["versions"][0]["name"] = "v1alpha1"
    names = [each["metadata"]["name"] for each in (older, newer)]
    with without(plane.api, names):
        for each in (older, newer):
            plane.api.create(CRDS, each)
        plane.api.until(CRDS, lambda found: all(is_established(found.get(name, {})) for name in names))
        yield "/apis/spaces.kumulus.test/v1alpha1/namespaces/queue/tasks"


async def test_one_goes_only_without_objects_of_others_of_any_kind(plane: Plane, client: Client, tasks: str) -> None:
    await namespaces.ensure(client, "queue", "dev", MINE)
    api = plane.api
    # What each namespace gets by itself, and what a controller keeps there, does not count.
    api.until(f"{NAMESPACES}/queue/serviceaccounts", lambda found: "default" in found)
    api.until(f"{NAMESPACES}/queue/configmaps", lambda found: "kube-root-ca.crt" in found)
    api.create("/apis/coordination.k8s.io/v1/namespaces/queue/leases", {"metadata": {"name": "leader"}, "spec": {}})
    theirs = {"apiVersion": "spaces.kumulus.test/v1alpha1", "kind": "Task", "metadata": {"name": "training"}}
    task = api.create(tasks, theirs)
    owner = {"apiVersion": theirs["apiVersion"], "kind": "Task", "name": "training", "uid": task["metadata"]["uid"]}
    api.create(f"{NAMESPACES}/queue/configmaps", {"metadata": {"name": "owned", "ownerReferences": [owner]}})
    kept = "the namespace queue is kept: "
    assert await namespaces.take_away(client, "queue", "dev", MINE) == f"{kept}{TASKS} training is in it"
    api.delete(f"{tasks}/training")
    api.until(f"{NAMESPACES}/queue/configmaps", lambda found: "owned" not in found, timeout=120)
    role = {"metadata": {"name": "theirs"}, "rules": []}
    api.create("/apis/rbac.authorization.k8s.io/v1/namespaces/queue/roles", role)
    said = await namespaces.take_away(client, "queue", "dev", MINE)
    assert said == f"{kept}roles.rbac.authorization.k8s.io theirs is in it"
    api.delete("/apis/rbac.authorization.k8s.io/v1/namespaces/queue/roles/theirs")
    assert await namespaces.take_away(client, "queue", "dev", MINE) == ""
    api.until(NAMESPACES, lambda found: "queue" not in found, timeout=120)


async def test_one_whose_kinds_may_not_be_listed_stays(plane: Plane, client: Client, tmp_path: Path) -> None:
    """As far as its user may see, it is empty."""
    elsewhere = Elsewhere(Path(plane.observed.kubeconfig))
    await namespaces.ensure(client, "hidden", "dev", MINE)
    roles, bindings = (f"/apis/rbac.authorization.k8s.io/v1/clusterrole{kind}" for kind in ("s", "bindings"))
    rules = [{"apiGroups": [""], "resources": ["*"], "verbs": ["*"]}]
    elsewhere.api.create(roles, {"metadata": {"name": "half-blind"}, "rules": rules})
    binding = {
        "metadata": {"name": "half-blind"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "half-blind"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}],
    }
    elsewhere.api.create(bindings, binding)
    (tmp_path / "config").write_text(json.dumps(elsewhere.user(elsewhere.token("default", "default"))))
    try:
        async with Client(load_kubeconfig(tmp_path / "config", "team")) as user:
            with pytest.raises(ApiError, match="403 Forbidden"):
                await namespaces.take_away(user, "hidden", "dev", MINE)
        assert "deletionTimestamp" not in plane.api.get(f"{NAMESPACES}/hidden")["metadata"]
        assert await namespaces.take_away(client, "hidden", "dev", MINE) == ""
    finally:
        elsewhere.api.delete(f"{bindings}/half-blind")
        elsewhere.api.delete(f"{roles}/half-blind")
        elsewhere.close()
