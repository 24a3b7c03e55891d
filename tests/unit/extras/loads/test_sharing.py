"""Who has a part of a load, what is asked of a control plane for it, and what is refused."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from kumulus.extras.loads.addition import ADDITION, NAME
from kumulus.extras.loads.sharing import Load, wanted
from kumulus.host.ports import Claims
from kumulus.kube import Client, Connection
from kumulus.kwok.usage import SHARERS, resource_usage, selects
from kumulus.model.lifecycles import PodSelection
from kumulus.runtimes.kwok import configuration
from kumulus.runtimes.kwok.layout import Layout
from kumulus.runtimes.kwok.section import KwokOptions
from kumulus.runtimes.section import option_problems
from kumulus.stackfile.kwok_options import cluster_options
from kumulus.stackfile.model import ClusterSpec
from tests.support.apiserver import listening, ok, silent, status
from tests.support.said import problems_of

PODS = "/api/v1/namespaces/default/pods"
TRAINING = "training.kubeflow.org/operator-name"
WEB = {"name": "web", "selector": {"labels": {"app": "web"}}, "cpu": {"load": "2"}}


def options(*usages: dict[str, Any]) -> dict[str, Any]:
    found = cluster_options(ClusterSpec.checked({"podUsage": list(usages)}))
    assert option_problems(KwokOptions, found) == {}
    return found


def pod(*, ready: bool = True, containers: int = 1, phase: str = "Running", **metadata: Any) -> dict[str, Any]:
    status = {"phase": phase, "conditions": [{"type": "Ready", "status": str(ready)}]}
    return {"metadata": metadata, "spec": {"containers": [{}] * containers}, "status": status}


def shared(count: str) -> dict[str, str]:
    return {SHARERS: count}


def test_a_load_is_shared_by_the_containers_of_the_pods_that_are_ready() -> None:
    pods = {
        "a": pod(containers=2),
        "b": pod(annotations=shared("1")),
        "starts": pod(ready=False),
        "ends": pod(deletionTimestamp="now", annotations=shared("4")),
        "ended": pod(phase="Succeeded", annotations=shared("4")),
        "new": {"metadata": {}, "spec": {"containers": [{}]}},
    }
    assert wanted(pods) == {"a": "3", "b": "3", "ends": None, "ended": None}
    for key, value in wanted(pods).items():
        pods[key]["metadata"]["annotations"] = shared(value) if value else {}
    assert wanted(pods) == {}


async def test_each_pod_of_a_load_and_no_other_is_written_to_until_it_is_done() -> None:
    def there(name: str, **labels: str) -> dict[str, Any]:
        metadata: dict[str, Any] = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": "1"}
        return pod(**metadata, labels={"app": "web", **labels})

    pods = [there("a"), there("b"), there("earlier", tier="batch")]
    patches: list[tuple[str, str, Any]] = []
    written = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.method == "GET":
            assert request.query["labelSelector"] == "app=web"
            watched = "watch" in request.query
            return await (silent if watched else ok({"metadata": {"resourceVersion": "1"}, "items": pods}))(request)
        metadata = (await request.json())["metadata"]
        patches.append((request.path, metadata["uid"], metadata["annotations"][SHARERS]))
        if len(patches) == 1:
            return await status(409, "Conflict", "try again")(request)
        if len({path for path, *_ in patches[1:]}) == 2:
            written.set()
        return await ok({})(request)

    async with listening(answer) as address, Client(Connection(address, "test", {}), patience=1.0) as client:
        keeping = asyncio.create_task(
            Load(client, [PodSelection({"tier": "batch"})], PodSelection({"app": "web"})).keep()
        )
        await asyncio.wait_for(written.wait(), 20)
        keeping.cancel()
        with pytest.raises(asyncio.CancelledError):
            await keeping
    assert set(patches) == {(f"{PODS}/{name}", f"uid-{name}", "2") for name in ("a", "b")}


@pytest.mark.parametrize(
    ("selection", "those"),
    [
        (PodSelection(), ["a", "b"]),
        (PodSelection({"app": "web"}), ["a"]),
        (PodSelection(namespaces=("two",)), ["b"]),
        (PodSelection({"app": "web"}, ("two",)), []),
        (PodSelection(owner_kinds=("Job", "JobSet")), ["b"]),
        (PodSelection(owner_kinds=("MPIJob",)), []),
    ],
)
def test_pods_are_selected_as_by_the_expression(selection: PodSelection, those: list[str]) -> None:
    pods = {
        "a": pod(namespace="one", labels={"app": "web"}),
        "b": pod(
            namespace="two", labels={"batch.kubernetes.io/job-name": "j", "training.kubeflow.org/operator-name": "t"}
        ),
    }
    assert [name for name, each in pods.items() if selects(selection, each)] == those


def test_an_expression_divides_the_load_by_what_stands_on_the_pod() -> None:
    spec = ClusterSpec.checked({"podUsage": [WEB]})
    cpu = resource_usage([each.usage() for each in spec.podUsage])["usages"][0]["usage"]["cpu"]["expression"]
    assert f'Quantity("2.000000000") / double(pod.metadata.annotations["{SHARERS}"])' in cpu


def test_how_large_a_load_is_and_what_follows_it_restart_nothing(tmp_path: Path) -> None:
    first = {"name": "first", "selector": {"namespaces": ["a"]}, "cpu": "1"}
    before = options(first, WEB)
    assert [each["shared"] for each in before["podLoads"]] == [False, True]
    larger = options(first, {**WEB, "cpu": {"load": "9"}, "memory": {"load": "9Gi"}}, {"name": "rest", "cpu": "1"})
    assert configuration.component_fingerprints(larger)[NAME] == configuration.component_fingerprints(before)[NAME]
    assert (
        configuration.component_fingerprints(options(WEB))[NAME] != configuration.component_fingerprints(before)[NAME]
    )
    assert NAME not in configuration.component_fingerprints(options(first))
    layout = Layout(tmp_path)
    (tmp_path / "bin").mkdir()
    with Claims() as claims:
        settings = ADDITION.configured({"components": [{"name": "etcd"}]}, layout, before, claims)
        assert ADDITION.configured(settings, layout, options(first), claims) == {"components": [{"name": "etcd"}]}
    assert json.loads(settings["components"][1]["args"][-1]) == before["podLoads"]


def test_mistakes_of_loads_are_told_with_what_to_write() -> None:
    def told(**cluster: Any) -> dict[str, str]:
        return problems_of(ClusterSpec.checked, cluster)

    found = told(
        podUsage=[
            {"name": "a", "cpu": {"load": "80%"}},
            {"name": "b", "selector": {"labels": {"b": "b"}}, "memory": {"load": "-1Gi"}},
            {"name": "c", "selector": {"labels": {"c": "c"}}, "gpu": {"load": "80%"}},
            {"name": "d", "selector": {"labels": {"d": "d"}}, "cpu": {"load": "1", "range": {}}},
        ]
    )
    assert found["podUsage[0].cpu.load"].endswith("write a quantity such as 500m")
    assert found["podUsage[1].memory.load"] == 'is "-1Gi", which is negative; write a quantity such as 2Gi'
    assert "is not a known key" in found["podUsage[2].gpu.load"]
    assert "is not one of range, curve, load" in found["podUsage[3].cpu"]
    elsewhere = told(runtime="existing", podUsage=[WEB])["podUsage[0].cpu.load"]
    assert elsewhere.startswith("is not for the runtime existing")
    assert elsewhere.endswith("write runtime: kwok, or cpu: 80%")
