"""KEMU's ClusterConfig, read unmodified."""

import pytest

from kumulus.model.errors import SpecError
from kumulus.model.pools import NodeInfo, Taint
from kumulus.model.totals import totals
from kumulus.stackfile.expand import pools
from kumulus.stackfile.kemu import KemuFile, convert
from tests.support.kemu import cluster_file

SMALL = """\
apiVersion: kemu.datastrophic.io/v1alpha1
kind: ClusterConfig
spec:
  kindConfig: |
    kind: Cluster
    apiVersion: kind.x-k8s.io/v1alpha4
  clusterAddons:
    - name: queue
      repoName: charts
      repoURL: https://charts.example.com
      namespace: queue-system
      chart: charts/queue
      version: 1.10
      valuesObject: |
        replicas: 2
        image: {tag: "1.10"}
  nodeGroups:
    - name: gpu-8x
      placement:
        - availabilityZone: z1
          replicas: 3
        - availabilityZone: z2
          replicas: 2
      nodeTemplate:
        metadata:
          labels:
            example.com/gpu-type: big
            example.com/shared: true
          annotations:
            example.com/note: kept
        capacity:
          cpu: 96
          memory: 1360Gi
          ephemeralStorage: 3Ti
          nvidia.com/gpu: 8
"""


def read(text: str, runtime: str = "kwok") -> KemuFile:
    return convert(text, "small.yaml", runtime)


def notices(text: str) -> dict[str, str]:
    return {notice.path: notice.message for notice in read(text).notices}


def told(text: str, runtime: str = "kwok") -> dict[str, str]:
    with pytest.raises(SpecError) as caught:
        read(text, runtime)
    assert caught.value.source == "small.yaml"
    return {problem.path: f"{problem.message}; {problem.remedy}" for problem in caught.value.problems}


def with_groups(groups: str) -> str:
    return f"kind: ClusterConfig\nspec:\n  nodeGroups:\n{groups}"


@pytest.mark.parametrize(
    ("stack", "nodes", "gpus", "cpus", "memory"),
    [("gcp-small", 30, 240, 4640, "53880Gi"), ("gcp-large", 2550, 20_400, 367_200, "4329600Gi")],
)
def test_a_fleet_of_kemu_has_all_that_its_file_says(stack: str, nodes: int, gpus: int, cpus: int, memory: str) -> None:
    file = read(cluster_file(stack))
    plain = totals(pools(file.spec, "dev", "kemu")).to_plain()
    assert (plain["nodes"], plain["gpus"], plain["cpu"], plain["memory"]) == (nodes, gpus, cpus, memory)
    assert plain["pods"] == nodes * 110
    corrected = [notice.path for notice in file.notices if notice.path.endswith("ephemeralStorage")]
    assert len(corrected) == len(file.spec.nodeGroups)


def test_a_file_becomes_the_same_cluster_as_in_our_own_format() -> None:
    spec = read(SMALL).spec
    group = spec.nodeGroups[0]
    assert [(each.availabilityZone, each.replicas) for each in group.placement] == [("z1", 3), ("z2", 2)]
    assert group.nodeTemplate.capacity["cpu"] == "96"
    assert group.nodeTemplate.metadata.annotations == {"example.com/note": "kept"}
    # Scalars are the texts that they were written as; values have the types that Helm gives them.
    assert group.nodeTemplate.metadata.labels["example.com/shared"] == "true"
    [addon] = spec.clusterAddons
    assert (addon.version, addon.valuesObject) == ("1.10", {"replicas": 2, "image": {"tag": "1.10"}})


def test_nodes_carry_kemus_labels_and_values_beside_ours() -> None:
    pool = pools(read(SMALL).spec, "dev", "kemu")[0]
    assert pool.labels == {
        "kubernetes.io/os": "kemu",
        "kubernetes.io/arch": "arm64",
        "kubernetes.io/role": "agent",
        "node.kubernetes.io/instance-type": "gpu-8x",
        "topology.kubernetes.io/zone": "z1",
        "type": "kwok",
        "kemu.datastrophic.io/managed": "true",
        "example.com/gpu-type": "big",
        "example.com/shared": "true",
        "kumulus.io/cluster": "dev",
        "kumulus.io/group": "gpu-8x",
        "kumulus.io/pool": "gpu-8x-z1",
    }
    assert pool.node_info == NodeInfo("arm64", "kemu", "fake")
    assert pool.taints == (Taint("kwok.x-k8s.io/node", "fake", "NoSchedule"),)


WHERE = "spec.nodeGroups[0].nodeTemplate.capacity"


def test_known_mistakes_are_corrected_with_a_notice_that_names_the_path() -> None:
    capacity = read(SMALL).spec.nodeGroups[0].nodeTemplate.capacity
    assert capacity["ephemeral-storage"] == "3Ti"
    assert "ephemeralStorage" not in capacity
    assert capacity["pods"] == "110"
    assert "taken as ephemeral-storage" in notices(SMALL)[f"{WHERE}.ephemeralStorage"]
    assert "taken as 110" in notices(SMALL)[f"{WHERE}.pods"]


def test_a_right_name_wins_over_the_mistaken_one_and_what_no_pod_can_request_is_left_out() -> None:
    text = SMALL.replace("cpu: 96\n", "cpu: 96\n          ephemeral-storage: 5Ti\n          widgets: 5\n")
    assert read(text).spec.nodeGroups[0].nodeTemplate.capacity["ephemeral-storage"] == "5Ti"
    assert "left out" in notices(text)[f"{WHERE}.widgets"]


def test_kinds_configuration_is_used_by_kind_only() -> None:
    assert read(SMALL).spec.kindConfig is None
    assert "not used with kwok" in notices(SMALL)["spec.kindConfig"]
    kind = read(SMALL, "kind")
    assert kind.spec.kindConfig == {"kind": "Cluster", "apiVersion": "kind.x-k8s.io/v1alpha4"}
    assert "spec.kindConfig" not in {notice.path for notice in kind.notices}


def test_unknown_keys_are_ignored_with_a_notice_as_kemu_ignores_them() -> None:
    text = SMALL.replace("        capacity:", "        taints: []\n        capacity:")
    text = text.replace("  nodeGroups:", "  colour: red\n  nodeGroups:")
    assert {"spec.colour", "spec.nodeGroups[0].nodeTemplate.taints"} <= notices(text).keys()
    assert read(text).spec == read(SMALL).spec


def test_what_kemu_takes_as_zero_or_empty_is_taken_so() -> None:
    text = with_groups("    - name: a\n      placement:\n        - availabilityZone: z\n    - name: b\n")
    spec = read(text).spec
    assert spec.nodeGroups[0].placement[0].replicas == 0
    assert spec.nodeGroups[1].placement == []
    assert spec.nodeGroups[0].nodeTemplate.capacity == {"cpu": "1k", "memory": "1Ti", "pods": "1M"}
    assert "KWOK's default: cpu 1k, memory 1Ti, pods 1M" in notices(text)[WHERE]


@pytest.mark.parametrize("text", ["kind: ClusterConfig\nspec: {}\n", "kind: ClusterConfig\n", "spec: {nodeGroups: }\n"])
def test_an_empty_file_is_a_control_plane_without_nodes(text: str) -> None:
    assert read(text).spec.nodeGroups == []


@pytest.mark.parametrize(
    ("text", "path", "words"),
    [
        ("", "", "is nothing"),
        ("- a", "", "is a list"),
        ("kind: Cluster\nspec: {}", "kind", 'is "Cluster", not KEMU\'s ClusterConfig'),
        ("apiVersion: v1", "kind", "is missing"),
        ("kind: ClusterConfig\nspec: [a]", "spec", "is a list"),
        ("kind: ClusterConfig\nspec: {nodeGroups: {}}", "spec.nodeGroups", "not a list"),
        ("kind: ClusterConfig\nspec: {nodeGroups: [a]}", "spec.nodeGroups[0]", "not a mapping"),
        (SMALL.replace("replicas: 3", "replicas: -3"), "spec.nodeGroups[0].placement[0].replicas", "less than 0"),
        (SMALL.replace("gpu-8x", "GPU_8x"), "spec.nodeGroups[0].name", "write gpu-8x"),
        (SMALL.replace("charts/queue", "queues/queue"), "spec.clusterAddons[0].chart", 'write "charts/queue"'),
        (SMALL.replace("valuesObject: |", "valuesObject:"), "spec.clusterAddons[0].valuesObject", "valuesObject: |"),
        (SMALL.replace("memory: 1360Gi", "? \n          : 5"), WHERE, "no text"),
        # Under the name that the file has.
        (SMALL.replace("3Ti", "lots"), f"{WHERE}.ephemeralStorage", "lots"),
        ("kind: ClusterConfig\nspec: [a\n", "", "line 3, column 1"),
    ],
)
def test_what_no_cluster_can_be_made_of_is_told_with_its_path(text: str, path: str, words: str) -> None:
    problems = told(text)
    assert list(problems) == [path]
    assert words in problems[path]


def test_messages_that_name_another_place_name_it_as_the_file_has_it() -> None:
    problems = told(with_groups("    - name: a\n    - name: a\n"))
    assert "already spec.nodeGroups[0].name" in problems["spec.nodeGroups[1].name"]


def test_all_problems_are_told_at_once() -> None:
    text = SMALL.replace("replicas: 3", "replicas: few").replace("1360Gi", "1360GB")
    assert len(told(text.replace("valuesObject: |", "valuesObject:"))) == 3
