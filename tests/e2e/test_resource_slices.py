"""GPUs by Dynamic Resource Allocation, from a stack file to a running pod.

The tests share one stack and go through its life in their order.
"""

from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.pods import PODS, TOLERATE_ALL, is_running
from tests.support.project import POOL, Project

pytestmark = pytest.mark.e2e

RESOURCE = "/apis/resource.k8s.io/v1"
SLICES, CLASSES = f"{RESOURCE}/resourceslices", f"{RESOURCE}/deviceclasses"
CLAIMS = f"{RESOURCE}/namespaces/default/resourceclaims"
CLASS = "kumulus:index:KubernetesObject"


@dataclass
class Stack:
    """A stack with one group of two machines, whose GPUs are to be had by claims only."""

    project: Project
    """Its project."""
    group: dict[str, Any]
    """Its node group, as up now."""

    def write(self) -> None:
        self.project.write_stack({"nodeGroups": [self.group]}, stack="claims")

    def slices(self) -> dict[str, Any]:
        return {each["metadata"]["name"]: each["spec"] for each in self.project.api().list(SLICES)}

    def classes(self) -> list[str]:
        return [each["metadata"]["name"] for each in self.project.api().list(CLASSES)]


@pytest.fixture(scope="module")
def stack(module_project: Project) -> Stack:
    group = {
        "name": "h100",
        "instanceType": "a3-highgpu-8g",
        "placement": [{"availabilityZone": "use1", "replicas": 2}],
        "resourceSlices": {"extendedResource": False},
    }
    return Stack(module_project, group)


def test_a_pod_with_a_claim_is_given_a_gpu_of_the_stack_and_runs(stack: Stack) -> None:
    stack.write()
    stack.project.up()
    assert stack.project.outputs()["nodeGroups"]["h100"]["gpus"] == 16
    assert set(stack.slices()) == {"h100-use1-0-gpu.nvidia.com", "h100-use1-1-gpu.nvidia.com"}
    api = stack.project.api()
    by_memory = 'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("80000Mi")) > 0'
    exactly = {"deviceClassName": "gpu.nvidia.com", "count": 8, "selectors": [{"cel": {"expression": by_memory}}]}
    devices = {"requests": [{"name": "gpus", "exactly": exactly}]}
    api.create(CLAIMS, {"metadata": {"name": "mine"}, "spec": {"devices": devices}})
    spec = {
        "containers": [{"name": "main", "image": "none", "resources": {"claims": [{"name": "gpus"}]}}],
        "resourceClaims": [{"name": "gpus", "resourceClaimName": "mine"}],
        "tolerations": TOLERATE_ALL,
    }
    api.until("/api/v1/namespaces/default/serviceaccounts", lambda found: "default" in found)
    api.create(PODS, {"metadata": {"name": "mine"}, "spec": spec})
    found = api.until(PODS, lambda pods: is_running(pods["mine"]))
    results = api.get(f"{CLAIMS}/mine")["status"]["allocation"]["devices"]["results"]
    assert {result["pool"] for result in results} == {found["mine"]["spec"]["nodeName"]}
    assert sorted(result["device"] for result in results) == [f"gpu-{index}" for index in range(8)]


def test_what_was_changed_by_hand_is_foreseen_and_put_right(stack: Stack) -> None:
    api, wanted = stack.project.api(), stack.slices()
    api.delete(f"{SLICES}/h100-use1-0-gpu.nvidia.com")
    api.merge(f"{CLASSES}/gpu.nvidia.com", {"spec": {"selectors": []}})
    preview = stack.project.foresee("--refresh")
    assert {(step.type, step.op) for step in preview.steps} == {(POOL, "update"), (CLASS, "update")}
    assert "resource slices missing 1: h100-use1-0-gpu.nvidia.com" in preview.messages["h100-use1"]
    stack.project.up("--refresh")
    assert stack.slices() == wanted
    assert api.get(f"{CLASSES}/gpu.nvidia.com")["spec"]["selectors"]
    stack.project.preview("--refresh", "--expect-no-changes")


def test_a_stack_that_asks_for_them_no_more_has_neither_slices_nor_class(stack: Stack) -> None:
    del stack.group["resourceSlices"]
    stack.write()
    assert "−16 gpu.nvidia.com devices, +16 nvidia.com/gpu" in stack.project.foresee().messages["h100-use1"]
    up = stack.project.up()
    assert stack.slices() == {}
    assert stack.classes() == []
    assert stack.project.outputs()["nodeGroups"]["h100"]["gpus"] == 16
    assert stack.project.destroy().seconds < max(20, 3 * up.seconds)
    assert stack.project.processes() == {}
