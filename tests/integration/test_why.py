"""Why a pod went to its node: what a real, unmodified kube-scheduler logs of its decisions."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus.cli import main
from kumulus.kube import Client, load_kubeconfig
from kumulus.lab.file.load import load
from kumulus.lab.run.run import Options, Run
from kumulus.schedulers.decisions.document import NAME, Decision, decisions
from tests.integration.conftest import KWOK_TAINT, Plane, Pools

pytestmark = pytest.mark.integration


async def run(plane: Plane, directory: Path, **fields: Any) -> Path:
    """Run an experiment with `why: true`; returns the run's directory."""
    file = directory / "experiment.yaml"
    file.write_text(yaml.safe_dump({"name": "why", "why": True, "settle": "3s", "timeout": "180s", **fields}))
    kubeconfig = Path(plane.observed.kubeconfig)
    options = Options(
        kubeconfig=kubeconfig,
        stack="test",
        results=directory / "results",
        commit="",
        stop=asyncio.Event(),
        on_sample=lambda _: None,
        on_report=lambda *_: None,
        say=lambda _: None,
    )
    async with Client(load_kubeconfig(kubeconfig), patience=60.0) as client:
        made = Run(client, load(file), options)
        report = await made.run()
    assert report.results.status == "success", report.results.error
    return made.directory.path


FILTERS = ("NodeUnschedulable", "TaintToleration", "NodeAffinity", "NodeResourcesFit")
TAINT = {"key": "lab", "value": "why", "effect": "NoSchedule"}


def work(name: str, jobs: int, cpu: str) -> dict[str, Any]:
    selector = {"lab": "why"}
    return {"name": name, "kind": "Pod", "jobs": jobs, "requests": {"cpu": cpu}, "nodeSelector": selector}


async def test_every_binding_is_explained_by_the_scores_of_an_unmodified_kube_scheduler(
    plane: Plane, pools: Pools, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capacity = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    await pools.create(pools.inputs(6, labels={"lab": "why"}, capacity=capacity))
    fitting, too_large = work("fits", 30, "500m"), work("never", 1, "64")

    directory = await run(plane, tmp_path, workloads=[fitting, too_large])

    kept = [each for each in decisions(directory / "scheduler" / NAME) if isinstance(each, Decision)]
    assert len(kept) == 30
    assert [each.pod for each in kept if not each.explained] == []
    for each in kept:
        if each.chosen is not None and not each.like:
            assert each.chosen.node == each.node
            assert sum(each.chosen.scores.values()) == each.chosen.total
            assert each.next is None or each.next.total < each.chosen.total
    assert main.main(["experiment", "why", str(directory), "--json"]) == 0
    sums = json.loads(capsys.readouterr().out)
    assert (sums["bound"], sums["explained"]) == (30, 30)
    assert main.main(["experiment", "why", str(directory), kept[0].pod]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"{kept[0].pod} -> {kept[0].node}")
    assert "NodeResourcesFit" in said
    assert main.main(["experiment", "why", str(directory), "never"]) == 0
    assert "Insufficient cpu" in capsys.readouterr().out


async def test_a_pod_that_was_refused_first_says_by_what(
    plane: Plane, pools: Pools, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capacity = {"cpu": "1", "memory": "16Gi", "pods": "110"}
    await pools.create(pools.inputs(1, labels={"lab": "why-one"}, capacity=capacity))
    one = {**work("turns", 2, "800m"), "kind": "Job", "nodeSelector": {"lab": "why-one"}, "duration": "5s"}

    directory = await run(plane, tmp_path, workloads=[one], until="completed")

    kept = [each for each in decisions(directory / "scheduler" / NAME) if isinstance(each, Decision)]
    assert [(each.refused > 0, "Insufficient cpu" in each.reason) for each in kept] == [(False, False), (True, True)]
    assert all(each.feasible == 1 and each.explained for each in kept)
    assert main.main(["experiment", "why", str(directory), kept[1].pod]) == 0
    said = capsys.readouterr().out
    assert "refused before" in said
    assert "the only node that fitted" in said


def filters_of(plane: Plane, wanted: str, cpu: int, taken: Counter[str]) -> tuple[dict[str, int], int]:
    """What filters refuse of all nodes, one filter after the other as kube-scheduler runs them, and how many are left.

    Args:
        plane: the control plane.
        wanted: the label `lab` of the nodes that a pod may go to.
        cpu: milli-CPU that it asks for.
        taken: milli-CPU in use by node.
    """
    found: Counter[str] = Counter()
    left = 0
    for node in plane.api.list("/api/v1/nodes"):
        name, spec = node["metadata"]["name"], node.get("spec", {})
        taints = {each["key"] for each in spec.get("taints", ()) if each["effect"] != "PreferNoSchedule"}
        free = 1000 * int(node["status"]["allocatable"]["cpu"]) - taken[name]
        if spec.get("unschedulable"):
            found["NodeUnschedulable"] += 1
        elif taints - {"kwok.x-k8s.io/node"}:
            found["TaintToleration"] += 1
        elif node["metadata"]["labels"].get("lab") != wanted:
            found["NodeAffinity"] += 1
        elif free < cpu:
            found["NodeResourcesFit"] += 1
        else:
            left += 1
    return dict(found), left


async def test_the_filters_that_refused_nodes_are_those_that_had_to_refuse_them(
    plane: Plane, pools: Pools, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capacity = {"cpu": "2", "memory": "16Gi", "pods": "110"}
    made = {
        "chosen": pools.inputs(8, labels={"lab": "why"}, capacity=capacity),
        "cordoned": pools.inputs(3, labels={"lab": "why"}, capacity=capacity),
        "tainted": pools.inputs(5, labels={"lab": "why"}, capacity=capacity, taints=[KWOK_TAINT, TAINT]),
        "elsewhere": pools.inputs(7, labels={"lab": "other"}, capacity=capacity),
    }
    for inputs in made.values():
        await pools.create(inputs)
    for name in pools.nodes(made["cordoned"]):
        plane.api.merge(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": True}})
    # Two pods of a node's three quarters do not go together: each one that is bound fills a node.
    directory = await run(plane, tmp_path, workloads=[work("fills", 8, "1500m")])

    kept = [each for each in decisions(directory / "scheduler" / NAME) if isinstance(each, Decision)]
    assert [each.unknown for each in kept] == [""] * 8
    taken: Counter[str] = Counter()
    for each in kept:
        refused, left = filters_of(plane, "why", 1500, taken)
        assert (dict(each.filters), each.passed, each.feasible) == (refused, left, left), each.pod
        assert list(each.filters) == [name for name in FILTERS if name in each.filters], "in their order"
        taken[each.node] += 1500
    assert kept[-1].filters["NodeResourcesFit"] == 7
    assert main.main(["experiment", "why", str(directory), kept[-1].pod]) == 0
    said = capsys.readouterr().out
    assert "NodeUnschedulable 3, TaintToleration 5, NodeAffinity " in said
    assert main.main(["experiment", "why", str(directory), "--json"]) == 0
    sums = json.loads(capsys.readouterr().out)["filters"]
    assert (sums["bindings"], sums["named"], sums["percent"]) == (8, 8, 100.0)
    assert sums["refused"]["TaintToleration"] == 40
