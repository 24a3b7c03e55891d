"""What cluster a test asks for, by keywords, a mapping or a stack file; mistakes are named with their remedies."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kumulus.testing import ClusterError
from kumulus.testing.manifests import read
from kumulus.testing.plugin import _nodes
from kumulus.testing.wanted import loaded, resized, tools

STACK = """
config:
  kumulus:cluster:
    name: mine
    nodeGroups:
      - {name: plain, placement: [{availabilityZone: a, replicas: 4}], nodeTemplate: {capacity: {cpu: "1", pods: "9"}}}
"""
IMPORTED = (
    "import sys; import kumulus.testing.plugin; print(*(name for name in sys.modules if name.startswith('kumulus')))"
)
A, B = ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}} for name in "ab")
TEXT = "\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n"


def test_a_number_is_plain_nodes_without_taints() -> None:
    (pool,) = loaded(None, 30, "", {}).pools
    assert (pool.replicas, pool.taints, pool.gpu_product) == (30, (), "")


@pytest.mark.parametrize(
    ("asked", "product", "gpus"),
    [
        ("h100", "NVIDIA-H100-80GB-HBM3", "8"),
        ("a2-highgpu-1g", "NVIDIA-A100-SXM4-40GB", "1"),
        ("l4", "NVIDIA-L4", "8"),
        ("t4", "Tesla-T4", "4"),
    ],
)
def test_a_machine_is_an_instance_type_or_one_with_the_most_of_a_gpu(asked: str, product: str, gpus: str) -> None:
    (pool,) = loaded(None, {asked: 2}, "", {}).pools
    assert (pool.gpu_product, pool.capacity["nvidia.com/gpu"], pool.replicas) == (product, gpus, 2)


def test_a_stack_files_section_is_what_the_file_says(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.dev.yaml"
    file.write_text(STACK)
    found = loaded(file, None, "", {})
    assert (found.cluster_name, [pool.replicas for pool in found.pools]) == ("mine", [4])
    assert set(tools(found)) & {"pulumi", "helm", "kumulus"} == set()


@pytest.mark.parametrize(
    ("spec", "more", "message"),
    [
        (None, {"nodes": {"h1000": 3}}, "h1000 is no instance type, and no GPU of the catalog; write h100$"),
        (None, {"nodes": {"abacus": 3}}, "abacus is no instance type, and no GPU .*; write an instance type"),
        (None, {"nodes": "30"}, r"nodes is '30'; write a number"),
        (None, {"nodes": True}, r"nodes is True; write a number"),
        (None, {"nodes": -1}, r"replicas"),
        ({"runtime": "kind"}, {}, "runtime: kind needs a stack"),
        ({"tenants": [{"name": "a"}]}, {}, r"tenants: needs a stack \(pulumi up\)"),
        ({"nodeGroup": []}, {}, "nodeGroups"),
        ({"nodeGroups": []}, {"nodes": 3}, "nodeGroups: in the mapping and an argument"),
        ("absent.yaml", {}, r"absent\.yaml cannot be read"),
        ("absent.yaml", {"nodes": 3}, r"nodeGroups: absent\.yaml says what the cluster is like"),
    ],
)
def test_a_mistake_is_named_with_what_to_write_instead(spec: Any, more: dict[str, Any], message: str) -> None:
    with pytest.raises(ClusterError, match=message):
        loaded(spec, more.pop("nodes", None), "", more)


def test_of_several_clusters_one_has_to_be_named(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.many.yaml"
    file.write_text("config: {kumulus:clusters: [{name: a}, {name: b}]}")
    with pytest.raises(ClusterError, match="has the clusters a, b; write cluster="):
        loaded(file, None, "", {})
    assert loaded(file, None, "b", {}).member == "b"


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (5, "several pools; write numbers by pool: h100-zone-1, l4-zone-1"),
        ({"t4": 1}, "t4 is no pool; write one of h100-zone-1, l4-zone-1"),
        ({"l4": -1}, "l4: -1 is less than no nodes; write a number from 0"),
    ],
)
def test_other_numbers_are_of_pools_that_there_are(nodes: Any, message: str) -> None:
    pools = {pool.name: pool for pool in loaded(None, {"h100": 1, "l4": 2}, "", {}).pools}
    assert [(pool.name, pool.replicas) for pool in resized(pools, {"l4": 7})] == [("l4-zone-1", 7)]
    with pytest.raises(ClusterError, match=message):
        resized(pools, nodes)


def test_nothing_of_kumulus_is_imported_before_a_fixture_is_used() -> None:
    found = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout.split() == ["kumulus", "kumulus.testing", "kumulus.testing.plugin"]


@pytest.mark.parametrize(
    ("written", "nodes"),
    [([], 3), (["30"], 30), (["h100=100"], {"h100": 100}), (["h100=1,", "l4=2"], {"h100": 1, "l4": 2})],
)
def test_nodes_in_pytests_configuration_are_a_number_or_numbers_by_machine(written: list[str], nodes: object) -> None:
    assert _nodes(written) == nodes


def test_other_nodes_in_pytests_configuration_are_refused_with_an_example() -> None:
    with pytest.raises(pytest.UsageError, match="kumulus_nodes is 'many'; write 30, or h100=100"):
        _nodes(["many"])


@pytest.mark.parametrize(
    "given",
    [[A, B], {"apiVersion": "v1", "kind": "List", "items": [A, B]}, f"---{TEXT % 'a'}---{TEXT % 'b'}---\n"],
    ids=["mappings", "a list", "a text"],
)
def test_documents_come_in_their_order(given: Any) -> None:
    assert list(read(given)) == [A, B]


def test_a_folders_files_come_in_the_order_of_their_names(tmp_path: Path) -> None:
    (tmp_path / "2.yaml").write_text(TEXT % "b")
    (tmp_path / "1.yml").write_text(TEXT % "a")
    (tmp_path / "notes.txt").write_text("none")
    assert list(read(tmp_path)) == list(read(str(tmp_path))) == [A, B]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("absent.yaml", r"absent\.yaml cannot be read"),
        ("a: [\n", "the text is not YAML"),
        ("a: b\n", "without apiVersion, kind or metadata.name; write all three"),
        ({"kind": "ConfigMap", "metadata": {"name": "a"}}, "without apiVersion"),
        (["text"], "without apiVersion"),
    ],
)
def test_what_is_no_manifest_is_named(given: Any, message: str) -> None:
    with pytest.raises(ClusterError, match=message):
        list(read(given))
