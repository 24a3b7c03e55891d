"""The namespaces of Helm releases: made once, and removed unless something is left in them."""

from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from kumulus.helm import namespaces
from kumulus.helm.namespaces import MADE_FOR
from kumulus.kube import ApiError
from kumulus.model.identity import Owner

MINE = Owner("1" * 32, "kumulus/dev")
KINDS = {
    "/api/v1": {"configmaps": "ConfigMap", "secrets": "Secret", "pods": "Pod", "serviceaccounts": "ServiceAccount"},
    "/apis/apps/v1": {"deployments": "Deployment"},
    "/apis/batch/v1": {"jobs": "Job"},
    "/apis/batch.volcano.sh/v1alpha1": {"jobs": "Job"},
    "/apis/coordination.k8s.io/v1": {"leases": "Lease"},
    "/apis/networking.k8s.io/v1": {"ingresses": "Ingress"},
}


class Namespaces:
    """A client of a cluster with one namespace, perhaps, and objects in it by their collection.

    Args:
        made_for: the cluster that it was made for; None for no namespace.
        marked: the identity of the stack that it is marked with.
        objects: by the resource's full name, such as ``jobs.batch``; a status in their place refuses to list them.
    """

    def __init__(
        self, made_for: str | None, marked: str = "", objects: dict[str, list[dict[str, Any]] | int] | None = None
    ) -> None:
        self.made_for, self.objects, self.marked = made_for, objects or {}, marked
        self.done: list[object] = []

    async def get(self, path: str, **_: object) -> dict[str, Any]:
        if path == "/apis":
            versions = [{"groupVersion": root.removeprefix("/apis/")} for root in KINDS if root != "/api/v1"]
            return {"groups": [{"name": "", "versions": [each], "preferredVersion": each} for each in versions]}
        if path in KINDS:
            verbs = ["list", "create", "delete"]
            kinds = KINDS[path].items()
            return {"resources": [{"name": n, "kind": k, "namespaced": True, "verbs": verbs} for n, k in kinds]}
        if self.made_for is None:
            raise ApiError(404, "NotFound", "", "GET", path)
        labels = {"kumulus.io/stack-id": self.marked} if self.marked else {}
        return {"metadata": {"annotations": {MADE_FOR: self.made_for}, "labels": labels, "uid": "u"}}

    async def create(self, path: str, body: dict[str, Any]) -> None:
        self.done.append(f"made for {body['metadata']['annotations'][MADE_FOR]}")

    async def delete(self, path: str, options: object = None) -> None:
        self.done.append(options)

    async def pages(self, path: str, **_: object) -> AsyncIterator[list[dict[str, Any]]]:
        parts = path.split("/")
        found = self.objects.get(f"{parts[-1]}.{parts[2]}" if parts[1] == "apis" else parts[-1], [])
        if isinstance(found, int):
            raise ApiError(found, "Reason", "", "GET", path)
        yield [{"metadata": each} for each in found]


async def test_a_namespace_is_made_once() -> None:
    missing, there = Namespaces(None), Namespaces("")
    for client in (missing, there):
        await namespaces.ensure(cast(Any, client), "queue", "dev", MINE)
    assert (missing.done, there.done) == (["made for dev"], [])


GONE = [{"preconditions": {"uid": "u"}}]
OWNED = {"name": "x", "ownerReferences": [{"kind": "Job", "name": "x"}]}


@pytest.mark.parametrize(
    ("made_for", "objects", "says", "done"),
    [
        ("dev", {}, "", GONE),
        ("", {}, "", []),
        ("other", {}, "", []),
        (None, {}, "", []),
        ("dev", {"configmaps": [{"name": "kube-root-ca.crt"}], "serviceaccounts": [{"name": "default"}]}, "", GONE),
        ("dev", {"leases.coordination.k8s.io": [{"name": "leader"}]}, "", GONE),
        ("dev", {"pods": [OWNED]}, "", GONE),
        ("dev", {"jobs.batch": [{"name": "h", "annotations": {"helm.sh/hook": "post-install"}}]}, "", GONE),
        ("dev", {"deployments.apps": [{"name": "going", "deletionTimestamp": "2026-01-01T00:00:00Z"}]}, "", GONE),
        # A kind that has gone since the kinds were asked for.
        ("dev", {"jobs.batch.volcano.sh": 404}, "", GONE),
        ("dev", {"secrets": [{"name": "sh.helm.release.v1.b.v1"}]}, "secrets sh.helm.release.v1.b.v1 is in it", []),
        ("dev", {"deployments.apps": [{"name": "mine"}]}, "deployments mine is in it", []),
        ("dev", {"serviceaccounts": [{"name": "mine"}]}, "serviceaccounts mine is in it", []),
        ("dev", {"ingresses.networking.k8s.io": [{"name": "i"}]}, "ingresses.networking.k8s.io i is in it", []),
        ("dev", {"pods": [OWNED], "jobs.batch.volcano.sh": [{"name": "t"}]}, "jobs.batch.volcano.sh t is in it", []),
        # What may not be listed makes no difference to what is known.
        ("dev", {"secrets": 403, "jobs.batch.volcano.sh": [{"name": "t"}]}, "jobs.batch.volcano.sh t is in it", []),
    ],
)
async def test_a_namespace_goes_when_nothing_is_left_in_it(
    made_for: str | None, objects: dict[str, list[dict[str, Any]] | int], says: str, done: list[object]
) -> None:
    client = Namespaces(made_for, objects=objects)
    assert says in await namespaces.take_away(cast(Any, client), "queue", "dev", MINE)
    assert client.done == done


@pytest.mark.parametrize("status", [403, 500])
async def test_a_namespace_stays_if_not_all_that_may_be_in_it_can_be_listed(status: int) -> None:
    client = Namespaces("dev", objects={"jobs.batch.volcano.sh": status})
    with pytest.raises(ApiError, match=r"/apis/batch\.volcano\.sh/v1alpha1/namespaces/queue/jobs"):
        await namespaces.take_away(cast(Any, client), "queue", "dev", MINE)
    assert client.done == []


async def test_a_namespace_that_another_stack_of_the_same_names_made_is_left_to_it() -> None:
    client = Namespaces("dev", marked="2" * 32)
    assert await namespaces.take_away(cast(Any, client), "queue", "dev", MINE) == ""
    assert client.done == []
