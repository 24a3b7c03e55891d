"""What the resources in a cluster have in common: their place is checked, and drift is a difference."""

import asyncio
import os
from dataclasses import replace
from pathlib import Path
from socket import socket
from typing import Any, NamedTuple

import pytest
from aiohttp import web

from kumulus.kube import Unreachable
from kumulus.nodes.errors import ProviderError
from kumulus.provider.connections import Connections
from kumulus.provider.resources.base import Operation, ReadResult
from kumulus.provider.resources.diffing import PropertyDifference
from kumulus.provider.resources.in_cluster import InClusterResource
from kumulus.provider.resources.node_pool import NodePool
from kumulus.provider.resources.registry import CLASSES
from tests.support.apiserver import listening
from tests.unit.provider.replacing import EXAMPLES, POOL
from tests.unit.provider.stored import messages, operation, stored, written

PLACE = {"kubeconfig": "/k", "clusterIdentity": "uid", "clusterName": "dev"}
TITLES = {
    "NodePool": f"pool {POOL.name}",
    "HyperNodes": "HyperNodes",
    "NamespaceResource": "namespace team",
    "KubernetesObjectResource": "RoleBinding team in team",
    "FaultResource": "fault xid",
    "AutoscalerResource": "autoscaler karpenter",
    "Definitions": "kinds of things.io",
    "ReleasePreparation": "release n/r",
    "ReleaseMark": "release n/r",
    "ReleaseReady": "release n/r",
    "FederationWorker": "worker dev",
    "FederationHub": "hub dev",
    "ChartCrds": "CRDs of r",
}
# What these are is in the release itself, or was noted once.
NOT_LOOKED_AT = ("Definitions", "ReleasePreparation", "ReleaseMark", "ReleaseReady")
OWN = {"AutoscalerResource": {"autoscaler": {"name": "karpenter"}}, "ChartCrds": {"crds": {"x": "digest"}}}


class OneOf(NamedTuple):
    resource: type[InClusterResource]
    own: dict[str, Any]
    title: str


OF_A_CLUSTER = [
    OneOf(each, {**EXAMPLES[each].inputs, **OWN.get(each.__name__, {})}, TITLES[each.__name__])
    for each in CLASSES
    if issubclass(each, InClusterResource)
]


def address(port: int) -> str:
    return f"http://127.0.0.1:{port}"


@pytest.fixture(params=OF_A_CLUSTER, ids=lambda each: each.resource.__name__)
def one(request: pytest.FixtureRequest) -> OneOf:
    found: OneOf = request.param
    return found


def test_a_place_of_another_type_is_refused(one: OneOf) -> None:
    strange = {"kubeconfig": 5.0, "clusterOutlivesStack": "yes"}
    found = one.resource(Connections()).check({}, {**PLACE, **one.own, **strange}, "stack")
    assert {(failure.path, failure.reason) for failure in found.failures} >= {
        ("kubeconfig", "5.0 is not a string"),
        ("clusterOutlivesStack", "'yes' is not a boolean"),
    }


def test_inputs_that_are_missing_or_unheard_of_are_told_each(one: OneOf) -> None:
    found = one.resource(Connections()).check({}, {"colour": "red"}, "stack").failures
    assert {failure.path for failure in found} >= {"colour", *PLACE}
    assert f"{one.resource.token.rpartition(':')[2]} has no input 'colour'; it takes kubeconfig" in found[0].reason


def test_drift_is_a_difference_and_another_identity_another_resource(one: OneOf) -> None:
    found = one.resource(Connections())
    inputs = {**PLACE, **one.own}
    assert not found.diff(inputs, inputs)
    assert found.diff({**inputs, "drift": {"missing": "1: a"}}, inputs) == [
        PropertyDifference("drift.missing", "delete")
    ]
    assert found.diff({**inputs, "drift": "gone"}, inputs) == [PropertyDifference("drift", "delete")]
    assert [each.replaces for each in found.diff(inputs, {**inputs, "clusterIdentity": "other"})] == [True]


async def test_what_was_in_a_cluster_that_is_gone_is_gone(one: OneOf, tmp_path: Path) -> None:
    kept = {**PLACE, **one.own, "kubeconfig": str(tmp_path / "kubeconfig.yaml")}
    op, served = operation(), one.resource(Connections())
    assert served.title(kept) == one.title
    if one.resource.__name__ not in NOT_LOOKED_AT:
        assert await served.read(op, "id", kept, kept) is None
    await served.delete(op, "id", kept)
    assert not messages(op)
    if one.resource.__name__ != "ChartCrds":  # Without a look at the chart it makes nothing.
        with pytest.raises(ProviderError, match=f"{one.title}: kubeconfig .* does not exist"):
            await served.create(op, kept)


@pytest.mark.parametrize("error", [Unreachable("GET", "refused"), ProviderError("pool a-z: 3 nodes left to do")])
async def test_what_was_in_a_cluster_that_goes_meanwhile_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """Of an imported resource, Pulumi does not know that it is in its cluster, and deletes both at once."""
    kept = {**PLACE, "name": "a-z", "replicas": 1, "kubeconfig": written(tmp_path, address(1))}
    served = NodePool(Connections())

    async def remove(_: Operation, outputs: dict[str, Any]) -> None:
        os.unlink(outputs["kubeconfig"])
        raise error

    monkeypatch.setattr(served, "remove", remove)
    await served.delete(operation(), "id", kept)
    assert not (tmp_path / "kubeconfig.yaml").exists()


@pytest.mark.parametrize("outlives", [False, True])
async def test_a_removal_does_not_wait_for_a_cluster_that_goes_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outlives: bool
) -> None:
    kubeconfig = written(tmp_path, address(1))
    kept = {**PLACE, "name": "a-z", "replicas": 1, "kubeconfig": kubeconfig, "clusterOutlivesStack": outlives}
    served, ended = NodePool(Connections()), asyncio.Event()

    async def remove(_: Operation, outputs: dict[str, Any]) -> None:
        os.unlink(outputs["kubeconfig"])
        try:
            await asyncio.sleep(3)
        finally:
            ended.set()

    monkeypatch.setattr(served, "remove", remove)
    began = asyncio.get_running_loop().time()
    await served.delete(operation(), "id", kept)
    # That the file of a cluster that outlives the stack is not here does not mean that the cluster is gone.
    assert (asyncio.get_running_loop().time() - began >= 3) == outlives
    await asyncio.wait_for(ended.wait(), 1)


async def test_what_is_recorded_stands_while_a_cluster_is_silent(tmp_path: Path) -> None:
    with socket() as nobody:
        # Bound and not listening: whoever connects is refused.
        nobody.bind(("127.0.0.1", 0))
        kubeconfig = written(tmp_path, address(nobody.getsockname()[1]))
        # One for all, so that not each waits for the same cluster again.
        connections = Connections()
        for resource, own, title in OF_A_CLUSTER:
            inputs = {**PLACE, **own, "kubeconfig": kubeconfig}
            recorded, op = {**inputs, "drift": "as it was"}, operation()
            found = await resource(connections).read(op, "id", recorded, inputs)
            assert found == ReadResult("id", recorded, inputs), resource
            if resource.__name__ not in NOT_LOOKED_AT:
                [warning] = messages(op)
                assert warning.startswith((f"{title} was not looked at: ", f"{title.split()[0]} were not looked at: "))
                assert "is not reachable" in warning
        await connections.close()


@pytest.mark.parametrize("there", [False, True], ids=["gone", "silent"])
async def test_previews_go_on_without_a_cluster(there: bool, tmp_path: Path) -> None:
    kubeconfig = written(tmp_path, address(1)) if there else str(tmp_path / "none")
    connections = Connections()
    for resource, own, _ in OF_A_CLUSTER:
        if resource.__name__ == "AutoscalerResource":
            continue  # Its objects are those of the program, which is not there.
        inputs = {**PLACE, **own, "kubeconfig": kubeconfig, "clusterOutlivesStack": there}
        served, op = resource(connections), operation(preview=True)
        _, made = await served.create(op, inputs)
        changed = await served.update(op, "id", inputs, inputs)
        assert made.items() >= inputs.items() <= changed.items(), resource
    await connections.close()


async def test_a_cluster_that_says_it_outlives_its_stack_is_not_taken_for_gone(one: OneOf, tmp_path: Path) -> None:
    # A name that says nothing, in a folder that is not here: as on another machine.
    recorded = {**PLACE, **one.own, "kubeconfig": str(tmp_path / "kubeconfig.yaml")}
    says = {"clusterOutlivesStack": True}
    served = one.resource(Connections())
    assert served.check({}, {**PLACE, **one.own, **says}, "").inputs.items() >= says.items()
    # That it was not recorded is no reason for an update.
    assert not served.diff(recorded, {**recorded, **says})
    if one.resource.__name__ in ("ReleaseMark", "ReleaseReady"):
        return  # Nothing of theirs is removed.
    op = operation()
    for outputs, inputs in (({**recorded, **says}, {}), (recorded, says)):
        with pytest.raises(ProviderError, match="`pulumi refresh` writes this machine's copy of it"):
            await served.delete(replace(op, old_inputs=inputs), "id", outputs)


async def test_clusters_that_answer_do_not_wait_for_one_that_does_not(tmp_path: Path) -> None:
    (tmp_path / "silent").mkdir()
    with socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        async with stored(tmp_path) as cluster:
            other = written(tmp_path / "silent", address(silent.getsockname()[1]))
            asked = asyncio.ensure_future(cluster.connections.client(other, "uid", 60.0))
            await asyncio.sleep(0)
            async with asyncio.timeout(20):
                await cluster.connections.client(cluster.place["kubeconfig"], cluster.place["clusterIdentity"], 3.0)
            assert not asked.done()
            asked.cancel()
            await asyncio.wait([asked])


async def test_a_cluster_that_a_glance_found_silent_is_asked_again_by_who_has_patience(tmp_path: Path) -> None:
    async with stored(tmp_path) as cluster:
        uid = cluster.place["clusterIdentity"]
        with socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            file = written(tmp_path, address(nobody.getsockname()[1]))
            with pytest.raises(Unreachable):
                await cluster.connections.client(file, uid, 0.1)
        written(tmp_path, cluster.store.address)
        assert (await cluster.connections.client(file, uid, 3.0)).connection.server == cluster.store.address


async def test_a_kubeconfig_that_is_rewritten_cuts_nobody_off(tmp_path: Path) -> None:
    """As by a login tool, while pools of the same cluster are being updated."""
    asked, goes_on, paths = asyncio.Event(), asyncio.Event(), []

    async def answer(request: web.Request) -> web.StreamResponse:
        paths.append(request.path)
        if request.path == "/slow":
            asked.set()
            await goes_on.wait()
        return web.json_response({"metadata": {"uid": "uid"}})

    connections = Connections()
    async with listening(answer) as server:
        file = written(tmp_path, server)
        first = await connections.client(file, "uid", 3.0)
        under_way = asyncio.ensure_future(first.get("/slow"))
        await asked.wait()
        os.utime(file, (1, 1))
        second = await connections.client(file, "uid", 3.0)
        assert second is not first
        goes_on.set()
        assert await under_way
        assert await first.get("/after", patience=0.0)
    assert (paths.count("/slow"), paths.count("/after")) == (1, 1)
    await connections.close()
