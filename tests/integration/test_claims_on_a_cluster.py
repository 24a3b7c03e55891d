"""Pods of a trace that claim their GPUs, on a real kube-scheduler: each part is of one GPU, and nothing stays."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.report.model import Report
from kumulus.extras.lab.run.bench import RepetitionOutcome
from tests.integration.conftest import Plane, Pools, plane_at
from tests.integration.test_resource_slices import CLASSES, WITHOUT_GPUS, devices
from tests.support import runs

pytestmark = pytest.mark.integration
PROFILES = ["1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"]
HEADING = "name,arrival,cpu,memory,gpus,gpuMilli"
COLUMNS = {"name": "name", "cpu": "cpu", "memory": "memory", "gpus": "gpus", "gpuMilli": "gpuMilli"}
SHARES = (500, 300, 1000, 250, 1000, 700)
CLAIMS = "/apis/resource.k8s.io/v1/resourceclaims"
KINDS = {"gpu.nvidia.com": "gpu", "mig.nvidia.com": "mig"}


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A control plane of its own, as gates are of a whole cluster, with the classes that a stack declares."""
    gates = {"DRAConsumableCapacity": True, "DRAPartitionableDevices": True}
    with plane_at(tmp_path_factory.mktemp("claims"), featureGates=gates) as made:
        for name, kind in KINDS.items():
            expression = f'device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].type == "{kind}"'
            body = {"metadata": {"name": name}, "spec": {"selectors": [{"cel": {"expression": expression}}]}}
            made.api.create(CLASSES, body)
        yield made


class Lab:
    """Plays 30 pods, which ask for more than there is, on three nodes of two GPUs each."""

    def __init__(self, plane: Plane, directory: Path) -> None:
        self.plane, self.directory = plane, directory
        self.claims: dict[str, Any] = {}

    def file(self, claims: str, trace: dict[str, Any] | None = None, **fields: Any) -> Path:
        rows = "".join(f"t{n},{n},{100 + 20 * (n % 5)}m,64Mi,1,{SHARES[n % 6]}\n" for n in range(29))
        (self.directory / "tasks.csv").write_text(f"{HEADING}\n{rows}c0,30,200m,64Mi,0,0\n")
        played = {"file": "tasks.csv", "columns": COLUMNS, "stay": True, "shuffle": "seed", **(trace or {})}
        workload = {"name": "tasks", "kind": "Pod", "resourceClaims": claims, "arrival": {"trace": played}}
        given = {"name": "claims", "settle": "1s", "timeout": "180s", "seed": 5, "workloads": [workload], **fields}
        path = self.directory / "experiment.yaml"
        path.write_text(yaml.safe_dump(given))
        return path

    def look(self, _: RepetitionOutcome) -> None:
        for claim in self.plane.api.list(CLAIMS):
            if "allocation" in claim.get("status", {}):
                self.claims[claim["metadata"]["name"]] = claim["status"]["allocation"]["devices"]["results"]

    async def run(self, file: Path) -> Report:
        return (await runs.run(self.plane.observed.kubeconfig, file, on_sample=self.look))[0]


@pytest.fixture
async def lab(plane: Plane, tmp_path: Path) -> Lab:
    return Lab(plane, tmp_path)


@pytest.mark.parametrize(("scheduler", "besides"), [("default", False), ("kube-scheduler", True)])
async def test_parts_of_gpus_are_claimed_and_counted_gpu_by_gpu(
    lab: Lab, pools: Pools, scheduler: str, besides: bool
) -> None:
    """Besides, nodes count thousandths of all their GPUs together, which changes nothing about what there is."""
    capacity = WITHOUT_GPUS | ({"kumulus.io/gpu-milli": "2000"} if besides else {})
    await pools.create(pools.inputs(3, resourceSlices=devices(2, allowMultipleAllocations=True), capacity=capacity))
    report = await lab.run(lab.file("milli", {"milliGpus": besides}, scheduler={"name": scheduler}))
    [test] = report.results.tests
    assert test.status == "success", test.details.ended
    measures, used = test.details.measures, test.details.policy
    assert used is not None
    assert measures["pods.scheduled"] + measures["pods.pending"] == 30
    assert measures["pods.pending"] > 0, "29 pods ask for more than 6 GPUs"
    assert measures["gpus.capacity"] == 6
    # Added up from the claims themselves: no GPU gives more than it has, and the report says as much.
    of: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for results in lab.claims.values():
        for result in results:
            written = result["consumedCapacity"]["milli"]
            of[result["pool"], result["device"]]["milli"] += 1000 if written == "1k" else int(written)
    assert len(lab.claims) == measures["pods.scheduled"] - 1, "one pod asks for no GPU"
    given = [counter["milli"] for counter in of.values()]
    assert max(given) <= 1000
    assert max(used.allocated_percent.values()) == pytest.approx(sum(given) / 60, abs=0.01)
    assert (used.split, measures["policy.split"]) == (0, 0)
    # On a busy machine it is known only between bounds.
    assert measures.get("gpuHours.used", 0) > 0 or "gpuHours.used" in test.details.not_measured
    assert 0 < measures["cpu.fragmentation"] < 0.05 * measures["cpu.controlPlane"]
    assert measures["cpu.fragmentationShare"] < 0.05
    assert nothing_left(lab.plane)


async def test_a_part_can_be_a_mig_device(lab: Lab, pools: Pools) -> None:
    await pools.create(pools.inputs(3, resourceSlices=devices(2, migProfiles=PROFILES), capacity=WITHOUT_GPUS))
    report = await lab.run(lab.file("mig"))
    [test] = report.results.tests
    assert test.status == "success", test.details.ended
    names = Counter(result["device"].split("-")[2:3][0] if "mig" in result["device"] else "whole"
                    for results in lab.claims.values() for result in results)  # fmt: skip
    assert names["mig"] > 0
    profiles = {
        result["device"].split("-")[3]
        for results in lab.claims.values()
        for result in results
        if "mig" in result["device"]
    }
    assert profiles <= {"2g20gb", "3g40gb", "4g40gb", "7g80gb"}, "the smallest that have 250, 300, 500 and 700"
    assert test.details.measures["pods.pending"] > 0
    used = test.details.policy
    assert used is not None
    assert 0 < max(used.allocated_percent.values()) <= 100
    assert nothing_left(lab.plane)


async def test_a_cluster_without_shared_gpus_is_told_before_anything_is_created(lab: Lab, pools: Pools) -> None:
    await pools.create(pools.inputs(1, resourceSlices=devices(2), capacity=WITHOUT_GPUS))
    with pytest.raises(LabError, match="no node publishes a GPU that claims can share"):
        await lab.run(lab.file("milli"))
    assert nothing_left(lab.plane)


def nothing_left(plane: Plane) -> bool:
    """Whether no claim, no template and no namespace of a run is there any more."""
    plane.api.until(CLAIMS, lambda found: not found)
    plane.api.until("/apis/resource.k8s.io/v1/resourceclaimtemplates", lambda found: not found)
    left = plane.api.list("/api/v1/namespaces", labelSelector="kumulus.io/experiment")
    return all(each["status"]["phase"] == "Terminating" for each in left)
