"""An object of the Kubernetes API as a resource: bad input, drift, strangers, what cannot be changed, tokens."""

from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from kumulus.kube import ApiError
from kumulus.model.identity import STACK_ID
from kumulus.model.plain import UNKNOWN
from kumulus.nodes.errors import PartialFailure, ProviderError
from kumulus.provider.connections import Connections
from kumulus.provider.resources import kubernetes_object
from kumulus.provider.resources.base import Operation, Properties
from kumulus.provider.resources.kubernetes_object import TOKEN, KubernetesObjectResource
from tests.support.kinds import CRDS
from tests.support.object_store import Object, Store
from tests.unit.provider import stored
from tests.unit.provider.replacing import BINDINGS, MINE, Way, binding, discovery, react
from tests.unit.provider.stored import StoredCluster
from tests.unit.provider.test_replacements import World, every_way, world  # noqa: F401 - a fixture

IT = f"{BINDINGS}/team"
THEIRS = {"labels": {STACK_ID: "b" * 32}, "annotations": {"kumulus.io/stack": "p/other"}}
SECRETS = "/api/v1/namespaces/team/secrets"
SECRET: Object = {
    "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token", "namespace": "team"}, "type": TOKEN,
}  # fmt: skip


def operation(**options: Any) -> Operation:
    return stored.operation(KubernetesObjectResource.token, **options)


class Rig:
    """The resource, in a cluster with an identity."""

    def __init__(self, cluster: StoredCluster) -> None:
        self.store, self.place, self.connections = cluster.store, cluster.place, cluster.connections
        discovery(self.store)
        self.store.served |= {BINDINGS, SECRETS, CRDS}
        kinds = [{"name": "secrets", "kind": "Secret", "namespaced": True}]
        self.store.objects["/api/v1"] = {"metadata": {}, "resources": kinds}
        self.resource = KubernetesObjectResource(self.connections)

    def inputs(self, manifest: Any) -> Properties:
        return {**self.place, "manifest": manifest}

    async def made(self, manifest: Object) -> Properties:
        return (await self.resource.create(operation(), self.inputs(manifest)))[1]

    async def seen(self, outputs: Properties) -> Properties | None:
        inputs = {key: value for key, value in outputs.items() if key in {*self.place, "manifest"}}
        found = await self.resource.read(operation(), "id", outputs, inputs)
        return None if found is None else found.outputs


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with stored.stored(tmp_path, stackId=MINE) as cluster:
        yield Rig(cluster)


# --- inputs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("manifest", "paths"),
    [
        (None, ["manifest"]),
        ("kind: Role", ["manifest"]),
        ({"kind": "Role", "metadata": {"name": "a"}}, ["manifest.apiVersion"]),
        ({"apiVersion": "v1", "kind": 5, "metadata": {}}, ["manifest.kind", "manifest.metadata.name"]),
        ({"apiVersion": "v1", "kind": "Role", "metadata": []}, ["manifest.metadata"]),
        ({**SECRET, "metadata": {"name": "a", "namespace": 1}}, ["manifest.metadata.namespace"]),
        ({**SECRET, "metadata": {"name": "a", "labels": {"a": 1}}}, ["manifest.metadata.labels.a"]),
        ({**SECRET, "metadata": {"name": "a", "annotations": []}}, ["manifest.metadata.annotations"]),
        ({"apiVersion": UNKNOWN, "kind": UNKNOWN, "metadata": UNKNOWN}, []),
        ({**SECRET, "metadata": {"name": UNKNOWN, "labels": {"a": UNKNOWN}}}, []),
        (UNKNOWN, []),
        (binding(), []),
    ],
)
def test_what_is_no_manifest_is_refused_with_the_place(manifest: Any, paths: list[str]) -> None:
    place = {"kubeconfig": "k", "clusterIdentity": "i", "clusterName": "dev"}
    failures = KubernetesObjectResource(Connections()).check({}, {**place, "manifest": manifest}, "").failures
    assert [each.path for each in failures] == paths


async def test_what_the_cluster_refuses_or_does_not_know_is_said_with_the_objects_name(rig: Rig) -> None:
    with pytest.raises(ProviderError, match=r"^Nothing team: the cluster has no kind Nothing of example.com/v1$"):
        await rig.made({"apiVersion": "example.com/v1", "kind": "Nothing", "metadata": {"name": "team"}})
    with pytest.raises(ProviderError, match=r"^RoleBinding team has to be in a namespace; write manifest"):
        await rig.made({**binding(), "metadata": {"name": "team"}})
    rig.store.refuse = lambda verb, path, body: 422 if verb == "PATCH" else None
    with pytest.raises(ProviderError, match=r"^RoleBinding team in team: PATCH .*: 422"):
        await rig.made(binding())


def test_what_is_in_a_namespace_that_somebody_has_deleted_is_told_what_brings_it_back() -> None:
    said = KubernetesObjectResource(Connections()).failed
    for missing, told in (('namespaces "team" not found', True), ('rolebindings "team" not found', False)):
        failure = str(said({"manifest": binding()}, ApiError(404, "NotFound", missing, "PATCH", IT)))
        assert failure.startswith("RoleBinding team in team: PATCH ")
        assert failure.endswith(f"{missing}; make it, or if the stack declares it, `pulumi up --refresh` does") == told


# --- its life --------------------------------------------------------------------------------------------------------


async def test_it_carries_its_owners_marks_and_is_gone_with_it(rig: Rig) -> None:
    outputs = await rig.made(binding(a="b"))
    there = rig.store.objects[IT]
    assert there["metadata"]["labels"] == {"a": "b", STACK_ID: MINE}
    assert there["metadata"]["annotations"] == {"kumulus.io/stack": "p/dev"}
    assert there["roleRef"] == binding()["roleRef"]
    assert await rig.seen(outputs) == outputs == rig.inputs(binding(a="b"))
    await rig.resource.delete(operation(), "id", outputs)
    assert IT not in rig.store.objects
    assert await rig.seen(outputs) is None


async def test_what_others_change_is_drift_only_where_it_is_declared(rig: Rig) -> None:
    outputs = await rig.made(binding(a="b"))
    there = rig.store.objects[IT]
    there["metadata"]["labels"] |= {"theirs": "x"}
    there["status"] = {"phase": "x"}
    assert await rig.seen(outputs) == outputs
    there["metadata"]["labels"] |= {"a": "c"}
    there["subjects"] = []
    seen = await rig.seen(outputs)
    assert seen is not None
    assert seen["drift"] == {
        "metadata.labels.a": '"c" instead of "b"',
        "subjects": '[] instead of [{"kind": "ServiceAccount", "name": "team", "namespace": "team"}]',
    }
    assert {each.path: each.kind for each in rig.resource.diff(seen, rig.inputs(binding(a="b")))} == {
        "drift.metadata.labels.a": "delete",
        "drift.subjects": "delete",
    }
    await rig.resource.update(operation(), "id", seen, rig.inputs(binding(a="b")))
    assert await rig.seen(outputs) == outputs
    assert rig.store.objects[IT]["metadata"]["labels"] == {"a": "b", "theirs": "x", STACK_ID: MINE}
    # And what is declared no more goes.
    await rig.resource.update(operation(), "id", outputs, rig.inputs(binding()))
    assert rig.store.objects[IT]["metadata"]["labels"] == {"theirs": "x", STACK_ID: MINE}


@pytest.mark.parametrize("metadata", [THEIRS, {}], ids=["another stack's", "made by hand"])
async def test_a_strangers_object_is_refused_in_previews_too_and_never_deleted(rig: Rig, metadata: Object) -> None:
    there = rig.store.put(BINDINGS, {"metadata": {"name": "team", **metadata}})
    says = r"^RoleBinding team in team is there already and .*; give yours another name, or remove that one first$"
    for preview in (True, False):
        with pytest.raises(ProviderError, match=says):
            await rig.resource.create(operation(preview=preview), rig.inputs(binding()))
    assert rig.store.under(BINDINGS) == [there]
    if metadata:
        # It took the place of the stack's own.
        assert await rig.seen(rig.inputs(binding())) is None
        await rig.resource.delete(operation(), "id", rig.inputs(binding()))
        assert rig.store.under(BINDINGS) == [there]


async def test_another_stacks_that_is_made_at_the_same_moment_is_not_taken_over(rig: Rig) -> None:
    made: list[Object] = []

    def also(verb: str, path: str, body: Object) -> int | None:
        if verb == "PATCH" and not made:
            made.append(rig.store.put(BINDINGS, {"metadata": {"name": "team", **THEIRS}}))
            # So does a server answer what two managers apply with different values, unless it is forced.
            return 409
        return None

    rig.store.refuse = also
    with pytest.raises(ProviderError, match="belongs to the stack p/other"):
        await rig.made(binding())
    assert rig.store.under(BINDINGS) == made
    assert not rig.store.applied


# --- what cannot be changed ------------------------------------------------------------------------------------------


def test_what_the_server_refuses_to_change_is_replaced_and_all_else_is_updated() -> None:
    resource, place = KubernetesObjectResource(Connections()), {"clusterName": "dev"}

    def kinds(old: Object, new: Any) -> dict[str, str]:
        return {each.path: each.kind for each in resource.diff({**place, "manifest": old}, {**place, "manifest": new})}

    assert kinds(binding(), binding("view")) == {"manifest.roleRef.name": "update-replace"}
    moved = {**SECRET, "metadata": {"name": "other", "namespace": "team"}}
    assert kinds(SECRET, moved) == {"manifest.metadata.name": "update-replace"}
    assert kinds(SECRET, {**SECRET, "type": "Opaque"}) == {"manifest.type": "update-replace"}
    assert kinds(binding(), binding(a="b")) == {"manifest.metadata.labels.a": "add"}
    assert kinds(binding(), {**binding(), "subjects": UNKNOWN}) == {"manifest.subjects": "update"}


@every_way
async def test_a_binding_of_another_role_is_another_one_whichever_way_pulumi_replaces_it(
    world: World,  # noqa: F811 - the fixture
    way: Way,
) -> None:
    old = await world.made(KubernetesObjectResource)
    uid = world.store.objects[IT]["metadata"]["uid"]
    world.store.refuse = lambda verb, path, body: _immutable(world.store, verb, path, body)
    new = await way(world.begin, old, world.declared(KubernetesObjectResource, manifest=binding("view")))
    assert world.store.objects[IT]["roleRef"]["name"] == "view"
    assert world.store.objects[IT]["metadata"]["uid"] != uid
    assert await (await world.begin()).read(new) == new.outputs


async def test_a_binding_that_somebody_made_with_another_role_is_drift_and_made_again(rig: Rig) -> None:
    outputs = await rig.made(binding())
    rig.store.objects[IT]["roleRef"] = binding("admin")["roleRef"]
    rig.store.refuse = lambda verb, path, body: _immutable(rig.store, verb, path, body)
    seen = await rig.seen(outputs)
    assert seen is not None
    assert seen["drift"] == {"roleRef.name": '"admin" instead of "edit"'}
    await rig.resource.update(operation(), "id", seen, rig.inputs(binding()))
    assert await rig.seen(outputs) == outputs


def _immutable(store: Store, verb: str, path: str, body: Object) -> int | None:
    there = store.objects.get(path)
    return 422 if verb == "PATCH" and there and there["roleRef"] != body["roleRef"] else None


async def test_one_that_does_not_go_is_told_with_what_holds_it(rig: Rig) -> None:
    outputs = await rig.made(binding())
    rig.store.objects[IT]["metadata"]["finalizers"] = ["example.com/hold"]
    rig.store.refuse = lambda verb, path, body: 202 if verb == "DELETE" else None
    says = r"RoleBinding team in team is being deleted \(finalizers: example.com/hold\); the next run goes on"
    with pytest.raises(ProviderError, match=says):
        await rig.resource.delete(operation(timeout=0.2), "id", outputs)


# --- previews and tokens ---------------------------------------------------------------------------------------------


async def test_a_preview_before_there_is_a_cluster_asks_nobody_and_knows_no_token(rig: Rig) -> None:
    for manifest, known in ((binding(), False), (SECRET, True), ({**binding(), "subjects": UNKNOWN}, False)):
        inputs = {**rig.inputs(manifest), "clusterIdentity": UNKNOWN}
        _, outputs = await rig.resource.create(operation(preview=True), inputs)
        assert outputs == ({**inputs, "data": UNKNOWN} if known else inputs)
    assert rig.store.asked == []


async def test_a_preview_of_a_cluster_that_is_stopped_says_what_it_could_not_look_at(rig: Rig, tmp_path: Path) -> None:
    outputs, inputs, previewing = await rig.made(binding()), rig.inputs(binding()), operation(preview=True)
    await rig.connections.close()
    stored.written(tmp_path, "http://127.0.0.1:1")
    assert await rig.resource.update(previewing, "id", outputs, inputs) == inputs
    (message,) = stored.messages(previewing)
    assert message.startswith("RoleBinding team in team: whether its name is free is not known: ")


async def test_a_secret_gets_its_token_which_an_update_keeps(rig: Rig) -> None:
    rig.store.react = react
    outputs = await rig.made(SECRET)
    assert outputs["data"] == {"token": "dG9rZW4=", "ca.crt": "Y2E="}
    assert await rig.seen(outputs) == outputs
    previewed = await rig.resource.update(operation(preview=True), "id", outputs, rig.inputs(SECRET))
    assert previewed["data"] == outputs["data"]


async def test_a_secret_that_somebody_deleted_is_said_to_have_had_a_token_that_is_refused_now(rig: Rig) -> None:
    rig.store.react = react
    outputs, looking, inputs = await rig.made(SECRET), operation(), rig.inputs(SECRET)
    assert await rig.resource.read(looking, "id", outputs, inputs) is not None
    assert stored.messages(looking) == []
    del rig.store.objects[f"{SECRETS}/token"]
    assert await rig.resource.read(looking, "id", outputs, inputs) is None
    (message,) = stored.messages(looking)
    assert message.startswith("Secret token in team is gone, and its token with it: kubeconfigs that were handed out")


async def test_a_secret_that_gets_no_token_is_recorded_and_told(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubernetes_object, "_TOKEN_S", 0.1)
    with pytest.raises(PartialFailure, match="Secret token in team: the cluster wrote no token") as raised:
        await rig.made(SECRET)
    assert raised.value.resource_id == "dev/Secret/team/token"
    assert f"{SECRETS}/token" in rig.store.objects
    with suppress(PartialFailure):
        await rig.resource.update(operation(), "id", raised.value.outputs, rig.inputs(SECRET))
