"""A KEMU file as a stack file: the same cluster, and what was corrected in comments."""

from pathlib import Path

import pytest
import yaml

from kumulus.stackfile.expand import pools
from kumulus.stackfile.kemu import KemuFile, convert, stack_file_of
from kumulus.stackfile.load import load
from kumulus.stackfile.yamltext import read_yaml
from kumulus.toolchain import kubernetes_versions

FILE = """\
kind: ClusterConfig
spec:
  colour: red
  kindConfig: |
    kind: Cluster
    apiVersion: kind.x-k8s.io/v1alpha4
    nodes: # three of them
      - role: control-plane
  clusterAddons:
    - name: queue
      repoURL: https://charts.example.com
      namespace: queue-system
      chart: queue
      version: 1.10
      valuesObject: |
        # a comment stays
        replicas: 0o17
        at: "12:30"
        word: "yes"
  nodeGroups:
    - name: gpu-8x
      placement:
        - {availabilityZone: z1, replicas: 3}
        - {availabilityZone: us-east1-b, replicas: 0}
      nodeTemplate:
        metadata:
          labels: {example.com/shared: true, example.com/nine: 0x9, kubernetes.io/os: linux}
          annotations: {example.com/note: "a: b # c\\td"}
        capacity: {cpu: 96, memory: 1360Gi, ephemeralStorage: 3Ti, nvidia.com/gpu: 8}
    - name: empty
      placement: [{availabilityZone: z1, replicas: 2}]
"""


def assert_same(file: KemuFile) -> str:
    text = stack_file_of(file)
    assert read_yaml(text) == yaml.safe_load(text)
    ours = load(yaml.safe_load(text)["config"], "dev", Path("/nonexistent"))
    # KEMU's own nodes say that they are fake; those of a stack file have their cluster's version.
    kubelet = ours.pools[0].node_info.kubelet_version
    assert list(ours.pools) == pools(file.spec, "dev", "kemu", kubelet)
    assert kubelet == (f"v{kubernetes_versions()[0]}" if file.spec.runtime == "kwok" else "fake")
    assert ours.spec.clusterAddons == file.spec.clusterAddons
    assert (ours.spec.kindConfig, ours.spec.runtime) == (file.spec.kindConfig, file.spec.runtime)
    assert ours.notices == ()
    return text


@pytest.mark.parametrize("runtime", ["kwok", "kind"])
def test_the_stack_file_gives_the_same_cluster(runtime: str) -> None:
    text = assert_same(convert(FILE, "small.yaml", runtime))
    assert ("# three of them" in text) == (runtime == "kind")
    assert "# a comment stays" in text


def test_what_was_corrected_stands_in_comments() -> None:
    lines = stack_file_of(convert(FILE, "small.yaml")).splitlines()
    comments = [line for line in lines if line.startswith("# ")]
    assert comments[0] == "# From KEMU's small.yaml, by kumulus convert."
    assert "#   spec.colour: is not a key of KEMU's format; ignored, as KEMU does" in comments
    assert any("ephemeralStorage" in line for line in comments)
    assert lines[len(comments)] == "config:"


def test_a_file_in_order_has_nothing_to_tell() -> None:
    assert stack_file_of(convert("kind: ClusterConfig\nspec: {}\n", "x.yaml")).splitlines() == [
        "# From KEMU's x.yaml, by kumulus convert.",
        "config:",
        "  kumulus:cluster:",
        "    runtime: kwok",
    ]


def test_a_file_gives_the_same_nodes_on_every_runtime(tmp_path: Path) -> None:
    (tmp_path / "small.yaml").write_text(FILE)
    stacks = {
        runtime: load({"clusterConfig": "small.yaml", "runtime": runtime}, "dev", tmp_path)
        for runtime in ("kwok", "kind", "existing")
    }
    assert len({tuple(map(str, each.pools)) for each in stacks.values()}) == 1
    assert {name: each.spec.runtime for name, each in stacks.items()} == {name: name for name in stacks}
    # What it says to kind is for kind; on the others it is passed over, which is said.
    said = {name: any("kindConfig" in str(each) for each in stack.notices) for name, stack in stacks.items()}
    assert said == {"kwok": True, "kind": False, "existing": True}
    assert stacks["kind"].spec.kindConfig
    # Real nodes take add-ons' pods where there are some.
    assert [stacks[name].system_pool is None for name in stacks] == [False, True, True]


def test_labels_that_go_would_read_as_numbers_are_quoted() -> None:
    group = '{name: a, placement: [], nodeTemplate: {metadata: {labels: {rack: "08", commit: 1234e56}}}}'
    text = stack_file_of(convert(f"{{kind: ClusterConfig, spec: {{nodeGroups: [{group}]}}}}", "a.yaml"))
    assert "rack: '08'\n" in text
    assert "commit: '1234e56'\n" in text
