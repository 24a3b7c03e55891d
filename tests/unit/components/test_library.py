"""The components as a program of one's own uses them: plain values, outputs where they are allowed, and mistakes."""

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

import pulumi
import pytest

from kumulus import (
    DeviceClass,
    EmulatedCluster,
    ExistingCluster,
    Fault,
    HelmAddon,
    KindCluster,
    KwokCluster,
    KwokNodeGroup,
    PrometheusStack,
    Tenant,
    toolchain,
)
from kumulus.components.existing_cluster import with_secret_kubeconfig
from kumulus.model.contents import is_preview
from tests.support.program import CLUSTER, KUBECONFIG, STACK_ID, run
from tests.support.project import ROOT

POOL, RELEASE, NAMESPACE = "kumulus:index:NodePool", "kubernetes:helm.sh/v3:Release", "kumulus:index:Namespace"
PROVIDER = "pulumi:providers:kubernetes"
CAPACITY = {"cpu": 8, "memory": "32Gi", "pods": 110, "nvidia.com/gpu": 8}
ZONE: dict[str, Any] = {"zones": {"a": 1}, "capacity": CAPACITY}
CHART: dict[str, Any] = {"chart": "queue", "repo_url": "https://charts.example.com"}


def later(value: Any) -> pulumi.Output[Any]:
    """An output of another resource: of a preview it is unknown."""

    async def known() -> bool:
        return not pulumi.runtime.is_dry_run()

    async def secret() -> bool:
        return False

    async def data() -> Any:
        return value

    return pulumi.Output(set(), data(), asyncio.ensure_future(known()), asyncio.ensure_future(secret()))


def unknown(value: Any) -> bool:
    return isinstance(value, pulumi.output.Unknown)


def told(component: Callable[..., Any], name: str = "x", **arguments: Any) -> str:
    """What is said of a component's arguments, by a program that declares it in a cluster."""

    def program() -> None:
        given = dict(arguments)
        if component not in (KwokCluster, KindCluster, ExistingCluster, EmulatedCluster):
            KwokNodeGroup("nodes", cluster=(cluster := mine()), **ZONE)
            given.setdefault("cluster", cluster)
        component(name, **given)

    with pytest.raises(pulumi.RunError) as raised:
        run(program)
    return str(raised.value)


def mine() -> KwokCluster:
    return KwokCluster("mine")


# --- HelmAddon -------------------------------------------------------------------------------------------------------


def test_an_addon_of_plain_values_is_a_release_with_the_clusters_provider() -> None:
    program = run(
        lambda: HelmAddon("metrics", cluster=mine(), version="1.2.3", namespace="m", values={"a": {"b": 1}}, **CHART)
    )
    release = program.only(RELEASE)
    wanted = {
        "name": "metrics",
        "chart": "queue",
        "version": "1.2.3",
        "namespace": "m",
        "values": {"a": {"b": 1}},
        "repositoryOpts": {"repo": "https://charts.example.com"},
        "createNamespace": True,
        "timeout": 300,
        "atomic": False,
    }
    assert {key: release.inputs.get(key) for key in wanted} == wanted
    assert release.provider.startswith(f"{PROVIDER}::mine-kubernetes")
    assert program.only(PROVIDER).parent == "kumulus:index:KwokCluster::mine"


@pytest.mark.parametrize("preview", [False, True])
def test_an_addon_takes_outputs(preview: bool) -> None:
    def program() -> None:
        HelmAddon(
            "metrics",
            cluster=mine(),
            chart="queue",
            repo_url=later("https://charts.example.com"),
            version=later("1.2.3"),
            namespace=later("m"),
            values={"plain": 1, "auth": {"user": "u", "password": later("hunter2")}, "list": [later("x")]},
            timeout=later(10),
            repository_opts={"username": later("u"), "password": later("p")},
            max_history=later(3),
        )

    inputs = run(program, preview=preview).only(RELEASE).inputs
    values = inputs["values"]
    # What is known is shown, leaf by leaf.
    assert (values["plain"], values["auth"]["user"], inputs["name"]) == (1, "u", "metrics")
    if preview:
        assert all(map(unknown, (inputs["version"], inputs["namespace"], inputs["timeout"], inputs["maxHistory"])))
        assert unknown(values["auth"]["password"])
        assert unknown(values["list"])
    else:
        assert (inputs["version"], inputs["namespace"], inputs["timeout"]) == ("1.2.3", "m", 10)
        assert (values["auth"]["password"], values["list"], inputs["maxHistory"]) == ("hunter2", ["x"], 3)
        access = {"repo": "https://charts.example.com", "username": "u", "password": "p"}
        assert inputs["repositoryOpts"]["value"] == access


@pytest.mark.parametrize("preview", [False, True])
def test_all_of_an_addons_values_may_be_one_output(preview: bool) -> None:
    def program() -> None:
        HelmAddon("metrics", cluster=mine(), values=later({"a": 1}), repository_opts=later({"username": "u"}), **CHART)

    values = run(program, preview=preview).only(RELEASE).inputs["values"]
    assert unknown(values) if preview else values == {"a": 1}


def test_a_secret_output_stays_one() -> None:
    def program() -> None:
        values = {"open": 1, "password": pulumi.Output.secret("hunter2")}
        HelmAddon("metrics", cluster=mine(), values=values, **CHART)

    assert "values" in run(program).only(RELEASE).secret_inputs


def test_an_output_that_turns_out_wrong_is_told_when_it_is_known() -> None:
    def program() -> None:
        HelmAddon("metrics", cluster=mine(), namespace=later("A b"), **CHART)

    with pytest.raises(pulumi.RunError, match=r"1 problem in HelmAddon metrics\n  namespace: .*not a DNS-1123 name"):
        run(program)
    assert len(run(program, preview=True).of_type(RELEASE)) == 1


# --- KwokNodeGroup ---------------------------------------------------------------------------------------------------


def test_a_group_has_what_a_stack_files_group_has() -> None:
    def program() -> None:
        KwokNodeGroup(
            "gpu",
            cluster=mine(),
            zones={"rack-1": 2},
            regions={"rack-1": "site"},
            capacity=CAPACITY,
            instance_type="p5.48xlarge",
            gpu_product="NVIDIA-L40S",
            gpu_operator={"simulatedPool": "pool"},
            node_info={"architecture": "arm64"},
            declared_features=[],
            resource_slices={"count": 8},
            topology={"nodesPerRack": 1},
            shards=2,
        )

    inputs = run(program).only(POOL).inputs
    labels = inputs["labels"]
    # The catalog's machine completes the capacity.
    assert (inputs["capacity"]["cpu"], "ephemeral-storage" in inputs["capacity"]) == ("8", True)
    assert inputs["topology"] == {"rack": {"label": "topology.kumulus.io/rack", "nodes": 1}}
    assert labels["topology.kubernetes.io/region"] == "site"
    assert labels["run.ai/simulated-gpu-node-pool"] == "pool"
    assert inputs["nodeInfo"]["architecture"] == labels["kubernetes.io/arch"] == "arm64"
    assert inputs["declaredFeatures"] == []
    assert inputs["resourceSlices"]["count"] == 8
    assert inputs["gpu"]["product"] == "NVIDIA-L40S"
    assert inputs["shards"] == 2


def test_a_groups_nodes_may_have_names_and_no_labels_but_their_own() -> None:
    def program() -> None:
        KwokNodeGroup(
            "gpu",
            cluster=mine(),
            zones={"a": 2},
            named_nodes={"a": [{"name": "ip-10-0-3-17", "labels": {"example.com/rack": "r3"}}, {"name": "ip-2"}]},
            default_labels=False,
            capacity=CAPACITY,
        )

    inputs = run(program).only(POOL).inputs
    assert "ip-10-0-3-17" in json.dumps(inputs["nodes"])
    assert "kubernetes.io/arch" not in inputs["labels"]


@pytest.mark.parametrize("preview", [False, True])
@pytest.mark.parametrize("whole", [False, True])
def test_labels_and_annotations_may_be_known_later(preview: bool, whole: bool) -> None:
    def program() -> None:
        labels: Any = later({"team": "x", "open": "y"}) if whole else {"team": later("x"), "open": "y"}
        KwokNodeGroup(
            "g", cluster=mine(), zones={"a": 1}, capacity=CAPACITY, labels=labels, annotations={"n": later("1")}
        )

    inputs = run(program, preview=preview).only(POOL).inputs
    assert (inputs["replicas"], inputs["capacity"]["cpu"]) == (1, "8")
    if preview and whole:
        assert unknown(inputs["labels"])
        return
    # Kumulus' own stay.
    assert (inputs["labels"]["open"], inputs["labels"]["kumulus.io/pool"]) == ("y", "g-a")
    team, note = inputs["labels"]["team"], inputs["annotations"]["n"]
    assert unknown(team) and unknown(note) if preview else (team, note) == ("x", "1")


@pytest.mark.parametrize("label", ["topology.kubernetes.io/zone", "nvidia.com/gpu.product", "kubernetes.io/arch"])
def test_a_label_that_others_follow_from_is_plain(label: str) -> None:
    said = told(lambda name, **given: KwokNodeGroup(name, labels={label: later("x")}, **given), **ZONE)
    assert f'labels["{label}"]: is a label that Kumulus sets, and an output' in said


def test_nodes_wait_for_what_their_group_depends_on() -> None:
    def program() -> None:
        other = pulumi.CustomResource("a:b:C", "other", {})
        opts = pulumi.ResourceOptions(depends_on=[other])
        KwokNodeGroup("g", cluster=mine(), zones={"a": 1}, capacity=CAPACITY, opts=opts)

    assert "a:b:C::other" in run(program).only(POOL).depends_on


# --- Tenant ----------------------------------------------------------------------------------------------------------


def test_a_tenant_of_plain_values() -> None:
    rule = {"apiGroups": ["batch.volcano.sh"], "resources": ["jobs"], "verbs": ["get"]}
    program = run(
        lambda: Tenant(
            "research", cluster=mine(), quota={"pods": 5}, role="view", rules=[rule], pod_security="restricted"
        )
    )
    home = program.only(NAMESPACE).inputs
    assert home["name"] == "research"
    assert home["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    assert [each["spec"] for each in program.of_kind("ResourceQuota")] == [{"hard": {"pods": "5"}}]
    assert [each["rules"] for each in program.of_kind("Role")] == [[rule]]


@pytest.mark.parametrize("preview", [False, True])
@pytest.mark.parametrize("whole", [False, True])
def test_a_quota_may_be_known_later(preview: bool, whole: bool) -> None:
    def program() -> None:
        quota: Any = later({"pods": 5, "requests.cpu": "4"}) if whole else {"pods": later(5), "requests.cpu": 4}
        Tenant("research", cluster=mine(), quota=quota, labels={"cost": later("a1")})

    program_ = run(program, preview=preview)
    [quota], labels = program_.of_kind("ResourceQuota"), program_.only(NAMESPACE).inputs["labels"]
    hard = quota["spec"]["hard"]
    assert labels["kumulus.io/tenant"] == "research"
    if preview:
        assert unknown(labels["cost"])
        assert unknown(hard) if whole else (unknown(hard["pods"]) and hard["requests.cpu"] == "4")
    else:
        assert (hard, labels["cost"]) == ({"pods": "5", "requests.cpu": "4"}, "a1")


# --- Fault -----------------------------------------------------------------------------------------------------------


def faulty(**arguments: Any) -> Callable[[], None]:
    def program() -> None:
        cluster = mine()
        KwokNodeGroup("gpu", cluster=cluster, zones={"a": 4, "b": 2}, capacity=CAPACITY)
        Fault("xid79", cluster=cluster, **arguments)

    return program


def test_a_fault_is_on_nodes_of_the_groups_declared_before() -> None:
    fault = run(faulty(kind="gpu-fell-off-bus", target={"zone": "b"})).only("kumulus:index:Fault")
    assert fault.inputs["nodes"] == {"gpu-b": "0-1"}
    assert fault.inputs["kind"] == "gpu-fell-off-bus"
    assert f"{POOL}::gpu-b" in fault.depends_on
    assert fault.deleted_with == f"{CLUSTER}::mine-control-plane"
    assert fault.parent == "pulumi:pulumi:Stack::kumulus-dev"


def test_a_fault_chooses_from_the_groups_it_is_given() -> None:
    def program() -> None:
        cluster = mine()
        KwokNodeGroup("cpu", cluster=cluster, zones={"a": 4}, capacity=CAPACITY)
        gpu = KwokNodeGroup("gpu", cluster=cluster, zones={"a": 1}, capacity=CAPACITY)
        Fault("down", cluster=cluster, node_groups=[gpu], kubelet="notReady")

    assert run(program).only("kumulus:index:Fault").inputs["nodes"] == {"gpu-a": "0"}


def test_two_faults_do_not_decide_the_same() -> None:
    def program() -> None:
        cluster = mine()
        KwokNodeGroup("gpu", cluster=cluster, **ZONE)
        Fault("one", cluster=cluster, labels={"a": "b"})
        Fault("two", cluster=cluster, labels={"a": "c"})

    with pytest.raises(pulumi.RunError, match=r"target: .* is decided by the fault one too"):
        run(program)


# --- clusters --------------------------------------------------------------------------------------------------------


def test_a_kwok_clusters_settings_are_arguments() -> None:
    program = run(
        lambda: KwokCluster(
            "mine",
            cluster_name="other",
            kubernetes_version="1.35.4",
            heartbeat_factor=5,
            runtime_config={"api/all": True},
            stage_objects=True,
        )
    )
    assert program.only(CLUSTER).inputs == {
        "name": "other",
        "runtime": "kwok",
        "stackId": STACK_ID,
        "kubernetesVersion": "v1.35.4",
        "options": {"heartbeatFactor": 5, "runtimeConfig": {"api/all": "true"}, "stageObjects": True},
        "contents": {},
    }


@pytest.mark.parametrize("preview", [False, True])
def test_a_cluster_says_whether_this_is_a_preview_also_without_a_stack_file(preview: bool) -> None:
    """Without that, the plugin could not tell an update that nobody has seen from one that was shown."""
    cluster = run(lambda: KwokCluster("mine"), preview=preview).only(CLUSTER)
    assert is_preview(cluster.inputs["contents"]) is preview


def test_a_kind_clusters_settings_are_arguments() -> None:
    config = {"kind": "Cluster", "apiVersion": "kind.x-k8s.io/v1alpha4"}
    program = run(lambda: KindCluster("mine", node_image="example.com/node:v1", kind_config=config))
    assert program.only(CLUSTER).inputs["options"] == {"nodeImage": "example.com/node:v1", "kindConfig": config}


CONTENT = "clusters: []\nusers: []\n"


@pytest.mark.parametrize("preview", [False, True])
def test_an_existing_clusters_kubeconfig_may_be_an_output_and_is_a_secret_then(preview: bool) -> None:
    def program() -> None:
        ExistingCluster("prod", kubeconfig=later(CONTENT), context=later("c"), needs=["nodes"])

    cluster = run(program, preview=preview).only(CLUSTER)
    if preview:
        assert all(unknown(cluster.inputs["options"][key]) for key in ("kubeconfig", "context"))
    else:
        assert cluster.secret_inputs == {"options"}
        options = {"kubeconfig": CONTENT, "context": "c", "needs": ["nodes"]}
        assert cluster.inputs["options"]["value"] == options


def test_an_existing_clusters_kubeconfig_is_a_path_or_a_text(tmp_path: Any) -> None:
    path = run(lambda: ExistingCluster("prod", kubeconfig=str(tmp_path / "config"))).only(CLUSTER)
    assert path.inputs["options"] == {"kubeconfig": str(tmp_path / "config"), "needs": []}
    assert not path.secret_inputs
    assert run(lambda: ExistingCluster("prod", kubeconfig=CONTENT)).only(CLUSTER).secret_inputs == {"options"}
    # An extra's runtime whose clusters outlive the stack may have no such option.
    assert with_secret_kubeconfig({"needs": []}) == {"needs": []}


def test_a_described_cluster_is_a_cluster_to_put_more_into() -> None:
    spec: dict[str, Any] = {"nodeGroups": [{"name": "a", "placement": [], "nodeTemplate": {"capacity": {"pods": "1"}}}]}
    spec["nodeGroups"][0]["placement"] = [{"availabilityZone": "z", "replicas": 2}]

    def program() -> None:
        cluster = EmulatedCluster("fleet", spec=spec)
        KwokNodeGroup("more", cluster=cluster, zones={"z": 1}, capacity=CAPACITY)
        Tenant("research", cluster=cluster)
        Fault("down", cluster=cluster, target={"nodeGroup": "a"}, kubelet="notReady")

    program_ = run(program)
    assert program_.only(CLUSTER).inputs["name"] == "fleet"
    assert {name: pool.inputs["kubeconfig"] for name, pool in program_.of_type(POOL).items()} == {
        "a-z": KUBECONFIG,
        "more-z": KUBECONFIG,
    }
    assert program_.only("kumulus:index:Fault").inputs["nodes"] == {"a-z": "0-1"}
    assert {each["metadata"]["namespace"] for each in program_.of_kind("ServiceAccount")} == {"research"}


# --- the others ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preview", [False, True])
def test_a_device_classs_driver_may_be_known_later(preview: bool) -> None:
    program = run(lambda: DeviceClass("gpu", cluster=mine(), driver=later("gpu.example.com")), preview=preview)
    [found] = program.of_kind("DeviceClass")
    assert found["metadata"]["name"] == "gpu"
    expression = found["spec"]["selectors"][0]["cel"]["expression"]
    assert unknown(expression) if preview else expression == 'device.driver == "gpu.example.com"'


@pytest.mark.parametrize("preview", [False, True])
def test_a_prometheus_stacks_values_may_be_known_later_and_lie_on_its_own(preview: bool) -> None:
    def program() -> None:
        values = {"grafana": {"adminPassword": later("hunter2"), "enabled": False}}
        PrometheusStack(
            "o", cluster=KindCluster("mine"), observability={"retention": "3h"}, values=values, version="1.0.0"
        )

    inputs = run(program, preview=preview).only(RELEASE).inputs
    assert (inputs["name"], inputs["version"], inputs["namespace"]) == ("kube-prometheus-stack", "1.0.0", "monitoring")
    assert inputs["values"]["prometheus"]["prometheusSpec"]["retention"] == "3h"
    grafana = inputs["values"]["grafana"]
    assert (grafana["enabled"], grafana["sidecar"]["dashboards"]["enabled"]) == (False, True)
    assert unknown(grafana["adminPassword"]) if preview else grafana["adminPassword"] == "hunter2"


# --- mistakes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("component", "arguments", "said"),
    [
        (HelmAddon, {**CHART, "verison": "1"}, "verison: is not a known argument; write version"),
        (HelmAddon, {}, "chart: is missing; write chart=…"),
        (HelmAddon, {"chart": "queue"}, "repo_url: is missing; write the URL of the chart's repository"),
        (HelmAddon, {"chart": "./nowhere"}, "chart: the chart"),
        (HelmAddon, {**CHART, "repo_url": "charts"}, 'repo_url: "charts" is not the URL of a chart repository'),
        (HelmAddon, {**CHART, "skip_await": "no"}, 'skip_await: is "no", not true or false'),
        (HelmAddon, {**CHART, "repository_opts": {"user": "x"}}, "repository_opts.user: is not a known key"),
        (HelmAddon, {**CHART, "release_name": "A"}, 'release_name: "A" is not a DNS-1123 name; write a'),
        (KwokNodeGroup, {"capacity": CAPACITY}, "zones: is missing"),
        (KwokNodeGroup, {**ZONE, "zones": {"a": "many"}}, 'zones.a: is "many"'),
        (KwokNodeGroup, {**ZONE, "zones": {"a": -1}}, "zones.a: is -1, less than 0"),
        (KwokNodeGroup, {**ZONE, "zones": {"A_b": 1}}, "zones.A_b: "),
        (KwokNodeGroup, {**ZONE, "capacity": {"cpu": "many", "pods": "1"}}, "capacity.cpu: "),
        (KwokNodeGroup, {**ZONE, "capacity": {"cpu": "1"}}, "capacity.pods: "),
        (KwokNodeGroup, {**ZONE, "labels": {"kumulus.io/pool": "x"}}, 'labels["kumulus.io/pool"]: '),
        (KwokNodeGroup, {**ZONE, "taints": [{"key": "a", "effect": "Never"}]}, "taints[0].effect: "),
        (KwokNodeGroup, {**ZONE, "allocatable": {"pods": 200}}, "allocatable.pods: "),
        (KwokNodeGroup, {"zones": {"a": 1}}, "capacity: is missing"),
        (KwokNodeGroup, {"zones": {"a": 1}, "instance_type": "a3"}, "instance_type: "),
        (KwokNodeGroup, {**ZONE, "regions": {"b": "x"}}, "regions.b: is none of the zones"),
        (KwokNodeGroup, {**ZONE, "node_info": {"arch": "x"}}, "node_info.arch: "),
        (KwokNodeGroup, {**ZONE, "topology": {}}, "topology.nodesPerRack: is missing"),
        (Tenant, {"quota": {"pods": "x"}}, "quota.pods: "),
        (Tenant, {"role": "root"}, 'role: is "root"; write one of view, edit, admin'),
        (Tenant, {"namespace": "kube-x"}, 'namespace: "kube-x" is a namespace of Kubernetes\' own'),
        (Tenant, {"pod_security": "x"}, "pod_security: "),
        (Fault, {"kind": "nope"}, 'kind: "nope" is not in the catalog'),
        (Fault, {"kubelet": "gone", "target": {"zone": "b"}}, 'target.zone: "b" matches no node'),
        (Fault, {"kubelet": "gone", "exit_code": "1"}, "exit_code: "),
        (KwokCluster, {"heartbeat_factor": 0}, "heartbeat_factor: is 0, less than 1"),
        (KwokCluster, {"kubernetes_version": "1.35"}, 'kubernetes_version: is "1.35", not a whole Kubernetes version'),
        (KwokCluster, {"cluster_name": "A"}, 'cluster_name: "A" is not a DNS-1123 name; write a'),
        (KwokCluster, {"options": {}}, "options: is not a known argument"),
        (KindCluster, {"provider": "x"}, "provider: "),
        (ExistingCluster, {"needs": ["node"]}, 'needs: has "node"; write some of nodes, faults'),
        (ExistingCluster, {"kubeconfig": ""}, "kubeconfig: is not a path or a kubeconfig's text"),
        (DeviceClass, {"driver": "A b"}, "driver: "),
        (PrometheusStack, {"observability": {"retention": "1"}}, "observability.retention: "),
        (KwokNodeGroup, {**ZONE, "zones": ["a"]}, "zones: is a list; write a mapping: How many nodes are"),
        (KwokNodeGroup, {**ZONE, "zones": {None: 1}}, "zones[None]: "),
        (KwokNodeGroup, {**ZONE, "regions": "x"}, 'regions: is "x"; write a mapping'),
        (KwokNodeGroup, {**ZONE, "shards": "2"}, 'shards: is "2"; write a whole number'),
        (HelmAddon, {**CHART, "base": 1}, "base: is 1; write a text"),
        (HelmAddon, {**CHART, "cluster": "dev"}, 'cluster: is "dev"; write the component of a cluster'),
        (Fault, {"kubelet": "gone", "node_groups": ["a100"]}, "node_groups: is a list; write a list of KwokNodeGroup"),
        (Fault, {"kubelet": "gone", "repeat": "no"}, 'repeat: is "no"; write true or false'),
        (ExistingCluster, {"needs": "nodes"}, 'needs: is "nodes"; write a list'),
        (EmulatedCluster, {}, "clusterAddons, faults, tenants and so on"),
        (EmulatedCluster, {"spec": {}, "base": 3}, "base: is 3; write a text"),
        (EmulatedCluster, {"spec": {"nodegroups": []}}, "spec.nodegroups: is not a known key; write nodeGroups"),
    ],
)
def test_a_mistake_is_told_with_the_argument_and_the_remedy(
    component: Any, arguments: dict[str, Any], said: str
) -> None:
    found = told(component, **arguments)
    assert found.startswith(f"1 problem in {component.__name__} x\n  ")
    assert said in found


@pytest.mark.parametrize(
    ("component", "arguments", "remedy"),
    [
        (KwokNodeGroup, {"zones": {"a": 1}, "instance_type": "none"}, "write the shape as capacity"),
        (
            KwokNodeGroup,
            {**ZONE, "resource_slices": {"count": 1}},
            "write gpu_product: NVIDIA-H100-80GB-HBM3, or resource",
        ),
        (Fault, {"kind": "price-change"}, "write price_factor: 2 for twice the price"),
        (
            EmulatedCluster,
            {"spec": {"nodeGroups": [{"name": "g", "instanceType": "x"}]}},
            "shape as nodeTemplate.capacity",
        ),
    ],
)
def test_a_remedy_has_the_names_of_the_arguments(component: Any, arguments: dict[str, Any], remedy: str) -> None:
    assert remedy in told(component, **arguments)


@pytest.mark.parametrize(
    ("component", "arguments", "places"),
    [
        (KwokNodeGroup, {"zones": {"a": -1}, "capacity": {"cpu": "x", "pods": "1"}}, "capacity.cpu zones.a"),
        (
            KwokNodeGroup,
            {"capacity": {**CAPACITY, "cpu": "x"}, "label": {}, "labels": {"a b": "x"}},
            'label zones capacity.cpu labels["a b"]',
        ),
        (KwokNodeGroup, {"zones": {"a": -1}, "capacty": CAPACITY, "regions": {"b": "x"}}, "capacty regions.b zones.a"),
        (KwokNodeGroup, {"zoes": {"a": 1}, "capacity": {**CAPACITY, "cpu": "x"}}, "zoes capacity.cpu"),
        (KwokNodeGroup, {"zones": [], "instance_type": "a3", "shards": "x"}, "zones shards instance_type"),
        (Tenant, {"qouta": {}, "role": "root", "namespace": 5}, "qouta namespace role"),
        (Fault, {"kidn": "xid-79", "exit_code": 999}, "kidn exit_code"),
        (Fault, {"kind": "xid-79", "nodes": 1, "target": {"nodeGroup": "b"}}, "nodes target.nodeGroup"),
        (Fault, {"kind": "xid-79", "node_groups": "x", "target": {"count": "x"}}, "node_groups target.count"),
        (KwokCluster, {"ports": 1, "heartbeat_factor": 0}, "ports heartbeat_factor"),
        (KindCluster, {"ports": 1, "provider": "x"}, "ports provider"),
        (
            ExistingCluster,
            {"contxt": "x", "needs": ["node"], "cluster_name": "A", "kubeconfig": ""},
            "contxt needs cluster_name kubeconfig",
        ),
        (HelmAddon, {"verison": "1", "skip_await": "no"}, "verison chart skip_await"),
        (HelmAddon, {"chart": "queue", "skip_await": "no"}, "repo_url skip_await"),
        (DeviceClass, {"drivr": "x", "class_name": "A"}, "drivr class_name"),
        (PrometheusStack, {"observability": {"retention": "1"}, "version": "x", "x": 1}, "x observability.retention"),
        (EmulatedCluster, {"bas": ".", "spec": {"nodegroups": []}}, "bas spec.nodegroups"),
    ],
)
def test_all_mistakes_are_told_at_once(component: Any, arguments: dict[str, Any], places: str) -> None:
    lines = told(component, **arguments).splitlines()
    found = [line.strip().partition(": ")[0] for line in lines]
    wanted = places.split(" ", 3)
    assert found[1:] == wanted
    assert lines[0] == f"{len(wanted)} problems in {component.__name__} x"


def test_a_mistake_is_told_even_if_what_the_component_needs_has_one() -> None:
    def program() -> None:
        cluster = mine()
        group = KwokNodeGroup("g", cluster=cluster, zones={"a": -1}, capacity=CAPACITY)
        wrong: dict[str, Any] = {"node_groups": [group], "knd": "xid-79"}
        Fault("f", cluster=cluster, **wrong)

    with pytest.raises(pulumi.RunError) as raised:
        run(program)
    assert "1 problem in KwokNodeGroup g\n  zones.a" in str(raised.value)
    assert str(raised.value).endswith("1 problem in Fault f\n  knd: is not a known argument; write kind")


@pytest.mark.parametrize(
    ("component", "arguments", "place"),
    [
        (KwokNodeGroup, {**ZONE, "zones": {"a": later}}, "zones.a"),
        (KwokNodeGroup, {**ZONE, "capacity": {"cpu": later}}, "capacity.cpu"),
        (Fault, {"kind": later}, "kind"),
        (KwokCluster, {"api_server_port": later}, "api_server_port"),
        (Tenant, {"namespace": later}, "namespace"),
        (EmulatedCluster, {"spec": {"name": later}}, "spec.name"),
    ],
)
def test_an_output_where_resources_follow_from_the_value_is_told(component: Any, arguments: Any, place: str) -> None:
    def made(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: made(each) for key, each in value.items()}
        return pulumi.Output.from_input("x") if value is later else value

    def program() -> None:
        cluster = {} if component in (KwokCluster, EmulatedCluster) else {"cluster": mine()}
        component("x", **cluster, **made(arguments))

    expected = f"  {place}: is an output, known too late: resources follow from it; write a plain value"
    with pytest.raises(pulumi.RunError, match=re.escape(expected)):
        run(program)


def test_a_local_chart_is_found_from_the_base() -> None:
    program = run(lambda: HelmAddon("hello", cluster=mine(), chart="./tests/support/hello-chart", base=str(ROOT)))
    assert program.only(RELEASE).inputs["chart"] == str(ROOT / "tests" / "support" / "hello-chart")


def test_nodes_have_the_version_of_their_cluster() -> None:
    def program() -> None:
        group: dict[str, Any] = {"capacity": CAPACITY}
        KwokNodeGroup("pinned", cluster=KwokCluster("a"), zones={"a": 1}, **group)
        of_ours = KwokCluster("b", kubernetes_version="1.35.4")
        KwokNodeGroup("own", cluster=of_ours, zones={"a": 1}, **group)
        KwokNodeGroup("other", cluster=of_ours, zones={"a": 1}, node_info={"kubeletVersion": "v1.34.0"}, **group)
        emulated = EmulatedCluster("c", spec={"kubernetesVersion": "v1.36.3"})
        KwokNodeGroup("within", cluster=emulated, zones={"a": 1}, **group)
        later_known = KwokCluster("d", kubernetes_version=later("1.35.4"))
        KwokNodeGroup("later", cluster=later_known, zones={"a": 1}, **group)

    versions = {name: pool.inputs["nodeInfo"]["kubeletVersion"] for name, pool in run(program).of_type(POOL).items()}
    assert versions == {
        "pinned-a": f"v{toolchain.kubernetes_versions()[0]}",
        "own-a": "v1.35.4",
        "other-a": "v1.34.0",
        "within-a": "v1.36.3",
        "later-a": "fake",
    }
