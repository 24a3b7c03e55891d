"""What Karpenter is given: the stack's machines with their prices, its pools, and where all of it is."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus import toolchain
from kumulus.extras.scaling import BUILT, registry
from kumulus.extras.scaling.addition import ADDITION as AUTOSCALING
from kumulus.extras.scaling.descriptor import AutoscalerPlace
from kumulus.extras.scaling.karpenter import launch, objects
from kumulus.extras.scaling.karpenter.launch import instance_types
from kumulus.model.errors import SpecError
from kumulus.nodes.catalog.prices import catalog
from kumulus.runtimes.kwok import configuration
from kumulus.stackfile.expand import pools
from kumulus.stackfile.load import load
from kumulus.stackfile.model import ClusterSpec
from kumulus.toolchain import pins

ZONES = ["us-central1-a", "us-central1-b"]


def asked(base: Path = Path(), **fields: Any) -> dict[str, Any]:
    """The option of the cluster that a section makes."""
    section = {"name": "karpenter", "zones": ZONES, "instanceTypes": ["e2-standard-4"], **fields}
    found = load({"cluster": {"autoscaler": section}}, "dev", base).section_options["autoscaler"]
    assert found is not None
    # It goes through Pulumi as JSON.
    return dict(json.loads(json.dumps(found)))


def refusal(config: dict[str, Any], base: Path = Path()) -> str:
    with pytest.raises(SpecError) as caught:
        load(config, "dev", base)
    return str(caught.value)


@pytest.mark.parametrize("name", BUILT)
def test_an_autoscalers_program_is_pinned_and_had_by_the_stacks_that_name_it(name: str) -> None:
    autoscaler = registry.get(name)
    assert autoscaler.name == name
    assert toolchain.version(autoscaler.tool)
    assert [tool.name for tool in pins.load().named(name)] == [autoscaler.tool]


def test_a_machine_is_offered_in_each_zone_at_the_catalogs_price() -> None:
    [machine] = instance_types(asked(capacityTypes=["on-demand", "spot"]))
    assert machine["name"] == "e2-standard-4"
    assert machine["resources"] == {"cpu": "4", "memory": "16Gi", "ephemeral-storage": "100Gi", "pods": "110"}
    wanted = {
        (zone, kind): price.hourly
        for zone in ZONES
        for kind in ("on-demand", "spot")
        if (price := catalog().of("e2-standard-4", "us-central1", spot=kind == "spot"))
    }
    found = {}
    for offering in machine["offerings"]:
        said = {each["key"]: each["values"][0] for each in offering["Requirements"]}
        found[said["topology.kubernetes.io/zone"], said["karpenter.sh/capacity-type"]] = offering["Price"]
        assert said["topology.kubernetes.io/region"] == "us-central1"
    assert found == wanted
    assert len(found) == 4


def test_what_an_offering_carries_are_the_labels_of_a_node_groups_node() -> None:
    kind = "a3-highgpu-8g"
    [machine] = instance_types(asked(instanceTypes=[kind], zones=["us-central1-a"]))
    carried = {each["key"]: each["values"][0] for each in machine["offerings"][0]["Requirements"]}
    group = {"name": "g", "instanceType": kind, "placement": [{"availabilityZone": "us-central1-a", "replicas": 1}]}
    [pool] = pools(ClusterSpec.checked({"nodeGroups": [group]}), "dev")
    its_own = {"karpenter.sh/capacity-type": "on-demand"}
    # The provider adds these itself, from the type's name, architecture and system.
    added = {"node.kubernetes.io/instance-type", "kubernetes.io/arch", "kubernetes.io/os"}
    groups = {"kumulus.io/group", "kumulus.io/pool"}
    assert carried == its_own | {key: pool.labels[key] for key in pool.labels.keys() - added - groups}
    assert carried["nvidia.com/gpu.product"] == "NVIDIA-H100-80GB-HBM3"
    assert machine["resources"] == dict(pool.capacity)


def test_its_nodes_say_the_version_of_the_cluster_as_those_of_node_groups_do() -> None:
    assert {each["nodeInfo"]["kubeletVersion"] for each in asked()["machines"]} == {
        f"v{toolchain.kubernetes_versions()[0]}"
    }
    section = {"name": "karpenter", "zones": ZONES, "instanceTypes": ["e2-standard-4"]}
    loaded = load({"cluster": {"kubernetesVersion": "v1.35.4", "autoscaler": section}}, "dev", Path())
    found = loaded.section_options["autoscaler"]
    assert found is not None
    assert {each["nodeInfo"]["kubeletVersion"] for each in found["machines"]} == {"v1.35.4"}


def test_without_types_it_has_all_that_have_a_price_there() -> None:
    found = asked(instanceTypes=[], zones=["us-east-1a"])
    assert [each["type"] for each in found["machines"]] == sorted(catalog().types("us-east-1"))


def test_a_price_of_the_users_own_wins(tmp_path: Path) -> None:
    own = {"regions": {"us-central1": {"onDemand": {"e2-standard-4": 9.5}}}}
    (tmp_path / "prices.yaml").write_text(yaml.safe_dump(own))
    section = {"name": "karpenter", "zones": ZONES, "instanceTypes": ["e2-standard-4"]}
    found = load({"cluster": {"autoscaler": section}, "prices": "prices.yaml"}, "dev", tmp_path).section_options[
        "autoscaler"
    ]
    assert found is not None
    assert {offer["hourly"] for offer in found["machines"][0]["offerings"]} == {9.5}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"zones": ["rack-1"]}, "autoscaler.zones[0]: rack-1 tells no region"),
        ({"zones": ["europe-west9-a"]}, "no price of on-demand machines is known in europe-west9"),
        ({"zones": []}, "autoscaler.zones"),
        ({"zones": ["us-east-1a"], "capacityTypes": ["spot"]}, "no price of spot machines is known in us-east-1"),
        ({"instanceTypes": ["m5.xlarge"]}, "autoscaler.instanceTypes[0]: m5.xlarge has no price in these zones"),
        ({"instanceTypes": ["e2-standard-5"]}, '"e2-standard-5" is not in the catalog'),
        ({"name": "karpentr"}, "karpentr"),
        ({"registrationDelay": "soon"}, "autoscaler.registrationDelay"),
        ({"nodePools": [{"name": "a"}, {"name": "a"}]}, 'autoscaler.nodePools[1].name: "a" is already'),
        ({"nodePools": [{"name": "a", "spec": "x"}]}, "autoscaler.nodePools[0].spec"),
    ],
)
def test_what_it_cannot_work_with_is_told_at_its_place(fields: dict[str, Any], words: str) -> None:
    section = {"name": "karpenter", "zones": ZONES, **fields}
    assert words in refusal({"cluster": {"autoscaler": section}})


@pytest.mark.parametrize("runtime", ["kind", "existing"])
def test_in_a_cluster_whose_nodes_run_containers_it_needs_an_image(runtime: str) -> None:
    section: dict[str, Any] = {"name": "karpenter", "zones": ZONES, "instanceTypes": ["e2-standard-4"]}
    said = refusal({"cluster": {"runtime": runtime, "autoscaler": section}})
    assert f"autoscaler.image: is missing: with the runtime {runtime} it is a deployment" in said
    section["image"] = "karpenter:x"
    found = load({"cluster": {"runtime": runtime, "autoscaler": section}}, "dev", Path()).section_options["autoscaler"]
    assert found is not None
    assert found["image"] == "karpenter:x"
    said = refusal({"cluster": {"autoscaler": section}})
    assert "autoscaler.image: has no effect with the runtime kwok" in said


def test_cluster_autoscaler_runs_beside_a_cluster_only() -> None:
    section = {"name": "cluster-autoscaler", "binary": "x"}
    said = refusal({"cluster": {"runtime": "kind", "autoscaler": section}})
    assert "cluster-autoscaler is not supported with the runtime kind" in said


def deployed(**fields: Any) -> dict[str, dict[str, Any]]:
    """What it is as a deployment, by kind; of several of a kind, the last."""
    try:
        toolchain.find("karpenter")
    except toolchain.ToolMissing as error:
        pytest.skip(str(error).splitlines()[0])
    return {each["kind"]: each for each in launch.manifests({**asked(**fields), "image": "karpenter:x"})}


def test_as_a_deployment_it_has_its_own_account_and_reads_the_machines_from_a_config_map() -> None:
    found = deployed()
    assert found["ClusterRoleBinding"]["subjects"] == [
        {"kind": "ServiceAccount", "name": "karpenter", "namespace": "kube-system"}
    ]
    [types] = found["ConfigMap"]["data"].values()
    assert json.loads(types) == instance_types(asked())
    pod = found["Deployment"]["spec"]["template"]["spec"]
    [container] = pod["containers"]
    environment = {each["name"]: each["value"] for each in container["env"]}
    assert environment["INSTANCE_TYPES_FILE_PATH"] == "/etc/karpenter/instance-types.json"
    assert "KUBECONFIG" not in environment
    assert (container["image"], pod["serviceAccountName"]) == ("karpenter:x", "karpenter")
    assert "Stage" in found
    assert "Stage" not in deployed_without_stages()


def deployed_without_stages() -> set[str]:
    return {each["kind"] for each in launch.manifests({**asked(), "image": "karpenter:x", "stages": False})}


def test_another_machine_is_another_pod_and_another_pool_is_not() -> None:
    def template(**fields: Any) -> Any:
        return deployed(**fields)["Deployment"]["spec"]["template"]

    assert template() == template(nodePools=[{"name": "other"}])
    assert template() != template(instanceTypes=["e2-standard-8"])
    assert template() != template(batchIdleDuration="5s")


def test_machines_that_no_config_map_holds_are_refused_with_the_way_out() -> None:
    deployed()
    many = {**asked(), "image": "karpenter:x"}
    many["machines"] = [{**many["machines"][0], "type": f"type-{number}"} for number in range(2000)]
    with pytest.raises(ValueError, match=r"name those that Karpenter is to choose from \(autoscaler.instanceTypes\)"):
        launch.manifests(many)


def test_a_node_group_that_it_would_take_for_its_own_is_refused() -> None:
    template = {"metadata": {"labels": {"karpenter.sh/nodepool": "default"}}}
    group = {"name": "g", "instanceType": "e2-standard-4", "nodeTemplate": template, "placement": []}
    scaled = {"autoscaler": {"name": "karpenter", "zones": ZONES}, "nodeGroups": [group]}
    assert "marks nodes of the autoscaler" in refusal({"cluster": scaled})
    assert load({"cluster": {"nodeGroups": [group]}}, "dev", Path()).section_options == {}


def test_a_pool_takes_what_is_offered_unless_it_says_which() -> None:
    def requirements(spec: dict[str, Any], offered: list[str]) -> list[dict[str, Any]]:
        pool = objects.node_pool({"name": "a", "spec": {"template": {"spec": spec}}}, offered)
        return list(pool["spec"]["template"]["spec"]["requirements"])

    of_it = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}
    other = {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}
    assert requirements({}, ["on-demand"]) == [of_it]
    assert requirements({"requirements": None}, ["on-demand"]) == [of_it]
    assert requirements({"requirements": [other]}, ["on-demand"]) == [other, of_it]
    own = {**of_it, "operator": "Exists"}
    assert requirements({"requirements": [own]}, ["on-demand", "spot"]) == [own]


def test_how_long_machines_take_is_one_duration_or_drawn_for_each() -> None:
    fixed = asked(registrationDelay="30s")
    assert objects.node_class(fixed)["spec"] == {"nodeRegistrationDelay": "30s"}
    some = asked(registrationDelay={"uniform": {"from": "10s", "to": "20s"}})
    made = objects.node_class(some)
    assert made["spec"] == {}
    delays = [float(each) for each in made["metadata"]["annotations"]["kumulus.io/registration-delays"].split()]
    assert len(set(delays)) > 400
    assert all(10 <= each <= 20 for each in delays)
    assert asked(registrationDelay={"uniform": {"from": "10s", "to": "20s"}}) == some
    assert "metadata" in (plain := objects.node_class(asked()))
    assert plain["metadata"] == {"name": "default"}


def test_a_pool_has_the_one_node_class_unless_it_names_another() -> None:
    pool = objects.node_pool(
        {"name": "a", "spec": {"limits": {"cpu": 9}, "template": {"metadata": {"labels": {"x": "y"}}}}}, ["on-demand"]
    )
    assert pool["spec"]["limits"] == {"cpu": 9}
    template = pool["spec"]["template"]
    assert template["metadata"] == {"labels": {"x": "y"}}
    assert template["spec"]["nodeClassRef"] == {
        "group": "karpenter.kwok.sh",
        "kind": "KWOKNodeClass",
        "name": "default",
    }
    other = {"group": "g", "kind": "K", "name": "n"}
    pool = objects.node_pool({"name": "a", "spec": {"template": {"spec": {"nodeClassRef": other}}}}, ["spot"])
    assert pool["spec"]["template"]["spec"]["nodeClassRef"] == other


def test_its_variables_say_where_it_is_and_listens() -> None:
    gates = {"SpotToSpotConsolidation": True, "NodeRepair": False}
    place = AutoscalerPlace(Path("/f"), Path("/f/k.yaml"), {"http": 1, "health": 2})
    [program] = registry.get("karpenter").programs
    found = program.environment(asked(featureGates=gates, batchIdleDuration="2s"), place)
    assert found == {
        "KUBECONFIG": "/f/k.yaml",
        "INSTANCE_TYPES_FILE_PATH": "/f/instance-types.json",
        "METRICS_PORT": "1",
        "HEALTH_PROBE_PORT": "2",
        "DISABLE_LEADER_ELECTION": "true",
        "FEATURE_GATES": "NodeRepair=false,SpotToSpotConsolidation=true",
        "BATCH_IDLE_DURATION": "2s",
    }


def test_a_change_of_prices_restarts_it_and_one_of_pools_does_not() -> None:
    before = {"autoscaler": asked()}
    pools_changed = {"autoscaler": asked(nodePools=[{"name": "other"}])}
    dearer = {"autoscaler": asked(zones=ZONES[:1])}
    assert AUTOSCALING.fingerprints(before) == AUTOSCALING.fingerprints(pools_changed)
    assert AUTOSCALING.fingerprints(before) != AUTOSCALING.fingerprints(dearer)
    prints = {configuration.fingerprint(each) for each in (before, pools_changed, dearer, {})}
    assert len(prints) == 4
    assert AUTOSCALING.described(before, before) == []
    assert AUTOSCALING.described(before, pools_changed) == ["autoscaler: karpenter has its pools changed"]
    assert AUTOSCALING.described(before, dearer) == ["autoscaler: karpenter is restarted; its nodes stay"]
    assert "is started" in AUTOSCALING.described({}, before)[0]
    assert "goes" in AUTOSCALING.described(before, {})[0]


def test_the_order_in_which_options_come_through_pulumi_is_no_change() -> None:
    def turned(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: turned(value[key]) for key in reversed(list(value))}
        return [turned(each) for each in value] if isinstance(value, list) else value

    options = {"autoscaler": asked()}
    assert configuration.fingerprint(turned(options)) == configuration.fingerprint(options)
    assert configuration.component_fingerprints(turned(options)) == configuration.component_fingerprints(options)


def test_clusters_without_one_keep_the_fingerprint_they_were_made_with() -> None:
    assert configuration.fingerprint({}) == configuration.fingerprint({"autoscaler": None})
    assert "karpenter" not in configuration.component_fingerprints({})
    assert AUTOSCALING.stages({}) == []


def test_kwok_says_of_its_nodes_which_machine_they_are() -> None:
    [stage, _] = AUTOSCALING.stages({"autoscaler": asked()})
    spec = stage["spec"]
    keys = {each["key"] for each in spec["selector"]["matchExpressions"]}
    assert {'.metadata.labels["karpenter.sh/nodepool"]', '.metadata.labels["kubernetes.io/arch"]'} <= keys
    assert 'architecture: "amd64"' in spec["next"]["statusTemplate"]
    # KWOK passes over stages without a weight where one with a weight matches.
    assert spec["weight"] > 0


def test_kwok_ends_its_nodes_whose_machine_is_taken_back() -> None:
    [made, ended] = AUTOSCALING.stages({"autoscaler": asked()})
    when = '.metadata.annotations["kumulus.io/reclaimed-at"]'
    assert ended["spec"]["delay"] == {"durationFrom": {"expressionFrom": when}}
    # Karpenter's finalizer does not hold a machine that the cloud has taken.
    assert ended["spec"]["next"] == {"finalizers": {"empty": True}, "delete": True}
    conditions = {each["key"]: each["operator"] for each in ended["spec"]["selector"]["matchExpressions"]}
    assert conditions == {when: "Exists", '.metadata.labels["karpenter.sh/nodepool"]': "Exists"}
    # Of two stages with a weight KWOK would draw one.
    others = {each["key"]: each["operator"] for each in made["spec"]["selector"]["matchExpressions"]}
    assert others[when] == "DoesNotExist"
