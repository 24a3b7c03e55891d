"""Why a pod went to its node: what a real, unmodified kube-scheduler says of its decisions."""

import itertools
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from kumulus.cli import main
from kumulus.extras.lab.extender.column import NAME as COLUMNS
from kumulus.extras.lab.extender.column import PolicyColumn, columns
from kumulus.extras.schedulers.decisions.document import NAME, Decision, decisions
from tests.integration.conftest import KWOK_TAINT, Plane, Pools
from tests.support import runs

pytestmark = pytest.mark.integration


async def run(plane: Plane, directory: Path, **fields: Any) -> Path:
    """Run an experiment with `why: true`; returns the run's directory."""
    file = directory / "experiment.yaml"
    file.write_text(yaml.safe_dump({"name": "why", "why": True, "settle": "1s", "timeout": "180s", **fields}))
    report, found = await runs.run(plane.observed.kubeconfig, file)
    assert report.results.status == "success", report.results.error
    return found


FILTERS = ("NodeUnschedulable", "TaintToleration", "NodeAffinity", "NodeResourcesFit")
TAINT = {"key": "lab", "value": "why", "effect": "NoSchedule"}


def work(name: str, jobs: int, cpu: str) -> dict[str, Any]:
    selector = {"lab": "why"}
    return {"name": name, "kind": "Pod", "jobs": jobs, "requests": {"cpu": cpu}, "nodeSelector": selector}


@pytest.mark.every_version
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

    asked = directory / "scheduler" / "asked.json"
    assert oct(asked.stat().st_mode & 0o777) == "0o600", "its address is nobody else's"
    # What kube-scheduler asks has ended with it.
    assert [each for each in psutil.process_iter(["cmdline"]) if str(asked) in (each.info["cmdline"] or ())] == []


def filters_of(plane: Plane, wanted: str, cpu: int, taken: Counter[str]) -> tuple[dict[str, int], int]:
    """What filters refuse of all nodes, one filter after the other as kube-scheduler runs them, and how many are left.

    Args:
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


@pytest.mark.every_version
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
    # In the order in which it decided; bindings overtake each other.
    kept.sort(key=lambda each: -each.passed)
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


async def test_pods_that_fit_nowhere_between_others_change_nothing_of_what_is_said_of_these(
    plane: Plane, pools: Pools, tmp_path: Path
) -> None:
    capacity = {"cpu": "2", "memory": "16Gi", "pods": "110"}
    await pools.create(pools.inputs(12, labels={"lab": "why"}, capacity=capacity))
    await pools.create(pools.inputs(5, labels={"lab": "why"}, capacity=capacity, taints=[KWOK_TAINT, TAINT]))
    await pools.create(pools.inputs(3, labels={"lab": "other"}, capacity=capacity))
    workloads = [
        each for number in range(12) for each in (work(f"never-{number}", 2, "64"), work(f"fills-{number}", 1, "1500m"))
    ]
    directory = await run(plane, tmp_path, workloads=workloads)

    kept = [each for each in decisions(directory / "scheduler" / NAME) if isinstance(each, Decision)]
    log = (directory / "scheduler" / "logs" / "kube-scheduler.log").read_text()
    tried = re.findall(r'"About to try and schedule pod" pod="[^/]*/(never|fills)', log)
    between = sum(pair == ("never", "fills") for pair in itertools.pairwise(tried))
    assert between >= 3, tried
    assert (len(kept), [each.unknown for each in kept if each.unknown]) == (12, [])
    taken: Counter[str] = Counter()
    for each in sorted(kept, key=lambda each: -each.passed):
        refused, left = filters_of(plane, "why", 1500, taken)
        assert (dict(each.filters), each.passed) == (refused, left), each.pod
        taken[each.node] += 1500


def places(directory: Path) -> tuple[dict[str, Decision], list[PolicyColumn]]:
    kept = {each.pod: each for each in decisions(directory / "scheduler" / NAME) if isinstance(each, Decision)}
    return kept, list(columns(directory / "scheduler" / COLUMNS))


async def test_a_policy_that_looks_on_says_what_it_thinks_of_kube_schedulers_choices(
    plane: Plane, pools: Pools, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capacity = {"cpu": "16", "memory": "16Gi", "pods": "110"}
    await pools.create(pools.inputs(4, labels={"lab": "why"}, capacity=capacity))

    directory = await run(plane, tmp_path, workloads=[work("w", 8, "5")], whyPolicy="BestFit")

    kept, found = places(directory)
    assert len(kept) == 8
    assert {each.pod: each.node for each in found} == {pod: each.node for pod, each in kept.items()}
    used: Counter[str] = Counter()
    for each in found:
        # Nodes and pods are alike: BestFit wants the node with the most pods on it, and its scores are whole numbers.
        fuller = sum(count > used[each.node] for count in used.values())
        assert (each.decides, each.offered, each.fitting, each.higher) == (False, 4, 4, fuller), each
        used[each.node] += 1
    assert set(used.values()) == {2}, "kube-scheduler spreads them, and the policy decides nothing"
    assert all(each.chosen is not None for each in kept.values())
    assert main.main(["experiment", "why", str(directory), found[-1].pod]) == 0
    said = capsys.readouterr().out
    assert "NodeResourcesFit" in said
    assert "BestFit, which looks on: " in said
    assert main.main(["experiment", "why", str(directory), found[-1].pod, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["policy"]["score"] == found[-1].score
    page = tmp_path / "run.html"
    assert main.main(["experiment", "show", str(directory), "--html", str(page)]) == 0
    assert "BestFit, which looks on: " in page.read_text(encoding="utf-8")


async def test_a_policy_that_decides_has_its_scores_and_kube_schedulers_filters(
    plane: Plane, pools: Pools, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capacity = {"cpu": "16", "memory": "16Gi", "pods": "110"}
    await pools.create(pools.inputs(4, labels={"lab": "why"}, capacity=capacity))
    await pools.create(pools.inputs(3, labels={"lab": "other"}, capacity=capacity))

    directory = await run(plane, tmp_path, workloads=[work("w", 6, "5")], policy="BestFit")

    kept, found = places(directory)
    assert {each.pod: each.node for each in found} == {pod: each.node for pod, each in kept.items()}
    taken: Counter[str] = Counter()
    for each in found:
        decision = kept[each.pod]
        refused, left = filters_of(plane, "why", 5000, taken)
        assert (dict(decision.filters), decision.passed, decision.feasible) == (refused, left, 1), each
        assert (each.decides, each.offered, each.higher) == (True, left, 0)
        taken[each.node] += 5000
    assert len(taken) == 2, "it fills one node after the other"
    assert main.main(["experiment", "why", str(directory), found[-1].pod]) == 0
    said = capsys.readouterr().out
    assert "the only node that an extender left" in said
    assert "BestFit, which decides: the highest score" in said
