"""Every repetition begins from the same full cluster: the one that a snapshot has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.report.model import Report
from kumulus.extras.snapshots import kwok as snapshot
from kumulus.runtimes.kwok.layout import Layout
from tests.integration.conftest import PODS, Plane, Pools, pod
from tests.support import runs
from tests.support.api import Object

pytestmark = pytest.mark.integration
Create = Callable[[str, Object], Object]


async def run(plane: Plane, directory: Path, snapshots: Path | None, said: list[str]) -> Report:
    workload = {"name": "work", "kind": "Pod", "jobs": 3, "requests": {"cpu": "1"}, "nodeSelector": {"lab": "full"}}
    experiment = {"name": "full", "from": {"snapshot": "full"}, "repetitions": 2, "settle": "1s", "timeout": "120s"}
    file = directory / "experiment.yaml"
    file.write_text(yaml.safe_dump(experiment | {"workloads": [workload]}))
    return (await runs.run(plane.observed.kubeconfig, file, say=said.append, snapshots=snapshots))[0]


async def test_what_was_there_then_is_there_in_every_repetition(
    plane: Plane, pools: Pools, workloads: Create, tmp_path: Path
) -> None:
    inputs = pools.inputs(2, labels={"lab": "full"}, capacity={"cpu": "3", "memory": "16Gi", "pods": "110"})
    name = inputs["name"]
    await pools.create(inputs)
    # Of the six CPUs the four that are taken leave room for two of the three pods that come.
    for number in range(4):
        workloads(PODS, pod(f"{name}-{number}", name, cpu="1"))
    there = plane.api.until(
        PODS, lambda found: sum(bool(each["spec"].get("nodeName")) for each in found.values()) >= 4,
        labelSelector=f"test={name}",
    )  # fmt: skip
    assert len(there) == 4
    identity = plane.api.get("/api/v1/namespaces/kube-system")["metadata"]["uid"]
    snapshot.save(Layout(plane.directory), "test", identity, tmp_path / "snapshots" / "full.snapshot")
    for gone in list(there)[:2]:
        plane.api.delete(f"{PODS}/{gone}?gracePeriodSeconds=0")
    workloads(PODS, pod(f"{name}-later", name, cpu="1"))

    said: list[str] = []
    report = await run(plane, tmp_path, tmp_path / "snapshots", said)
    assert report.results.status == "success", report.results.error
    found = [test.details.measures for test in report.results.tests]
    assert [each["pods.scheduled"] for each in found] == [2, 2], "as full as then, both times"
    assert [each["pods.pending"] for each in found] == [1, 1]
    assert sum("begins from the snapshot full" in line for line in said) == 2
    now = {
        each["metadata"]["name"]: each["metadata"]["uid"] for each in plane.api.list(PODS, labelSelector=f"test={name}")
    }
    assert now == {each: found["metadata"]["uid"] for each, found in there.items()}


async def test_a_snapshot_that_is_not_there_is_told_with_those_that_are(plane: Plane, tmp_path: Path) -> None:
    folder = tmp_path / "snapshots"
    folder.mkdir()
    with pytest.raises(LabError, match=r"no snapshot full; make it: kumulus snapshot save full"):
        await run(plane, tmp_path, folder, [])
    (folder / "other.snapshot").write_text("")
    with pytest.raises(LabError, match=r"no snapshot full; there are other"):
        await run(plane, tmp_path, folder, [])
    (folder / "full.snapshot").write_text("nothing")
    with pytest.raises(LabError, match=r"from: snapshot full: .* is no snapshot"):
        await run(plane, tmp_path, folder, [])
    with pytest.raises(LabError, match="on a stack"):
        await run(plane, tmp_path, None, [])
