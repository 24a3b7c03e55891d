"""What a stack's fake GPU operator is told of the groups, how its programs are started, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus.extras.gpu_operator import dra
from kumulus.extras.gpu_operator.addition import ADDITION, topology
from kumulus.extras.processes.containers import NODE
from kumulus.host.ports import Claims
from kumulus.model.errors import SpecError
from kumulus.model.gfd import DRA_IMAGE, GPU_OPERATOR
from kumulus.runtimes.kwok import configuration
from kumulus.runtimes.kwok.layout import Layout
from kumulus.runtimes.kwok.section import KwokOptions
from kumulus.runtimes.section import option_problems
from kumulus.stackfile.kwok_options import local_options
from kumulus.stackfile.load import load

UPDATER, PLUGIN = GPU_OPERATOR
OURS: dict[str, Any] = {"gpuOperator": {}}


def group(name: str = "a100", **fields: Any) -> dict[str, Any]:
    placement = [{"availabilityZone": zone, "replicas": 2} for zone in ("a", "b")]
    return {"name": name, "instanceType": "a2-ultragpu-8g", "placement": placement, **OURS, **fields}


def asked(base: Path, *groups: dict[str, Any], binaries: str = "bin") -> dict[str, Any]:
    """The cluster's options, as they reach the plugin through Pulumi: its numbers are floats."""
    (base / "bin").mkdir(exist_ok=True)
    for name in GPU_OPERATOR.values():
        (base / "bin" / name).touch(mode=0o755)
    stack = {"gpuOperator": {"binaries": binaries}, "nodeGroups": groups or [group()]}
    options = local_options(load({"cluster": stack}, "dev", base))
    assert option_problems(KwokOptions, options) == {}
    return dict(json.loads(json.dumps(options), parse_int=float))


def test_its_pools_follow_from_the_groups(tmp_path: Path) -> None:
    plain = group("plain", gpuOperator=None)
    small = group("small", instanceType="g6e.12xlarge", gpuOperator={"simulatedPool": "l40s"})
    again = group("again", instanceType="g6e.12xlarge", gpuOperator={"simulatedPool": "l40s"})
    assert yaml.safe_load(topology(asked(tmp_path, group(), plain, small, again))) == {
        "nodePoolLabelKey": "run.ai/simulated-gpu-node-pool",
        "migStrategy": "mixed",
        "nodePools": {
            "a100": {"gpuProduct": "NVIDIA-A100-SXM4-80GB", "gpuCount": 8, "gpuMemory": 81920},
            "l40s": {"gpuProduct": "NVIDIA-L40S", "gpuCount": 4, "gpuMemory": 46068},
        },
    }


def test_both_programs_are_told_where_the_cluster_and_its_config_map_are_and_get_no_port(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "cluster")
    (layout.directory / "bin").mkdir(parents=True)
    options = asked(tmp_path)
    with Claims() as claims:
        settings = ADDITION.configured({"components": [{"name": "etcd"}]}, layout, options, claims)
        assert ADDITION.configured(settings, layout, {}, claims) == {"components": [{"name": "etcd"}]}
    _, updater, plugin = settings["components"]
    assert (updater["name"], updater["links"]) == (UPDATER, ["kube-apiserver", "kwok-controller"])
    assert (plugin["name"], plugin["links"]) == (PLUGIN, [UPDATER])
    for each in (updater, plugin):
        assert (each["args"], each["ports"]) == ([], [])
        assert {one["name"]: one["value"] for one in each["envs"]} == {
            "KUBECONFIG": str(layout.kubeconfig),
            "TOPOLOGY_CM_NAME": "topology",
            "TOPOLOGY_CM_NAMESPACE": "gpu-operator",
            "FAKE_GPU_OPERATOR_NAMESPACE": "gpu-operator",
            "RESOURCE_RESERVATION_NAMESPACE": "kai-resource-reservation",
            "PROMETHEUS_URL": "http://127.0.0.1:9",
            "DISABLE_NODE_LABELING": "true",
        }
        assert Path(each["binary"]).readlink() == tmp_path / "bin" / GPU_OPERATOR[each["name"]]


def test_other_pools_restart_what_reads_them_and_a_place_or_an_order_nothing(tmp_path: Path) -> None:
    before = asked(tmp_path, group(), group("b"))
    pools = before["gpuOperator"]["pools"]
    turned = {"gpuOperator": {**before["gpuOperator"], "pools": dict(reversed(pools.items()))}}
    parts = configuration.component_fingerprints(before)
    assert {UPDATER, PLUGIN} <= parts.keys()
    assert configuration.component_fingerprints(turned) == parts
    then, now = ADDITION.fingerprints(before), ADDITION.fingerprints(asked(tmp_path, group()))
    assert {name for name in now if now[name] != then[name]} == {UPDATER}
    other = ADDITION.fingerprints(asked(tmp_path, group(), group("b"), binaries=""))
    assert {name for name in other if other[name] != then[name]} == {UPDATER, PLUGIN}
    assert ADDITION.fingerprints({}) == {}


def test_a_preview_says_what_becomes_of_it(tmp_path: Path) -> None:
    one, two = asked(tmp_path), asked(tmp_path, group(), group("b", instanceType="g6e.12xlarge"))
    started = ["gpuOperator: the fake GPU operator is started, with a100 (8 NVIDIA-A100-SXM4-80GB)"]
    assert ADDITION.announced(one) == started
    assert ADDITION.described({}, one) == started
    assert ADDITION.described(one, two) == [
        "gpuOperator: the fake GPU operator is restarted, with a100 (8 NVIDIA-A100-SXM4-80GB), b (4 NVIDIA-L40S)"
    ]
    assert ADDITION.described(two, {}) == [
        "gpuOperator: the fake GPU operator goes, with its namespace; nodes keep their GPUs"
    ]
    assert ADDITION.described(one, one) == []


PLUGIN_OF_DRA = {"kwok": {"processes": {DRA_IMAGE: "./bin/kwok-dra-plugin"}}}


def test_its_dra_plugin_may_write_slices_and_is_a_pod_of_the_node_whose_pods_are_processes(tmp_path: Path) -> None:
    stack = {"gpuOperator": {"dra": True}, "nodeGroups": [group()], **PLUGIN_OF_DRA}
    options = local_options(load({"cluster": stack}, "dev", tmp_path))
    assert option_problems(KwokOptions, options) == {}
    assert ADDITION.objects(options)
    assert ADDITION.described(options, {**options, "gpuOperator": {**options["gpuOperator"], "dra": False}}) == [
        "gpuOperator: its DRA plugin ends, and its slices go"
    ]
    made = {each["kind"]: each for each in dra.manifests({"TOPOLOGY_CM_NAME": "topology"})}
    pod = made["Deployment"]["spec"]["template"]["spec"]
    assert (pod["nodeName"], pod["containers"][0]["image"]) == (NODE, DRA_IMAGE)
    assert pod["containers"][0]["env"] == [{"name": "TOPOLOGY_CM_NAME", "value": "topology"}]
    account = made["ServiceAccount"]["metadata"]
    assert pod["serviceAccountName"] == account["name"]
    assert made["ClusterRoleBinding"]["subjects"] == [{"kind": "ServiceAccount", **account}]
    assert made["ClusterRoleBinding"]["roleRef"]["name"] == made["ClusterRole"]["metadata"]["name"]
    assert {"create", "update", "delete"} < set(made["ClusterRole"]["rules"][1]["verbs"])
    assert made["DeviceClass"]["metadata"]["name"] == "gpu.nvidia.com"


SLICES = {"resourceSlices": {"extendedResource": False}}


@pytest.mark.parametrize(
    ("cluster", "words"),
    [
        ({"nodeGroups": [group(gpuOperator=None)]}, "gpuOperator: has nothing to do: no node group has one; write"),
        ({}, "gpuOperator: has nothing to do"),
        ({"nodeGroups": [group(instanceType="e2-standard-4")]}, "nodeGroups[0].gpuOperator: is without GPUs that"),
        ({"nodeGroups": [group(), group("b", **SLICES)]}, "nodeGroups[1].gpuOperator: is without GPUs that"),
        (
            {"nodeGroups": [group(), group("b", gpuOperator={"simulatedPool": "a100"}, gpuProduct="NVIDIA-L40S")]},
            "nodeGroups[1].gpuOperator.simulatedPool: a100 has other GPUs in another group",
        ),
        ({"gpuOperator": {"binaries": "none"}}, "none/status-updater is no program that can be run; write the folder"),
        (
            {"runtime": "kind"},
            "gpuOperator: is not for the runtime kind, whose nodes run its images; install its chart by clusterAddons, "
            "oci://ghcr.io/run-ai/fake-gpu-operator/fake-gpu-operator, or write runtime: kwok",
        ),
        ({"gpuOperator": {"dra": True}, "nodeGroups": [group()]}, "kwok.processes does not name its image; write kwok"),
        (
            {"gpuOperator": {"dra": True}, "nodeGroups": [group(resourceSlices={})], **PLUGIN_OF_DRA},
            "nodeGroups[0].resourceSlices: are of gpu.nvidia.com, whose devices the operator's DRA plugin publishes",
        ),
        ({"runtime": "existing", "existing": {"context": "x"}}, "gpuOperator: is not for the runtime existing"),
    ],
)
def test_what_it_cannot_work_with_is_refused(tmp_path: Path, cluster: dict[str, Any], words: str) -> None:
    with pytest.raises(SpecError) as caught:
        load({"cluster": {**OURS, **cluster}}, "dev", tmp_path)
    assert words in str(caught.value)
