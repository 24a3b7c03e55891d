"""The catalog: every entry is whole, plausible and cites its source, and the labels are GPU Feature Discovery's."""

import re

import pytest

from kumulus.model.checks import label_problems, resource_name_problems, resource_problems
from kumulus.model.gfd import compacted, expanded, family, gfd_labels, gpu_problems
from kumulus.model.names import label_value_mistake
from kumulus.model.quantity import parse
from kumulus.nodes.catalog.instances import InstanceType, clouds, gpu_products, instance_types

GIB = 2**30 * 10**9


@pytest.mark.parametrize("kind", instance_types().values(), ids=lambda kind: kind.name)
def test_every_instance_type_is_whole_and_plausible(kind: InstanceType) -> None:
    assert not resource_problems((), kind.capacity)
    assert not resource_name_problems((), kind.capacity)
    assert {"cpu", "memory", "ephemeral-storage", "pods"} <= set(kind.capacity)
    assert not label_problems((), {**kind.labels, "type": kind.name, "machine": kind.machine})
    assert kind.source.startswith("https://")
    assert kind.architecture in ("amd64", "arm64")
    # A GPU without a product would get no labels, and a product without a GPU would be nowhere.
    assert bool(kind.product) == ("nvidia.com/gpu" in kind.capacity)
    assert not kind.product or kind.product in gpu_products()
    per_cpu = parse(kind.capacity["memory"]).nanos / GIB / int(kind.capacity["cpu"])
    assert 1.9 <= per_cpu <= 24, "GiB of memory for each CPU"
    assert parse(kind.capacity["ephemeral-storage"]).nanos >= 20 * GIB
    gpus = int(kind.capacity.get("nvidia.com/gpu", 0))
    assert gpus in (0, 1, 2, 4, 8, 16)
    last = re.search(r"gpu-([0-9]+)g$", kind.name)
    assert last is None or gpus == int(last[1])


def test_each_cloud_has_gpu_shapes_and_plain_ones() -> None:
    assert list(clouds()) == ["gcp", "aws", "azure"]
    for cloud in clouds():
        products = {kind.product for kind in instance_types().values() if kind.cloud == cloud}
        assert "" in products
        assert {"NVIDIA-A100-SXM4-80GB", "NVIDIA-H100-80GB-HBM3", "NVIDIA-H200"} <= products


@pytest.mark.parametrize("product", gpu_products())
def test_every_product_is_whole(product: str) -> None:
    known = gpu_products()[product]
    assert label_value_mistake(known.name) is None
    assert known.source.startswith("https://")
    assert re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+", known.driver)
    assert re.fullmatch(r"[0-9]+\.[0-9]+", known.cuda)
    assert family(*known.compute) != "undefined"
    assert not label_problems((), gfd_labels(known, 8, "x"))
    if size := re.search(r"-([0-9]+)GB", known.name):
        assert 0.95 * int(size[1]) * 1024 <= known.memory <= int(size[1]) * 1024
    # Only Ampere's, Hopper's and Blackwell's data centre chips can be divided.
    assert known.mig == (known.compute == (8, 0) or known.compute[0] >= 9)


@pytest.mark.parametrize(
    ("name", "cpu", "memory", "gpus", "product"),
    [
        ("a2-ultragpu-8g", "96", "1360Gi", "8", "NVIDIA-A100-SXM4-80GB"),
        ("a3-highgpu-8g", "208", "1872Gi", "8", "NVIDIA-H100-80GB-HBM3"),
        ("a3-ultragpu-8g", "224", "2952Gi", "8", "NVIDIA-H200"),
        ("p4d.24xlarge", "96", "1152Gi", "8", "NVIDIA-A100-SXM4-40GB"),
        ("p5.48xlarge", "192", "2048Gi", "8", "NVIDIA-H100-80GB-HBM3"),
        ("g6e.12xlarge", "48", "384Gi", "4", "NVIDIA-L40S"),
        ("Standard_ND96isr_H100_v5", "96", "1900Gi", "8", "NVIDIA-H100-80GB-HBM3"),
    ],
)
def test_known_shapes(name: str, cpu: str, memory: str, gpus: str, product: str) -> None:
    kind = instance_types()[name]
    assert (kind.capacity["cpu"], kind.capacity["memory"], kind.capacity["nvidia.com/gpu"]) == (cpu, memory, gpus)
    assert kind.product == product


def test_the_labels_are_those_of_gpu_feature_discovery() -> None:
    labels = gfd_labels(gpu_products()["NVIDIA-L40S"], 4, "g6e.12xlarge")
    assert {key.removeprefix("nvidia.com/"): value for key, value in labels.items()} == {
        "gpu.present": "true",
        "gpu.product": "NVIDIA-L40S",
        "gpu.count": "4",
        "gpu.replicas": "1",
        "gpu.sharing-strategy": "none",
        "gpu.memory": "46068",
        "gpu.family": "ada-lovelace",
        "gpu.compute.major": "8",
        "gpu.compute.minor": "9",
        "gpu.mode": "compute",
        "gpu.machine": "g6e.12xlarge",
        "mig.capable": "false",
        "mps.capable": "false",
        "vgpu.present": "false",
        "cuda.driver.major": "580",
        "cuda.driver.minor": "95",
        "cuda.driver.rev": "05",
        "cuda.driver-version.major": "580",
        "cuda.driver-version.minor": "95",
        "cuda.driver-version.revision": "05",
        "cuda.driver-version.full": "580.95.05",
        "cuda.runtime.major": "13",
        "cuda.runtime.minor": "0",
        "cuda.runtime-version.major": "13",
        "cuda.runtime-version.minor": "0",
        "cuda.runtime-version.full": "13.0",
    }


@pytest.mark.parametrize(
    ("compute", "name"),
    [((7, 0), "volta"), ((7, 5), "turing"), ((8, 6), "ampere"), ((8, 9), "ada-lovelace"), ((10, 3), "blackwell")],
)
def test_the_family_follows_from_the_compute_capability(compute: tuple[int, int], name: str) -> None:
    assert family(*compute) == name


@pytest.mark.parametrize("product", gpu_products())
def test_the_labels_of_a_gpu_are_a_few_values_in_the_state_and_all_there_again(product: str) -> None:
    labels = {"team": "x", **gfd_labels(gpu_products()[product], 8, "p5.48xlarge")}
    rest, gpu = compacted(labels)
    assert rest == {"team": "x"}
    assert len(gpu) == 9
    assert {**expanded(gpu), **rest} == labels


@pytest.mark.parametrize(
    "change",
    [
        {"nvidia.com/gpu.family": "mine"},
        {"nvidia.com/gpu.memory": "1"},
        {"nvidia.com/gpu.memory": "lots"},
        {"nvidia.com/gpu.compute.major": "x"},
        {"nvidia.com/cuda.driver-version.full": "580"},
        {"nvidia.com/mig.capable": "perhaps"},
        {"nvidia.com/cuda.driver.major": ""},
    ],
)
def test_labels_that_the_template_sets_itself_survive_the_state(change: dict[str, str]) -> None:
    labels = {**gfd_labels(gpu_products()["NVIDIA-L40S"], 4, ""), **change}
    rest, gpu = compacted(labels)
    assert {**(expanded(gpu) if gpu else {}), **rest} == labels


def test_a_label_that_is_missing_is_not_made_up() -> None:
    for missing in ("nvidia.com/gpu.product", "nvidia.com/gpu.family"):
        labels = gfd_labels(gpu_products()["NVIDIA-L40S"], 4, "")
        del labels[missing]
        assert compacted(labels) == (labels, {})
    assert compacted({"team": "x"}) == ({"team": "x"}, {})


@pytest.mark.parametrize("wrong", [3, {}, {"product": "x"}, {"product": 3}, {"x": "y"}])
def test_a_malformed_compact_form_is_told(wrong: object) -> None:
    problems = gpu_problems(("gpu",), wrong)
    assert problems
    assert all(each.path.startswith("gpu") and each.remedy for each in problems)
