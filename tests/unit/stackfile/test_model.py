"""The stack file: what it may say, and how every mistake in it is told."""

import copy
from typing import Any

import pytest

from kumulus.model.errors import SpecError
from kumulus.model.pools import Taint
from kumulus.stackfile.model import ClusterSpec
from tests.support.said import problems_of

GROUP: dict[str, Any] = {
    "name": "a100",
    "placement": [{"availabilityZone": "use1", "replicas": 5}],
    "nodeTemplate": {"capacity": {"cpu": 96, "memory": "1360Gi", "pods": "110", "nvidia.com/gpu": 8}},
}


def told(raw: object) -> dict[str, str]:
    return problems_of(ClusterSpec.checked, raw)


def group(**changes: Any) -> dict[str, Any]:
    return {**copy.deepcopy(GROUP), **changes}


def template(**changes: Any) -> dict[str, Any]:
    return {"nodeGroups": [group(nodeTemplate={**GROUP["nodeTemplate"], **changes})]}


def lives(names: str, *labels: dict[str, str]) -> dict[str, Any]:
    each = zip(names, labels, strict=True)
    return {"podLifecycles": [{"name": name, "run": "1m", "selector": {"labels": these}} for name, these in each]}


def placed(*placement: dict[str, Any], name: str = "a100") -> dict[str, Any]:
    return group(name=name, placement=list(placement))


def test_an_empty_stack_is_a_control_plane_without_nodes() -> None:
    for raw in ({}, None, {"nodeGroups": None, "clusterAddons": None, "kwok": None}):
        spec = ClusterSpec.checked(raw)
        assert (spec.runtime, spec.nodeGroups, spec.clusterAddons, spec.kwok.options()) == ("kwok", [], [], {})


def test_a_group_is_read_with_canonical_quantities_and_kwoks_taint() -> None:
    template = ClusterSpec.checked({"nodeGroups": [GROUP]}).nodeGroups[0].nodeTemplate
    assert template.capacity == {"cpu": "96", "memory": "1360Gi", "pods": "110", "nvidia.com/gpu": "8"}
    assert template.taints == (Taint("kwok.x-k8s.io/node", "fake", "NoSchedule"),)


def test_no_taints_at_all_are_an_empty_list() -> None:
    assert ClusterSpec.checked(template(taints=[])).nodeGroups[0].nodeTemplate.taints == ()


def test_a_whole_float_is_a_replica_count_since_json_has_one_kind_of_number() -> None:
    spec = ClusterSpec.checked({"nodeGroups": [placed({"availabilityZone": "z", "replicas": 5.0})]})
    assert spec.nodeGroups[0].placement[0].replicas == 5


@pytest.mark.parametrize("written", ["1.35.4", "v1.35.4"])
def test_versions_are_written_with_or_without_v(written: str) -> None:
    assert ClusterSpec.checked({"kubernetesVersion": written}).kubernetesVersion == "v1.35.4"


def test_kwok_settings_are_the_clusters_options() -> None:
    settings = {"apiServerPort": 6443, "featureGates": {"A": True}, "runtimeConfig": {"api/all": True, "b": "x"}}
    others = {"etcdFsync": False, "etcdQuota": "8Gi", "heartbeatFactor": 5, "createThrough": "api"}
    spec = ClusterSpec.checked({"kwok": {**settings, **others}})
    assert spec.kwok.options() == {**settings, "runtimeConfig": {"api/all": "true", "b": "x"}, **others}


AT_THE_TOP: list[tuple[Any, str, str]] = [
    ([], "", "a list, not a mapping"),
    ("x", "", "not a mapping"),
    ({"kubeconfig": "x"}, "kubeconfig", "not a known key; write it below existing"),
    ({"zzz": 1}, "zzz", "one of name, runtime, kubernetesVersion"),
    ({"name": "My_Cluster"}, "name", "write my-cluster"),
    ({"name": "c" * 41}, "name", "41 characters"),
    ({"name": 5}, "name", 'in quotes: "5"'),
    ({"runtime": "dind"}, "runtime", "write kind"),
    ({"runtime": "docker"}, "runtime", "one of kwok, kind, existing"),
    ({"kubernetesVersion": "v1.37"}, "kubernetesVersion", 'write all of it in quotes: "1.37.2"'),
    ({"kubernetesVersion": 1.36}, "kubernetesVersion", 'write all of it in quotes: "1.36.3"'),
    ({"kubernetesVersion": "v1.35.4\n"}, "kubernetesVersion", "not a whole Kubernetes version"),
    ({"kindConfig": ""}, "kindConfig", "write runtime: kind"),
    ({"runtime": "kind", "kindConfig": "a: [1"}, "kindConfig", "line 1, column"),
    ({"runtime": "kind", "kindConfig": [1]}, "kindConfig", "write a mapping"),
    ({"runtime": "kind", "kwok": {"heartbeatFactor": 5}}, "kwok", "write runtime: kwok"),
    ({"kwok": {"apiServerPort": "6443"}}, "kwok.apiServerPort", "whole number"),
    ({"kwok": {"runtimeConfig": {"api/all": 1}}}, 'kwok.runtimeConfig["api/all"]', "true, false"),
    ({"kwok": {"etcdFsync": "no"}}, "kwok.etcdFsync", "true or false"),
    ({"kwok": {"etcdQuota": "lots"}}, "kwok.etcdQuota", "8Gi"),
    ({"kwok": {"heartbeatFactor": 0}}, "kwok.heartbeatFactor", "less than 1"),
    ({"kwok": {"createThrough": "etcd"}}, "kwok.createThrough", "one of storage, api"),
    ({"kwok": []}, "kwok", "not a mapping"),
    (
        lives("ab", {}, {"app": "x"}),
        "podLifecycles[1].selector",
        "all of these pods, and the first in the file wins; move",
    ),
    (lives("ab", {}, {}), "podLifecycles[1].selector", "never holds: podLifecycles[0] selects the same pods"),
    (lives("aa", {"app": "x"}, {"app": "y"}), "podLifecycles[1].name", '"a" is already podLifecycles[0].name'),
    ({"nodeGroups": {}}, "nodeGroups", "not a list"),
    ({"nodeGroups": ["a"]}, "nodeGroups[0]", "not a mapping"),
]

ZONE = {"availabilityZone": "z", "replicas": 1}
PLACE = "nodeGroups[0].placement[0]"
ALIKE = [placed({**ZONE, "availabilityZone": zone}, name=name) for name, zone in (("a", "b-c"), ("a-b", "c"))]

IN_GROUPS: list[tuple[Any, str, str]] = [
    ([group(name=None)], "[0].name", "is nothing"),
    ([group(name="")], "[0].name", "is empty"),
    ([group(name="system")], "[0].name", "another name"),
    ([placed({"availabilityZone": "z"})], "[0].placement[0].replicas", "write replicas: 5"),
    ([placed(ZONE, ZONE)], "[0].placement[1].availabilityZone", f"already {PLACE}.availabilityZone"),
    ([placed({"availabilityZone": "z" * 30, "replicas": 100}, name="g" * 31)], "[0].placement[0]", "65 characters"),
    (ALIKE, "[1].placement[0]", f"same node names as {PLACE}, such as a-b-c-0"),
    ([group(nodeTemplate={})], "[0].nodeTemplate.capacity", "write capacity: {cpu"),
]

IN_A_PLACEMENT: list[tuple[Any, str, str]] = [
    ({"availabilityZone": "US"}, "availabilityZone", "write us"),
    ({"replicas": True}, "replicas", "is true"),
    ({"replicas": 100_001}, "replicas", "write 100,000 or fewer"),
    ({"region": "a b"}, "region", "label"),
    ({"replica": 1}, "replica", "replicas"),
]

IN_A_TEMPLATE: list[tuple[Any, str, str]] = [
    ({"capacity": {"pods": 1, "ephemeralStorage": "3Ti"}}, "capacity.ephemeralStorage", "write ephemeral-storage"),
    ({"capacity": {"pods": 1, "widgets": 8}}, "capacity.widgets", "example.com/widgets"),
    ({"capacity": {"pods": 1, "cpu": "96c"}}, "capacity.cpu", '"96"'),
    ({"capacity": {"pods": 1, "cpu": None}}, "capacity.cpu", "is nothing"),
    ({"allocatable": {"cpu": 97}}, "allocatable.cpu", "write 96 or less"),
    ({"allocatable": {"example.com/nic": 1}}, 'allocatable["example.com/nic"]', "not in the capacity"),
    ({"metadata": {"annotations": {"kumulus.io/a": "x"}}}, 'metadata.annotations["kumulus.io/a"]', "Kumulus sets"),
    ({"metadata": {"labels": {"team": 5}}}, "metadata.labels.team", 'quotes: "5"'),
    ({"metadata": {"labels": {"team": True}}}, "metadata.labels.team", 'quotes: "true"'),
    ({"metadata": {"labels": {"te am": "x"}}}, 'metadata.labels["te am"]', "qualified name"),
    ({"metadata": {"label": {}}}, "metadata.label", "write labels"),
    ({"nodeInfo": {"os": "linux"}}, "nodeInfo.os", "operatingSystem"),
    ({"instanceType": "a3-highgpu-8g"}, "instanceType", "not a known key; write it next to nodeTemplate, not in it"),
]
MISTAKES = [
    *AT_THE_TOP,
    *(({"nodeGroups": groups}, f"nodeGroups{path}", words) for groups, path, words in IN_GROUPS),
    *(({"nodeGroups": [placed({**ZONE, **change})]}, f"{PLACE}.{key}", words) for change, key, words in IN_A_PLACEMENT),
    *((template(**change), f"nodeGroups[0].nodeTemplate.{path}", words) for change, path, words in IN_A_TEMPLATE),
]


@pytest.mark.parametrize(("raw", "path", "words"), MISTAKES, ids=[path or "file" for _, path, _ in MISTAKES])
def test_a_mistake_is_told_with_its_path_and_a_remedy(raw: object, path: str, words: str) -> None:
    problems = told(raw)
    assert list(problems) == [path]
    assert words in problems[path]


def test_features_are_declared_where_the_gate_is_on() -> None:
    declares = template(declaredFeatures=["B", "A"])
    path, old = "kwok.featureGates.NodeDeclaredFeatures", {"kubernetesVersion": "1.35.4"}
    for same in ({}, {"runtime": "kwok"}, {"runtime": None}):
        assert "write featureGates: {NodeDeclaredFeatures: true}" in told({**declares, **old, **same})[path]
    ClusterSpec.checked({**declares, **old, "kwok": {"featureGates": {"NodeDeclaredFeatures": True}}})
    ClusterSpec.checked({**template(declaredFeatures=[]), **old})
    (found,) = ClusterSpec.checked(declares).nodeGroups
    assert found.nodeTemplate.declaredFeatures == ("A", "B")


def test_everything_is_told_at_once_in_the_order_of_list_items() -> None:
    groups = [placed({"availabilityZone": "z", "replicas": -1}, name=f"g{index}") for index in range(11)]
    problems = told({"runtime": "x", "nodeGroups": [*groups, group(name="g0"), "odd"]})
    assert list(problems) == [
        *(f"nodeGroups[{index}].placement[0].replicas" for index in range(11)),
        "nodeGroups[11].name",
        "nodeGroups[12]",
        "runtime",
    ]


def test_keys_that_are_no_texts_are_told() -> None:
    assert "no text" in next(iter(told({"nodeGroups": [{1: 2, **GROUP}]}).values()))
    assert "no text" in told(template(capacity={8: "nvidia.com/gpu"}))["nodeGroups[0].nodeTemplate.capacity"]


def test_the_error_names_the_source() -> None:
    with pytest.raises(SpecError, match="1 problem in the stack\n  runtime: "):
        ClusterSpec.checked({"runtime": "x"}, "the stack")


def test_a_template_may_leave_cpu_and_memory_out() -> None:
    assert told(template(capacity={"pods": 110})) == {}


def test_group_names_may_be_instance_types_with_dots() -> None:
    assert told({"nodeGroups": [placed({"availabilityZone": "us-east-1a", "replicas": 1}, name="p5.48xlarge")]}) == {}
