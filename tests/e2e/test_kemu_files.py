"""KEMU's cluster files, as its own are."""

from typing import Any

import pytest

from tests.support.kemu import cluster_file
from tests.support.pods import is_ready
from tests.support.project import CLUSTER, NODES, POOL, Project

pytestmark = pytest.mark.e2e


def test_a_fleet_of_kemu_is_previewed_and_its_mistakes_are_told(project: Project) -> None:
    (project.directory / "kemu.yaml").write_text(cluster_file("gcp-large"))
    project.write_stack(stack="kemu-large", clusterConfig="kemu.yaml", skipAddons=True)
    preview = project.foresee()
    made: dict[str, Any] = {step.name: step.new.get("replicas") for step in preview.steps if step.type == POOL}
    assert sum(made.values()) == 2550
    assert made["a2-ultragpu-8g-use1"] == 500
    assert [step.op for step in preview.steps if step.type == CLUSTER] == ["create"]
    # Told before the stack itself is registered, they may come without its name.
    said = "\n".join(preview.messages.values())
    assert (
        "spec.nodeGroups[0].nodeTemplate.capacity.ephemeralStorage: is not a resource of Kubernetes; "
        "taken as ephemeral-storage" in said
    )
    assert "spec.kindConfig: is for the runtime kind" in said
    assert not [step for step in preview.steps if "helm" in step.type]


def test_a_cluster_of_kemu_comes_up_with_its_names_and_labels(project: Project) -> None:
    (project.directory / "kemu.yaml").write_text(cluster_file("gcp-small"))
    project.write_stack(stack="kemu-small", clusterConfig="kemu.yaml", skipAddons=True)
    assert "ephemeralStorage: is not a resource of Kubernetes" in project.up().text
    nodes = {node["metadata"]["name"]: node for node in project.api().list(NODES)}
    assert len(nodes) == 30
    assert all(map(is_ready, nodes.values()))
    pools = {("a2-ultragpu-8g", zone) for zone in ("use1", "use2", "use3")}
    pools |= {("a3-highgpu-8g", "use1"), ("a3-highgpu-8g", "use2"), ("a3-ultragpu-8g", "use1")}
    assert nodes.keys() == {f"{group}-{zone}-{n}" for group, zone in pools for n in range(5)}
    node = nodes["a2-ultragpu-8g-use3-4"]
    # As KEMU labels its nodes, and what its workloads select.
    expected = {
        "kubernetes.io/arch": "arm64",
        "kubernetes.io/os": "kemu",
        "kubernetes.io/role": "agent",
        "type": "kwok",
        "kemu.datastrophic.io/managed": "true",
        "kubernetes.io/hostname": "a2-ultragpu-8g-use3-4",
        "node.kubernetes.io/instance-type": "a2-ultragpu-8g",
        "topology.kubernetes.io/zone": "use3",
        "datastrophic.io/gpu-type": "nvidia-a100-80gb",
    }
    assert expected.items() <= node["metadata"]["labels"].items()
    assert node["spec"]["taints"] == [{"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}]
    allocatable = node["status"]["allocatable"]
    assert allocatable == {
        "cpu": "96",
        "memory": "1360Gi",
        "ephemeral-storage": "3Ti",
        "nvidia.com/gpu": "8",
        "pods": "110",
    }
    project.preview("--expect-no-changes")
