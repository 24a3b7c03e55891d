"""The stack gpu-lab: its five nodes, pods that choose their GPUs, and a topology given to them later."""

import pytest

from kumulus.model.gfd import GPU_OPERATOR
from tests.support import processes, volcano
from tests.support.pods import PODS, TOLERATE_ALL, Object, is_ready, is_running
from tests.support.project import NODES, Project
from tests.support.tools import require

pytestmark = pytest.mark.e2e

FLEET = {
    "a100-lab-0": ("NVIDIA-A100-SXM4-80GB", "8", "81920", "a2-ultragpu-8g"),
    "a100-lab-1": ("NVIDIA-A100-SXM4-80GB", "8", "81920", "a2-ultragpu-8g"),
    "h100-lab-0": ("NVIDIA-H100-80GB-HBM3", "8", "81559", "a3-highgpu-8g"),
    "l40s-lab-0": ("NVIDIA-L40S", "4", "46068", "g6e.12xlarge"),
    "l40s-lab-1": ("NVIDIA-L40S", "4", "46068", "g6e.12xlarge"),
}


def gpu_pod(name: str, product: str, gpus: int) -> Object:
    limits = {"nvidia.com/gpu": str(gpus)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "nodeSelector": {"nvidia.com/gpu.product": product},
            "tolerations": TOLERATE_ALL,
            "containers": [{"name": "main", "image": "none", "resources": {"limits": limits}}],
        },
    }


def test_the_lab_from_its_stack_file_to_a_topology_and_back(project: Project) -> None:
    cluster = project.copy_stack("gpu-lab")
    project.up()
    api = project.api()

    nodes = {node["metadata"]["name"]: node for node in api.list(NODES)}
    assert set(nodes) == set(FLEET)
    for name, (product, gpus, memory, machine) in FLEET.items():
        node, labels = nodes[name], nodes[name]["metadata"]["labels"]
        group = name.partition("-")[0]
        assert is_ready(node)
        assert node["status"]["capacity"]["nvidia.com/gpu"] == gpus
        assert node["status"]["allocatable"]["nvidia.com/gpu"] == gpus
        assert labels["nvidia.com/gpu.product"] == product
        assert (labels["nvidia.com/gpu.count"], labels["nvidia.com/gpu.memory"]) == (gpus, memory)
        assert labels["node.kubernetes.io/instance-type"] == machine
        assert labels["run.ai/simulated-gpu-node-pool"] == labels["gpu-pool"] == group
    outputs = project.outputs()
    assert outputs["capacity"]["gpus"] == 32
    assert outputs["gpuProducts"] == {"NVIDIA-A100-SXM4-80GB": 16, "NVIDIA-H100-80GB-HBM3": 8, "NVIDIA-L40S": 8}

    # Three pods want two L40S each and find room on the two nodes that have them; a fourth of four does not.
    for index in range(3):
        api.create(PODS, gpu_pod(f"l40s-{index}", "NVIDIA-L40S", 2))
    api.create(PODS, gpu_pod("h100", "NVIDIA-H100-80GB-HBM3", 8))
    placed = api.until(PODS, lambda found: len(found) == 4 and all(map(is_running, found.values())))
    where = {name: pod["spec"]["nodeName"] for name, pod in placed.items()}
    assert where.pop("h100") == "h100-lab-0"
    assert set(where.values()) == {"l40s-lab-0", "l40s-lab-1"}
    api.create(PODS, gpu_pod("too-much", "NVIDIA-L40S", 4))
    found = api.until(PODS, lambda found: bool(found["too-much"]["status"].get("conditions")))
    assert "nodeName" not in found["too-much"]["spec"]
    assert "Insufficient nvidia.com/gpu" in found["too-much"]["status"]["conditions"][0]["message"]

    # A topology for Volcano relabels the nodes in place; its objects are made where its kind is known.
    uids = project.node_uids()
    volcano.install(api)
    for group in cluster["nodeGroups"]:
        group["topology"] = {"preset": "volcano", "nodesPerRack": 1}
    project.write_stack(cluster)
    foreseen = project.foresee()
    assert "group a100, zone lab: 2 nodes changed: topology rack" in foreseen.messages["a100-lab"]
    assert "+6 HyperNodes: +5 rack, +1 zone" in foreseen.messages["gpu-lab-hypernodes"]
    project.up()
    assert project.node_uids() == uids
    labels = {node["metadata"]["name"]: node["metadata"]["labels"] for node in api.list(NODES)}
    assert labels["l40s-lab-1"]["volcano.sh/hypernode"] == "l40s-lab-r1"
    tiers = {item["metadata"]["name"]: item["spec"]["tier"] for item in api.list(volcano.HYPERNODES)}
    assert (len(tiers), tiers["l40s-lab-r1"], tiers["zone-lab"]) == (6, 1, 2)

    # Without the preset they go, and the nodes stay.
    for group in cluster["nodeGroups"]:
        group["topology"] = {"preset": "kueue", "nodesPerRack": 1}
    project.write_stack(cluster)
    project.up()
    assert api.list(volcano.HYPERNODES) == []
    assert project.node_uids() == uids
    labels = {node["metadata"]["name"]: node["metadata"]["labels"] for node in api.list(NODES)}
    assert labels["l40s-lab-1"]["cloud.provider.com/topology-rack"] == "l40s-lab-r1"
    assert "volcano.sh/hypernode" not in labels["l40s-lab-1"]
    project.destroy()


def test_an_operator_comes_changes_nothing_that_is_drift_and_goes(project: Project) -> None:
    require(*GPU_OPERATOR)
    cluster = project.copy_stack("gpu-lab")
    project.up()
    api, uids = project.api(), project.node_uids()
    project.write_stack({**cluster, "gpuOperator": {}})
    assert (
        "gpuOperator: the fake GPU operator is started, with a100 (8 NVIDIA-A100-SXM4-80GB), "
        "h100 (8 NVIDIA-H100-80GB-HBM3), l40s (4 NVIDIA-L40S)"
    ) in project.foresee().messages["gpu-lab-control-plane"]
    project.up()
    api.until(NODES, lambda found: not any(each["status"]["nodeInfo"]["kubeletVersion"] for each in found.values()))
    found = api.list("/api/v1/namespaces/gpu-operator/configmaps", labelSelector="node-topology=true")
    assert {each["metadata"]["labels"]["node-name"] for each in found} == set(FLEET)
    assert project.foresee("--refresh").steps == ()
    assert project.node_uids() == uids

    project.write_stack(cluster)
    assert "goes, with its namespace; nodes keep their GPUs" in project.foresee().messages["gpu-lab-control-plane"]
    project.up()
    assert "gpu-operator" not in {each["metadata"]["name"] for each in api.list("/api/v1/namespaces")}
    gpus = {each["metadata"]["name"]: each["status"]["allocatable"]["nvidia.com/gpu"] for each in api.list(NODES)}
    assert gpus == {name: count for name, (_, count, *_) in FLEET.items()}

    project.write_stack({**cluster, "gpuOperator": {}})
    project.up()
    project.destroy()
    assert processes.components(project.directory) == {}
