"""A clone has the captured queues though nothing runs there that uses them, and keeps them when something has."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kumulus.extras.capture import writing
from kumulus.extras.capture.live import Reader
from kumulus.extras.capture.putting import put
from kumulus.extras.capture.spool import Spool
from kumulus.extras.schedulers import definitions, objects
from kumulus.extras.schedulers.errors import SchedulerError
from kumulus.extras.schedulers.objects import CAPTURED_LABEL
from kumulus.kube import Client, load_kubeconfig
from tests.integration.conftest import Plane

pytestmark = pytest.mark.integration
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
QUEUES = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues"
NAME = "clusterqueues.kueue.x-k8s.io"


def document(kind: str, name: str, spec: dict[str, Any], namespace: str = "") -> dict[str, Any]:
    metadata = {**({"namespace": namespace} if namespace else {}), "name": name}
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": metadata, "spec": spec}


def queues() -> list[dict[str, Any]]:
    quota = {"name": "cpu", "nominalQuota": "40"}
    group = {"coveredResources": ["cpu"], "flavors": [{"name": "captured-spot", "resources": [quota]}]}
    everywhere = {"matchLabels": {"team": "research"}}
    labels = {"nodeLabels": {"example.com/spot": "true"}}
    return [
        document("ResourceFlavor", "captured-spot", labels),
        document("ClusterQueue", "captured-research", {"resourceGroups": [group], "namespaceSelector": everywhere}),
        document("LocalQueue", "captured-mine", {"clusterQueue": "captured-research"}, "default"),
    ]


@pytest.fixture
def kueue(plane: Plane) -> Iterator[list[dict[str, Any]]]:
    """Kueue's definitions; those that a clone was given are gone again afterwards."""
    try:
        found = definitions.crds("kueue")
    except SchedulerError as error:
        pytest.skip(str(error))
    if any(each["metadata"]["name"] == NAME for each in plane.api.list(DEFINITIONS)):
        pytest.skip("another test's Kueue is in this cluster")
    yield found
    for name in captured_definitions(plane):
        plane.api.delete(f"{DEFINITIONS}/{name}")
    plane.api.until(DEFINITIONS, lambda _: not captured_definitions(plane))


def captured_definitions(plane: Plane) -> list[str]:
    listed = [each["metadata"] for each in plane.api.list(DEFINITIONS)]
    return [each["name"] for each in listed if CAPTURED_LABEL in (each.get("labels") or {})]


async def test_queues_are_in_a_clone_and_a_capture_of_it_has_them(
    plane: Plane, kueue: list[dict[str, Any]], tmp_path: Path
) -> None:
    file = tmp_path / "workload.yaml"
    file.write_text("".join(f"---\n{json.dumps(each)}\n" for each in queues()))
    async with Client(load_kubeconfig(plane.observed.kubeconfig)) as client:
        for _ in range(2):
            done = await put(client, file, lambda kind, count: None)
            assert (done.unserved, done.refused, done.undefined) == ({}, {}, {})
            assert done.made == {"ResourceFlavor": 1, "ClusterQueue": 1, "LocalQueue": 1}
        spool = Spool(tmp_path, "clone")
        await Reader(client, spool, 1000, lambda kind, count: None).read()
    writing.write(spool, tmp_path, None)
    lines = file.read_text().splitlines()
    kept = [json.loads(line) for line in lines if "captured-" in line]
    assert [each["kind"] for each in kept] == [each["kind"] for each in queues()]
    for each, wanted in zip(kept, queues(), strict=True):
        # The API server adds defaults.
        assert {key: each["spec"].get(key) for key in wanted["spec"]} == wanted["spec"]


async def test_captured_queues_stay_readable_when_a_scheduler_that_converted_them_is_gone(
    plane: Plane, kueue: list[dict[str, Any]], tmp_path: Path
) -> None:
    file = tmp_path / "workload.yaml"
    file.write_text("".join(f"---\n{json.dumps(each)}\n" for each in queues()))
    at = {"url": "https://127.0.0.1:1/convert"}
    webhook = {"strategy": "Webhook", "webhook": {"clientConfig": at, "conversionReviewVersions": ["v1"]}}
    converting = [{**each, "spec": {**each["spec"], "conversion": webhook}} for each in kueue]
    async with Client(load_kubeconfig(plane.observed.kubeconfig)) as client:
        await put(client, file, lambda kind, count: None)
        await objects.create(client, "kueue", converting)
        assert plane.api.get(f"{DEFINITIONS}/{NAME}")["spec"]["conversion"]["strategy"] == "Webhook"
        await objects.remove(client, "kueue")
        # The API server asks for patience while it takes a changed definition up.
        found = (await client.get(QUEUES))["items"]
    assert plane.api.get(f"{DEFINITIONS}/{NAME}")["spec"]["conversion"] == {"strategy": "None"}
    assert [each["metadata"]["name"] for each in found] == ["captured-research"]
    there = [each for each in plane.api.list(DEFINITIONS) if each["spec"]["group"] == "kueue.x-k8s.io"]
    assert {each["metadata"]["labels"].get(CAPTURED_LABEL) for each in there} == {"kueue"}
