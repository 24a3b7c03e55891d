"""The components under Pulumi's mocks: what they register, with which inputs, and how it hangs together."""

import json
import runpy
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pulumi
import pytest

from kumulus import EmulatedCluster, KwokCluster, KwokNodeGroup
from kumulus.components.helm_release import chart_source
from kumulus.model.pool_form import pool_to_properties
from kumulus.provider.resources.registry import resources
from kumulus.stackfile.addons import Addon
from kumulus.stackfile.load import LoadedCluster, load
from kumulus.stackfile.secrets import Secrets
from tests.support.program import KUBECONFIG, OBJECT, STACK_ID, Program, refused, run

ROOT = Path(__file__).resolve().parents[3]
CLUSTER, POOL, LIFETIME = "kumulus:index:Cluster", "kumulus:index:NodePool", "kumulus:index:Lifetime"
RELEASE, PROVIDER = "kubernetes:helm.sh/v3:Release", "pulumi:providers:kubernetes"


GROUPS: list[dict[str, Any]] = [
    {
        "name": "a100",
        "placement": [
            {"availabilityZone": "use1", "replicas": 5},
            {"availabilityZone": "use2", "replicas": 3},
        ],
        "nodeTemplate": {
            "metadata": {"labels": {"team": "search"}, "annotations": {"example.com/note": "x"}},
            "capacity": {"cpu": "96", "memory": "1360Gi", "pods": "110", "nvidia.com/gpu": "8"},
        },
    },
    {
        "name": "cpu",
        "placement": [{"availabilityZone": "use1", "replicas": 2}],
        "nodeTemplate": {"taints": [], "capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"}},
    },
]


def spec(**cluster: Any) -> LoadedCluster:
    return load({"cluster": {"nodeGroups": GROUPS, **cluster}}, "dev", ROOT)


def emulated(loaded: LoadedCluster, **options: Any) -> Callable[[], EmulatedCluster]:
    return lambda: EmulatedCluster("dev", loaded=loaded, base=ROOT, **options)


def built(loaded: LoadedCluster) -> tuple[EmulatedCluster, Program]:
    made: list[EmulatedCluster] = []
    program = run(lambda: made.append(emulated(loaded)()))
    return made[0], program


# --- the stack's identity --------------------------------------------------------------------------------------------


def test_a_program_has_one_identity_however_many_clusters_it_declares() -> None:
    def program() -> None:
        for name in ("one", "two"):
            KwokNodeGroup("gpu-" + name, cluster=KwokCluster(name), zones={"a": 1}, capacity={"pods": "110"})

    found = run(program)
    identity = found.only("kumulus:index:StackIdentity")
    assert identity.parent == "pulumi:pulumi:Stack::kumulus-dev"
    carrying = [*found.of_type(CLUSTER).values(), *found.of_type(POOL).values()]
    assert len(carrying) == 4
    assert {each.inputs["stackId"] for each in carrying} == {STACK_ID}


@pytest.mark.parametrize(("runtime", "marked"), [("existing", {STACK_ID}), ("kind", {None}), ("kwok", set())])
def test_objects_of_other_providers_carry_it_where_others_can_be_and_those_of_the_plugin_everywhere(
    runtime: str, marked: set[str | None], tmp_path: Path
) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text("clusters: []\nusers: []\n")
    where = {"existing": {"kubeconfig": str(file)}} if runtime == "existing" else {}
    tenants = [{"name": "research", "quota": {"pods": 5}}]
    program = run(emulated(spec(runtime=runtime, tenants=tenants, **where)))
    ours = program.of_type(OBJECT).values()
    assert len(ours) > 5
    assert {each.inputs["stackId"] for each in ours} == {STACK_ID}
    # Those of KWOK, in a cluster whose nodes run containers.
    made = [each for each in program.resources if each.type.startswith("kubernetes:") and "helm" not in each.type]
    assert len(made) > 5 or runtime == "kwok"
    assert {each.inputs["metadata"]["labels"].get("kumulus.io/stack-id") for each in made} == marked


# --- EmulatedCluster -------------------------------------------------------------------------------------------------


def test_a_spec_becomes_one_cluster_and_one_pool_for_each_group_and_zone() -> None:
    loaded = spec(kubernetesVersion="1.35.4", kwok={"apiServerPort": 7000})
    program = run(emulated(loaded))
    cluster = program.only(CLUSTER)
    assert cluster.inputs == {
        "name": "dev",
        "runtime": "kwok",
        "kubernetesVersion": "v1.35.4",
        "options": {"apiServerPort": 7000},
        "stackId": STACK_ID,
        "contents": {"faults": "", "pools": "a100-use1,a100-use2,cpu-use1", "nodes": 10},
    }
    pools = program.of_type(POOL)
    assert sorted(pools) == ["a100-use1", "a100-use2", "cpu-use1"]
    place = {"clusterName": "dev", "kubeconfig": KUBECONFIG, "clusterIdentity": "uid-1", "stackId": STACK_ID}
    for pool in loaded.pools:
        assert pools[pool.name].inputs == {**place, **json.loads(json.dumps(pool_to_properties(pool)))}


def test_what_a_spec_leaves_to_the_plugin_is_not_sent() -> None:
    made, program = built(spec())
    left = {"name": "dev", "runtime": "kwok", "options": {}, "contents": {}, "stackId": STACK_ID}
    assert {**program.only(CLUSTER).inputs, "contents": {}} == left
    assert made.prometheus is None


def test_a_preview_says_that_it_is_one() -> None:
    """So that the plugin tells what goes only where nothing has gone yet."""
    assert "preview" not in run(emulated(spec())).only(CLUSTER).inputs["contents"]
    assert run(emulated(spec()), preview=True).only(CLUSTER).inputs["contents"]["preview"] is True


def test_nodes_belong_to_the_cluster_and_go_with_it() -> None:
    program = run(emulated(spec()))
    cluster = f"{CLUSTER}::{program.only(CLUSTER).name}"
    for pool in program.of_type(POOL).values():
        assert pool.deleted_with == cluster
        assert cluster in pool.depends_on


def test_a_resource_remembers_where_it_was_declared_and_not_the_whole_stack_of_calls() -> None:
    """The state has it of every resource."""
    assert max(resource.frames for resource in run(emulated(spec())).resources) in (1, 2)
    assert not hasattr(sys, "tracebacklimit")


def test_observability_is_an_option_of_the_cluster_and_tells_where_prometheus_answers() -> None:
    made, program = built(spec(observability={"retention": "3h"}))
    options = program.only(CLUSTER).inputs["options"]
    assert options["observability"]["retention"] == "3h"
    assert options["observability"]["memory"] == "1Gi"
    # The nodes' own metrics are what metrics-server and Prometheus read.
    assert options["podUsage"] == "gpus"
    assert made.prometheus is not None


def test_in_a_first_preview_the_kubeconfig_is_known_and_the_identity_is_not() -> None:
    program = run(emulated(spec()), preview=True)
    for pool in program.of_type(POOL).values():
        assert pool.inputs["kubeconfig"] == KUBECONFIG
        assert isinstance(pool.inputs["clusterIdentity"], pulumi.output.Unknown)


def test_the_fleets_totals_are_told() -> None:
    made, program = built(spec())
    assert (made.cluster_name, made.node_count) == ("dev", 10)
    assert made.capacity == {"gpus": 64, "nvidia.com/gpu": "64", "cpu": "784", "memory": "10944Gi", "pods": "1100"}
    assert made.node_groups == {
        "a100": {"nodes": 8, "gpus": 64, "zones": "use1 5, use2 3"},
        "cpu": {"nodes": 2, "gpus": 0, "zones": "use1 2"},
    }
    told = program.outputs["kumulus:index:EmulatedCluster::dev"]
    wanted = {"kubeconfig": KUBECONFIG, "clusterName": "dev", "nodeCount": 10, "identity": "uid-1"}
    assert {key: told[key] for key in wanted} == wanted


def test_every_component_registers_its_outputs() -> None:
    program = run(emulated(spec(clusterAddons=[ADDON])))
    # What the plugin serves are no components.
    ours = [r for r in program.resources if r.type.startswith("kumulus:") and r.type not in resources()]
    components = {f"{r.type}::{r.name}" for r in ours}
    assert components <= set(program.outputs)


def test_options_of_the_component_are_not_handed_down_to_its_children() -> None:
    def program() -> None:
        other = pulumi.CustomResource("a:b:C", "other", {})
        emulated(spec(), opts=pulumi.ResourceOptions(depends_on=[other]))()

    depending = {r.type for r in run(program).resources if "a:b:C::other" in r.depends_on}
    assert depending == {"kumulus:index:EmulatedCluster"}


def test_a_cluster_of_another_runtime_is_the_same_resource_and_so_replaced() -> None:
    tokens = {each: f"kumulus:index:{each.capitalize()}Cluster" for each in ("kwok", "kind", "existing")}
    for runtime, token in tokens.items():
        assert run(emulated(spec(runtime=runtime))).only(token).formerly >= set(tokens.values()) - {token}


def test_a_kind_cluster_gets_its_settings_and_kinds_own_configuration() -> None:
    config = {"kind": "Cluster", "apiVersion": "kind.x-k8s.io/v1alpha4", "nodes": [{"role": "control-plane"}]}
    settings = {"nodeImage": "example.com/node:v1", "wait": "5m"}
    program = run(emulated(spec(runtime="kind", kindConfig=config, kind=settings, clusterAddons=[ADDON])))
    cluster = program.only(CLUSTER)
    assert cluster.parent == "kumulus:index:KindCluster::dev"
    assert (cluster.inputs["runtime"], cluster.inputs["options"]) == ("kind", {**settings, "kindConfig": config})
    # Real nodes run the add-ons: no pool stands in for them, and nobody says that they are emulated.
    assert "system" not in {pool.inputs["name"] for pool in program.of_type(POOL).values()}
    assert not any("emulated" in line for line in program.said)


def test_what_is_put_into_an_existing_cluster_has_to_be_removed_from_it() -> None:
    content = "clusters: []\nusers: []\n"
    existing = {"kubeconfig": content, "context": "prod"}
    cluster_of = {"cluster": {"nodeGroups": GROUPS, "runtime": "existing", "existing": existing}}
    loaded = load(cluster_of, "dev", ROOT, secrets=Secrets((("existing", "kubeconfig"),)))
    program = run(emulated(loaded))
    cluster = program.only(CLUSTER)
    assert cluster.inputs["runtime"] == "existing"
    assert cluster.secret_inputs == {"options"}
    # What has a secret in it comes back as one.
    options = {"kubeconfig": content, "context": "prod", "needs": ["nodes", "stages", "kwok"]}
    assert cluster.inputs["options"]["value"] == options
    assert program.of_type(POOL)
    assert {pool.deleted_with for pool in program.of_type(POOL).values()} == {""}
    assert not program.of_type(LIFETIME)


@pytest.mark.parametrize("preview", [True, False])
def test_nothing_is_declared_for_a_cluster_that_does_not_say_whether_kwok_is_there(preview: bool) -> None:
    """Otherwise KWOK is installed beside somebody else's, and this stack's stages are removed."""
    existing = {"kubeconfig": "/nowhere", "context": "unreachable"}
    said = refused(emulated(spec(runtime="existing", existing=existing)), preview=preview)
    assert said == "it is not reachable"


# --- device classes --------------------------------------------------------------------------------------------------


def test_each_drivers_devices_have_a_class_that_goes_with_the_cluster() -> None:
    groups = [
        {**GROUPS[0], "name": "a", "gpuProduct": "NVIDIA-L40S", "resourceSlices": {}},
        {**GROUPS[0], "name": "b", "gpuProduct": "NVIDIA-H200", "resourceSlices": {"extendedResource": False}},
        {**GROUPS[0], "name": "c", "resourceSlices": {"driver": "gpu.example.com", "count": 2, "deviceClass": "mine"}},
        {**GROUPS[0], "name": "d", "resourceSlices": {"driver": "x.example.com", "count": 2, "deviceClass": ""}},
    ]
    program = run(emulated(spec(nodeGroups=groups)))
    expressions = {
        each["metadata"]["name"]: each["spec"]["selectors"][0]["cel"]["expression"]
        for each in program.of_kind("DeviceClass")
    }
    assert expressions == {
        "gpu.nvidia.com": 'device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].type == "gpu"',
        "mine": 'device.driver == "gpu.example.com"',
    }
    for each in program.of_type(OBJECT).values():
        assert each.deleted_with == f"{CLUSTER}::dev-control-plane"
    assert program.of_type(PROVIDER) == {}
    pools = program.of_type(POOL)
    assert pools["c-use1"].inputs["resourceSlices"]["count"] == 2
    assert "nvidia.com/gpu" not in pools["b-use1"].inputs["capacity"]


# --- add-ons ---------------------------------------------------------------------------------------------------------

ADDON: dict[str, Any] = {
    "name": "prometheus",
    "repoName": "prometheus-community",
    "repoURL": "https://prometheus-community.github.io/helm-charts",
    "namespace": "monitoring",
    "chart": "prometheus-community/kube-prometheus-stack",
    "version": "75.16.1",
    "valuesObject": "grafana:\n  adminPassword: admin\n  replicas: 2\n",
    "timeout": 120,
    "atomic": True,
}


def test_an_addon_is_a_helm_release() -> None:
    release = run(emulated(spec(clusterAddons=[ADDON]))).only(RELEASE)
    wanted = {
        "name": "prometheus",
        "namespace": "monitoring",
        "chart": "kube-prometheus-stack",
        "version": "75.16.1",
        "repositoryOpts": {"repo": "https://prometheus-community.github.io/helm-charts"},
        "values": {"grafana": {"adminPassword": "admin", "replicas": 2}},
        "createNamespace": True,
        "timeout": 120,
        "atomic": True,
        "skipAwait": False,
    }
    assert {key: release.inputs.get(key) for key in wanted} == wanted
    assert release.parent == "kumulus:index:HelmAddon::prometheus"
    assert release.deleted_with == f"{LIFETIME}::dev-lifetime"
    assert not release.delete_before_replace


def test_a_chart_that_cannot_be_had_is_told_before_anything_is_declared() -> None:
    lost = {**ADDON, "name": "lost", "repoURL": "https://charts.invalid"}
    loaded = spec(clusterAddons=[ADDON, lost])
    assert refused(emulated(loaded)).splitlines() == [
        "1 of 2 add-ons cannot be installed; nothing of the cluster was changed",
        "  clusterAddons[1]: the chart kube-prometheus-stack cannot be fetched",
        "  To go on without add-ons: pulumi config set -s dev kumulus:skipAddons true",
    ]
    several = refused(emulated(replace(loaded, member="worker-0")))
    assert several.startswith("1 of 2 add-ons of worker-0 cannot be installed; ")
    # A preview changes nothing: there each add-on says what is wrong with it.
    assert run(emulated(loaded), preview=True).of_type(CLUSTER)


def test_an_addons_provider_is_bound_to_the_cluster_by_its_identity() -> None:
    program = run(emulated(spec(clusterAddons=[ADDON])))
    provider = program.only(PROVIDER)
    assert (provider.inputs["kubeconfig"], provider.inputs["clusterIdentifier"]) == (KUBECONFIG, "uid-1")
    assert f"{CLUSTER}::dev-control-plane" in provider.depends_on
    assert program.only(RELEASE).provider.startswith(f"{PROVIDER}::{provider.name}")


@pytest.mark.parametrize(("runtime", "skips"), [("kwok", True), ("kind", True), ("existing", False)])
def test_a_silent_server_does_not_hold_up_a_command_for_a_minute(runtime: str, skips: bool) -> None:
    provider = run(emulated(spec(runtime=runtime, clusterAddons=[ADDON]))).only(PROVIDER)
    # What its start asks one after the other.
    assert 2 * json.loads(provider.inputs["kubeClientSettings"])["timeout"] <= 30
    # What is skipped is compared all the same, ten seconds for each custom resource (docs/clusters.md).
    assert (provider.inputs["skipUpdateUnreachable"] == "true") is skips


def test_addons_wait_for_the_system_pool_and_for_each_other() -> None:
    addons = [{**ADDON, "name": "second", "dependsOn": ["first"]}, {**ADDON, "name": "first"}]
    program = run(emulated(spec(clusterAddons=addons)))
    assert [each.type for each in program.resources].count(PROVIDER) == 1
    releases = program.of_type(RELEASE)
    first, second = releases["first-release"], releases["second-release"]
    assert f"{POOL}::system" in first.depends_on & second.depends_on
    assert f"{RELEASE}::first-release" in second.depends_on
    assert f"{RELEASE}::second-release" not in first.depends_on


def test_the_system_pool_is_there_for_addons_only_and_is_not_counted() -> None:
    assert "system" not in run(emulated(spec())).of_type(POOL)
    made, program = built(spec(clusterAddons=[ADDON]))
    system = program.of_type(POOL)["system"]
    assert system.inputs["taints"] == []
    assert system.deleted_with == f"{CLUSTER}::dev-control-plane"
    assert made.node_count == 10
    assert any("emulated" in message and "'system' pool" in message for message in program.said)


@pytest.mark.parametrize(
    ("written", "chart", "repository"),
    [
        ({"chart": "repo/x", "repoURL": "https://c.example"}, "x", "https://c.example"),
        ({"chart": "x", "repoURL": "https://c.example"}, "x", "https://c.example"),
        ({"chart": "repo/x", "repoURL": "oci://r.example/charts/"}, "oci://r.example/charts/x", None),
        ({"chart": "oci://r.example/charts/x"}, "oci://r.example/charts/x", None),
        ({"chart": "./charts/x"}, "/base/charts/x", None),
        ({"chart": "../x.tgz"}, "/x.tgz", None),
        ({"chart": "/srv/x"}, "/srv/x", None),
        ({"chart": "."}, "/base", None),
    ],
)
def test_a_chart_comes_from_a_repository_a_registry_or_a_path(
    written: dict[str, str], chart: str, repository: str | None
) -> None:
    assert chart_source(Addon(name="x", **written), Path("/base")) == (chart, repository)  # type: ignore[arg-type]


def test_a_release_of_a_local_chart_names_no_repository(tmp_path: Path) -> None:
    (tmp_path / "Chart.yaml").write_text("name: x\nversion: 1.0.0\n")
    addon = {"name": "x", "namespace": "default", "chart": str(tmp_path)}
    release = run(emulated(spec(clusterAddons=[addon]))).only(RELEASE)
    assert release.inputs["chart"] == str(tmp_path)
    assert "repositoryOpts" not in release.inputs
    assert "version" not in release.inputs


# --- as a library ----------------------------------------------------------------------------------------------------


def test_a_program_of_ones_own_declares_a_cluster_and_node_groups() -> None:
    def program() -> None:
        cluster = KwokCluster("mine", etcd_quota="8Gi")
        KwokNodeGroup(
            "gpu",
            cluster=cluster,
            zones={"a": 2, "b": 1},
            capacity={"cpu": 8, "pods": "110", "nvidia.com/gpu": "4"},
            labels={"team": "x"},
            annotations={"example.com/note": "y"},
            taints=[{"key": "dedicated", "effect": "NoExecute"}],
            allocatable={"cpu": "7500m"},
        )
        # Without taints it has KWOK's, and with none it has none.
        KwokNodeGroup("default", cluster=cluster, zones={"a": 1}, capacity={"pods": "1"})
        KwokNodeGroup("open", cluster=cluster, zones={"a": 1}, capacity={"pods": "1"}, taints=[])

    found = run(program)
    asked = {"name": "mine", "runtime": "kwok", "options": {"etcdQuota": "8Gi"}, "stackId": STACK_ID}
    assert found.only(CLUSTER).inputs == {**asked, "contents": {}}
    pools = found.of_type(POOL)
    replicas = {name: pool.inputs["replicas"] for name, pool in pools.items()}
    assert replicas == {"gpu-a": 2, "gpu-b": 1, "default-a": 1, "open-a": 1}
    kwok = {"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}
    assert (pools["default-a"].inputs["taints"], pools["open-a"].inputs["taints"]) == ([kwok], [])
    inputs = pools["gpu-a"].inputs
    assert inputs["clusterName"] == "mine"
    assert inputs["capacity"] == {"cpu": "8", "pods": "110", "nvidia.com/gpu": "4"}
    assert inputs["allocatable"] == {"cpu": "7500m", "pods": "110", "nvidia.com/gpu": "4"}
    assert inputs["taints"] == [{"key": "dedicated", "value": "", "effect": "NoExecute"}]
    assert inputs["annotations"] == {"example.com/note": "y"}
    assert inputs["labels"].items() >= {"team": "x", "kumulus.io/cluster": "mine", "kumulus.io/pool": "gpu-a"}.items()
    assert pools["gpu-a"].deleted_with == f"{CLUSTER}::mine-control-plane"


def test_volcanos_groups_have_one_resource_for_their_hypernodes() -> None:
    def group(name: str, preset: str) -> dict[str, Any]:
        return {
            "name": name,
            "placement": [{"availabilityZone": "z", "replicas": 2}],
            "nodeTemplate": {"capacity": {"pods": "1"}},
            "topology": {"preset": preset, "nodesPerRack": 1},
        }

    token = "kumulus:index:HyperNodes"
    loaded = spec(nodeGroups=[group("a", "volcano"), group("b", "kueue")])
    made = run(emulated(loaded)).only(token)
    level = {"label": "volcano.sh/hypernode", "nodes": 1}
    assert made.inputs["pools"] == {"a-z": {"zone": "z", "replicas": 2, "topology": {"rack": level}}}
    assert made.deleted_with == f"{CLUSTER}::dev-control-plane"
    assert run(emulated(spec(nodeGroups=[group("b", "kueue")]))).of_type(token) == {}


# --- the program -----------------------------------------------------------------------------------------------------


@contextmanager
def interrupts_as_they_were() -> Iterator[None]:
    """The program takes SIGINT for itself; a test must not leave that to the others."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def main(config: dict[str, Any]) -> Program:
    def program() -> None:
        # As the engine hands the configuration over: in the environment, mappings as JSON.
        texts = {key: json.dumps(v) if isinstance(v, dict) else v for key, v in config.items()}
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("PULUMI_CONFIG", json.dumps(texts))
            runpy.run_path(str(ROOT / "__main__.py"))

    with interrupts_as_they_were():
        return run(program)


def test_a_misspelt_key_of_the_configuration_is_told() -> None:
    with pytest.raises(pulumi.RunError, match="clusterconfig: is not a known key; write clusterConfig"):
        main({"kumulus:clusterconfig": "x.yaml", "other:key": "not ours"})


def test_the_program_exports_what_users_need() -> None:
    program = main({"kumulus:cluster": {"nodeGroups": GROUPS}})
    outputs = program.outputs["pulumi:pulumi:Stack::kumulus-dev"]
    assert set(outputs) == {"kubeconfig", "clusterName", "nodeCount", "capacity", "nodeGroups"}
    assert (outputs["kubeconfig"], outputs["clusterName"], outputs["nodeCount"]) == (KUBECONFIG, "dev", 10)
    assert outputs["capacity"]["gpus"] == 64
    assert set(outputs["nodeGroups"]) == {"a100", "cpu"}


def test_clusters_of_one_stack_have_names_of_their_own_in_it_for_all_that_is_theirs() -> None:
    defaults = {
        "nodeGroups": GROUPS,
        "faults": [{"name": "xid", "kind": "gpu-fell-off-bus", "target": {"nodeGroup": "a100", "count": 1}}],
        "tenants": [{"name": "research"}],
        "clusterAddons": [{"name": "metrics", "chart": "m", "repoURL": "https://charts.example.com"}],
        "podLifecycles": [{"name": "training", "run": "10m"}],
    }
    clusters = [{"name": "worker", "count": 2}]
    program = main({"kumulus:clusters": json.dumps(clusters), "kumulus:defaults": defaults, "kumulus:hub": "worker-1"})
    urns = [(each.type, each.name) for each in program.resources if each.type != "pulumi:pulumi:Stack"]
    assert len(set(urns)) == len(urns)
    assert len(program.of_type("kumulus:index:StackIdentity")) == 1
    assert {each.inputs["name"] for each in program.of_type(CLUSTER).values()} == {"dev-worker-0", "dev-worker-1"}
    # What things are called in the stack, and in their cluster.
    pools = program.of_type(POOL)
    assert pools["worker-0.a100-use1"].inputs["name"] == pools["worker-1.a100-use1"].inputs["name"] == "a100-use1"
    assert program.of_type("kumulus:index:Fault")["worker-1.xid"].inputs["name"] == "xid"
    releases = program.of_type(RELEASE)
    assert {each.inputs["name"] for each in releases.values()} == {"metrics"}
    homes = program.of_type("kumulus:index:Namespace")
    assert {each.inputs["name"] for each in homes.values()} == {"research"}
    outputs = program.outputs["pulumi:pulumi:Stack::kumulus-dev"]
    assert set(outputs) == {"hub", "kubeconfig", "nodeCount", "clusters", "tenants"}
    assert (outputs["hub"], outputs["nodeCount"]) == ("worker-1", 20)
    assert {name: each["clusterName"] for name, each in outputs["clusters"].items()} == {
        "worker-0": "dev-worker-0",
        "worker-1": "dev-worker-1",
    }


def test_a_mistake_in_the_stack_file_is_told_before_anything_is_declared() -> None:
    with pytest.raises(pulumi.RunError) as raised:
        main({"kumulus:cluster": {"nodeGroups": [{"name": "A"}], "nodegroups": []}})
    message = str(raised.value)
    assert "problems in stacks/Pulumi.dev.yaml" in message
    assert "nodeGroups[0].name" in message
    assert "nodegroups: is not a known key; write nodeGroups" in message


def test_what_was_corrected_is_said(tmp_path: Path) -> None:
    template = {"capacity": {"cpu": 1, "memory": "1Gi", "ephemeralStorage": "1Ti"}}
    group = {"name": "a", "placement": [{"availabilityZone": "z", "replicas": 1}], "nodeTemplate": template}
    kind = {"apiVersion": "kemu.datastrophic.io/v1alpha1", "kind": "ClusterConfig"}
    file = tmp_path / "kemu.yaml"
    file.write_text(json.dumps({**kind, "spec": {"nodeGroups": [group]}}))
    program = main({"kumulus:clusterConfig": str(file)})
    assert any("ephemeralStorage" in message for message in program.said)
    assert program.only(POOL).inputs["capacity"]["ephemeral-storage"] == "1Ti"
