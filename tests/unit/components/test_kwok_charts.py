"""KWOK inside a cluster: shares of the nodes, what each controller is told, and the stages above the chart's."""

import ipaddress
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kumulus.kwok.controllers import Controllers, stage_manifests
from kumulus.model.errors import SpecError
from kumulus.model.nodes import owned_fields
from kumulus.model.scale import SHARD_LABEL, lease_seconds, pod_range, selector, shard_of, shards_for
from kumulus.stackfile.cluster_charts import KwokChartsSpec
from kumulus.stackfile.expand import pools
from kumulus.stackfile.load import load
from kumulus.stackfile.model import ClusterSpec
from kumulus.stackfile.secrets import Secrets


def controllers(nodes: int = 100, shards: int = 1, **charts: Any) -> Controllers:
    return Controllers(KwokChartsSpec(**charts).settings(), "dev", nodes, shards)


def spec(**cluster: Any) -> ClusterSpec:
    group = {
        "name": "a",
        "placement": [{"availabilityZone": "z", "replicas": 5}],
        "nodeTemplate": {"capacity": {"cpu": "1", "memory": "1Gi", "pods": "1"}},
    }
    return ClusterSpec.checked({"nodeGroups": [group], **cluster})


def test_shards_are_of_equal_size_and_do_not_depend_on_how_many_nodes_there_are() -> None:
    shares = Counter(shard_of("pool", ordinal, 4) for ordinal in range(1000))
    assert shares == {0: 250, 1: 250, 2: 250, 3: 250}
    # Small pools do not all begin at the first one.
    assert len({shard_of(f"pool-{number}", 0, 4) for number in range(20)}) == 4


@pytest.mark.parametrize(("nodes", "asked", "found"), [(0, None, 1), (10_000, None, 1), (10_001, None, 2), (5, 3, 3)])
def test_large_fleets_have_several_controllers(nodes: int, asked: int | None, found: int) -> None:
    assert shards_for(nodes, asked) == found


def test_nodes_carry_their_shard_where_there_are_several() -> None:
    (pool,) = pools(spec(runtime="kind", kwokCharts={"shards": 3}), "dev")
    found = [owned_fields(pool, ordinal).labels[SHARD_LABEL] for ordinal in range(5)]
    assert found == [str(shard_of("a-z", ordinal, 3)) for ordinal in range(5)]
    for cluster in (spec(runtime="kind"), spec()):
        (pool,) = pools(cluster, "dev")
        assert SHARD_LABEL not in owned_fields(pool, 0).labels


def test_the_selectors_of_all_shards_cover_each_node_once() -> None:
    """Also nodes without the label, which another stack has made: those are the first one's."""
    assert selector(0, 1) == ""
    assert [selector(shard, 3) for shard in range(3)] == [
        "kumulus.io/shard notin (1,2)",
        "kumulus.io/shard=1",
        "kumulus.io/shard=2",
    ]


@pytest.mark.parametrize("shards", [1, 2, 3, 64])
def test_shards_have_addresses_of_their_own(shards: int) -> None:
    parts = [ipaddress.IPv4Network(pod_range("198.18.0.0/15", shard, shards)) for shard in range(shards)]
    assert all(part.subnet_of(ipaddress.IPv4Network("198.18.0.0/15")) for part in parts)
    assert not any(one.overlaps(other) for one in parts for other in parts if one is not other)


def test_leases_hold_in_large_fleets_and_are_renewed_before_a_cluster_takes_a_node_for_lost() -> None:
    assert lease_seconds(2_500, None) == 40
    assert lease_seconds(10_000, None) / 4 + 10 < 40
    assert 10_000 / (lease_seconds(10_000, None) / 4) <= 400
    assert lease_seconds(10_000, 60) == 60


def test_a_controller_is_told_what_the_chart_has_no_values_for() -> None:
    wanted = controllers(nodes=20_000, shards=2, parallelism=16)
    text = wanted.config_map(1)["data"]["kwok.yaml"]
    assert json.loads(text)["options"] == {
        "podPlayStageParallelism": 16,
        "nodePlayStageParallelism": 16,
        "nodeLeaseParallelism": 16,
        "nodeLeaseDurationSeconds": 100,
        "cidr": "198.19.0.0/16",
        "manageNodesWithLabelSelector": "kumulus.io/shard=1,!kumulus.io/without-kwok",
    }


def test_another_configuration_is_another_pod_of_the_same_deployment() -> None:
    before, after = controllers().deployment(0), controllers(parallelism=8).deployment(0)
    assert before["metadata"]["name"] == after["metadata"]["name"] == "kwok-controller"
    assert before["spec"]["selector"] == after["spec"]["selector"]
    assert before["spec"]["template"]["metadata"] != after["spec"]["template"]["metadata"]


def test_the_first_controller_stays_when_others_come() -> None:
    one, three = controllers(), controllers(shards=3)
    assert one.deployment(0)["spec"]["selector"] == three.deployment(0)["spec"]["selector"]
    names = [three.deployment(shard)["metadata"]["name"] for shard in range(3)]
    assert names == ["kwok-controller", "kwok-controller-1", "kwok-controller-2"]


def test_a_controller_runs_on_real_nodes_and_leaves_one_that_is_lost_ten_times_as_soon_as_other_pods() -> None:
    placed = controllers().deployment(0)["spec"]["template"]["spec"]
    chosen = placed["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (term,) = chosen["nodeSelectorTerms"]
    assert {"key": "kumulus.io/pool", "operator": "DoesNotExist"} in term["matchExpressions"]
    evicted = {e["key"]: e.get("tolerationSeconds") for e in placed["tolerations"] if e["effect"] == "NoExecute"}
    assert evicted == {"node.kubernetes.io/not-ready": 30, "node.kubernetes.io/unreachable": 30}


def test_stages_have_a_weight_and_the_name_of_the_cluster_whose_they_are() -> None:
    own, others = (stage_manifests("dev", installed=installed) for installed in (True, False))
    assert all(each["spec"]["weight"] > 0 and each["metadata"]["name"].endswith("-dev") for each in own)
    # In another's KWOK only nodes are touched, and only those on which a fault holds.
    assert {each["spec"]["resourceRef"]["kind"] for each in own} == {"Node", "Pod"}
    assert {each["spec"]["resourceRef"]["kind"] for each in others} == {"Node"}


def test_no_stage_that_deletes_a_pod_does_so_before_it_is_sure_that_it_is_still_that_pod() -> None:
    deleting = [each["spec"] for each in stage_manifests("dev", installed=True) if '"delete": true' in json.dumps(each)]
    assert [spec["resourceRef"]["kind"] for spec in deleting] == ["Pod", "Pod"]
    for spec in deleting:
        patch, removal = spec["steps"]
        assert "uid: {{ .metadata.uid | Quote }}" in patch["patch"]["template"]
        assert removal == {"delete": True}


@pytest.mark.parametrize(
    ("charts", "path", "remedy"),
    [
        ({"image": "kwok"}, "kwokCharts.image", "write it like example.com/kwok:v0.8.0"),
        ({"podCIDR": "10.0.0.1/8"}, "kwokCharts.podCIDR", "write a range such as"),
        ({"podCIDR": "10.0.0.0/24"}, "kwokCharts.podCIDR", "write a range of /20 or larger"),
        ({"shards": 0}, "kwokCharts.shards", "from 1 to 64"),
        ({"repoURL": "charts"}, "kwokCharts.repoURL", "starts with https://"),
        ({"chards": 2}, "kwokCharts.chards", "write shards"),
        ({"cpu": "a lot"}, "kwokCharts.cpu", "write a quantity such as"),
        ({"memory": "-1Gi"}, "kwokCharts.memory", "write 0 or more"),
        ({"chart": ""}, "kwokCharts.chart", "without blanks"),
        ({"stageFastChart": " "}, "kwokCharts.stageFastChart", "without blanks"),
    ],
)
def test_mistakes_are_told_by_path_and_remedy(charts: dict[str, Any], path: str, remedy: str) -> None:
    with pytest.raises(SpecError) as raised:
        spec(runtime="kind", kwokCharts=charts)
    (problem,) = raised.value.problems
    assert problem.path == path
    assert remedy in problem.remedy


def test_an_image_is_told_apart_from_its_tag() -> None:
    settings = KwokChartsSpec(image="example.com:5000/a/kwok:v0.8.0").settings()
    assert (settings.repository, settings.tag) == ("example.com:5000/a/kwok", "v0.8.0")


def test_a_kubeconfigs_content_has_to_be_encrypted() -> None:
    """The state of the plugin's provider has the stack's configuration in it."""
    cluster = {"cluster": {"runtime": "existing", "existing": {"kubeconfig": "users:\n- user: {token: abc123}\n"}}}
    with pytest.raises(SpecError) as raised:
        load(cluster, "dev", Path())
    assert (
        "existing.kubeconfig: is a kubeconfig in clear, with its keys; set it with: pulumi config set --secret"
        in str(raised.value)
    )
    assert "abc123" not in str(raised.value)
    assert load(cluster, "dev", Path(), secrets=Secrets((("existing", "kubeconfig"),))).spec.existing.kubeconfig


@pytest.mark.parametrize("section", ["kwokCharts", "existing"])
def test_sections_of_another_runtime_are_refused(section: str) -> None:
    with pytest.raises(SpecError, match=f"{section}: has no effect with the runtime"):
        spec(**{section: {}})
