"""Claims of devices on a real control plane: captured, and in a clone the same pods have the same devices by them."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from kumulus.extras.capture import writing
from kumulus.extras.capture.putting import put
from kumulus.kube import Client, load_kubeconfig
from tests.integration.conftest import Plane, Pools
from tests.integration.test_capture import files, read
from tests.support import captured
from tests.support.api import Object

pytestmark = pytest.mark.integration
API = "/apis/resource.k8s.io/v1"
HERE = "namespaces/default"
CLAIMS, TEMPLATES = f"{API}/{HERE}/resourceclaims", f"{API}/{HERE}/resourceclaimtemplates"
JOBS, PODS_HERE = f"/apis/batch/v1/{HERE}/jobs", f"/api/v1/{HERE}/pods"
SPEC = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "acme-gpus"}}]}}
NODES_NUMBER = 3


def pod_spec(**claim: str) -> Object:
    return {
        "containers": [{"name": "main", "image": "none", "resources": {"claims": [{"name": "gpu"}]}}],
        "resourceClaims": [{"name": "gpu", **claim}],
        "tolerations": [{"operator": "Exists"}],
        "terminationGracePeriodSeconds": 0,
    }


def pod(name: str, **claim: str) -> Object:
    return {"metadata": {"name": name}, "spec": pod_spec(**claim)}


async def running(plane: Plane, count: int) -> None:
    def reached(found: Mapping[str, Object]) -> bool:
        return [each["status"].get("phase") for each in found.values()].count("Running") == count

    await asyncio.to_thread(plane.api.until, PODS_HERE, reached, 120)


def devices(plane: Plane) -> dict[str, tuple[str, str]]:
    """Which device each pod has, by the claims that are reserved for it."""
    uids = {each["metadata"]["uid"]: each["metadata"]["name"] for each in plane.api.list(PODS_HERE)}
    found: dict[str, tuple[str, str]] = {}
    for claim in plane.api.list(CLAIMS):
        for user in claim["status"].get("reservedFor", ()):
            (result,) = claim["status"]["allocation"]["devices"]["results"]
            found[uids[user["uid"]]] = result["pool"], result["device"]
    return found


async def clear(plane: Plane) -> None:
    for job in plane.api.list(JOBS):
        plane.api.delete(f"{JOBS}/{job['metadata']['name']}?propagationPolicy=Background")
    plane.api.request("DELETE", f"{PODS_HERE}?gracePeriodSeconds=0")
    for collection in (CLAIMS, TEMPLATES, f"{API}/resourceslices", f"{API}/deviceclasses"):
        plane.api.request("DELETE", collection)
    for collection in (JOBS, PODS_HERE, CLAIMS, f"{API}/resourceslices"):
        await asyncio.to_thread(plane.api.until, collection, lambda found: not found, 60)


@pytest.fixture
async def source(plane: Plane, pools: Pools) -> AsyncIterator[None]:
    """Three nodes of two devices: two pods share one of them, a Job's three pods have one each, and two are free."""
    nodes = [{"name": f"acme-{index}"} for index in range(NODES_NUMBER)]
    await pools.create(pools.inputs(NODES_NUMBER, nodes=nodes, taints=[]))
    for path, body in captured.devices(NODES_NUMBER):
        plane.api.create(path, body)
    plane.api.create(CLAIMS, {"metadata": {"name": "shared"}, "spec": SPEC})
    plane.api.create(TEMPLATES, {"metadata": {"name": "one"}, "spec": {"spec": SPEC}})
    for name in ("first", "second"):
        plane.api.create(PODS_HERE, pod(name, resourceClaimName="shared"))
    template = {
        "metadata": {"annotations": {"pod-complete.stage.kwok.x-k8s.io/delay": "1h"}},
        "spec": {**pod_spec(resourceClaimTemplateName="one"), "restartPolicy": "Never"},
    }
    spec = {"parallelism": 3, "completions": 3, "template": template}
    plane.api.create(JOBS, {"metadata": {"name": "train"}, "spec": spec})
    try:
        await running(plane, 5)
        yield
    finally:
        await clear(plane)


@pytest.mark.every_version
async def test_pods_of_a_clone_have_their_devices_and_others_get_the_free_ones(
    plane: Plane, source: None, tmp_path: Path
) -> None:
    before = devices(plane)
    assert len(before) == 5
    assert before["first"] == before["second"]
    spool, _ = await read(plane, tmp_path / "one")
    writing.write(spool, tmp_path / "one", None)
    kept = files(tmp_path / "one")
    await clear(plane)

    async with Client(load_kubeconfig(plane.observed.kubeconfig)) as client:
        done = await put(client, tmp_path / "one" / "workload.yaml", lambda kind, count: None)
        assert (done.refused, done.unserved, done.claims) == ({}, {}, [])
        await running(plane, 5)
        assert devices(plane) == before
        spool, _ = await read(plane, tmp_path / "two")
        writing.write(spool, tmp_path / "two", None)
        again = files(tmp_path / "two")
        assert again["workload.yaml"] == kept["workload.yaml"]
        # Put once more, nothing is given away twice.
        done = await put(client, tmp_path / "one" / "workload.yaml", lambda kind, count: None)
        assert done.claims == []

    for number in range(3):
        plane.api.create(PODS_HERE, pod(f"new-{number}", resourceClaimTemplateName="one"))
    await running(plane, 7)
    after = devices(plane)
    assert {name: after[name] for name in before} == before
    assert len(set(after.values())) == 6, "each of the six devices is had by one claim"
    plane.api.delete(f"{PODS_HERE}/{next(name for name in before if name.startswith('train-'))}?gracePeriodSeconds=0")
    await running(plane, 7)
