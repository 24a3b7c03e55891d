"""What `kumulus fit` asks of a manifest, and how it says the answer."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus.extras.capture import probe
from kumulus.extras.capture.commands.fit import lines
from kumulus.extras.capture.dumps import Refused
from kumulus.extras.capture.fit import Answer, Change
from kumulus.extras.capture.verdict import Verdict, looked_at, unschedulable

SPEC: dict[str, Any] = {
    "priorityClassName": "high",
    "serviceAccountName": "runner",
    "nodeSelector": {"a": "b"},
    "affinity": {"podAntiAffinity": {"x": 1}},
    "volumes": [
        {"name": "config", "configMap": {"name": "c"}},
        {"name": "data", "persistentVolumeClaim": {"claimName": "d"}},
    ],
    "containers": [{"name": "main", "command": ["x"], "env": [{"name": "A"}], "resources": {"requests": {"cpu": "1"}}}],
}


def write(directory: Path, *documents: object) -> Path:
    file = directory / "workload.yaml"
    file.write_text(yaml.safe_dump_all(documents))
    return file


def workload(kind: str, **spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "x"}}, "spec": SPEC}
    return {"kind": kind, "metadata": {"name": "x", "namespace": "ml"}, "spec": {**spec, "template": template}}


@pytest.mark.parametrize(
    ("document", "count"),
    [
        (workload("Deployment", replicas=7), 7),
        (workload("StatefulSet"), 1),
        (workload("Job", parallelism=8, completions=5), 5),
        (workload("Job", parallelism=8), 8),
        ({"kind": "Pod", "metadata": {"name": "x", "namespace": "ml", "labels": {"app": "x"}}, "spec": SPEC}, 1),
    ],
)
def test_as_many_pods_are_asked_about_as_the_file_says(tmp_path: Path, document: object, count: int) -> None:
    found = probe.read(write(tmp_path, {"kind": "Service"}, document))
    assert (found.namespace, dict(found.labels), found.count) == ("ml", {"app": "x"}, count)
    assert probe.read(write(tmp_path, document), 99).count == 99


def test_a_mistake_in_a_workload_is_refused_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"workload.yaml: spec.replicas is .?three|spec.replicas: is .three"):
        probe.read(write(tmp_path, workload("Deployment", replicas="three")))
    assert probe.read(write(tmp_path, workload("Deployment", replicas=None))).count == 1


def test_a_file_without_a_workload_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="has Service; write a Pod"):
        probe.read(write(tmp_path, {"kind": "Service"}))
    with pytest.raises(Refused, match="no pod template"):
        probe.read(write(tmp_path, {"kind": "Job", "spec": {}}))
    (tmp_path / "bad.yaml").write_text("a: [")
    with pytest.raises(Refused, match="no YAML"):
        probe.read(tmp_path / "bad.yaml")


def test_a_dry_pod_asks_for_the_same_place_and_runs_nothing(tmp_path: Path) -> None:
    made = probe.read(write(tmp_path, workload("Job"))).manifest("fit-1", 2, 3, "fit-class")
    spec = made["spec"]
    assert (made["metadata"]["name"], made["metadata"]["labels"]) == (
        "fit-1-2-3",
        {"app": "x", "kumulus.io/experiment-run": "fit-1", "kumulus.io/fit": "2"},
    )
    assert (spec["nodeSelector"], spec["priorityClassName"]) == ({"a": "b"}, "fit-class")
    assert spec["containers"] == [{"name": "main", "image": "captured", "resources": {"requests": {"cpu": "1"}}}]
    assert [each["name"] for each in spec["volumes"]] == ["data"]
    assert "serviceAccountName" not in spec


def test_constraints_are_taken_off_one_by_one(tmp_path: Path) -> None:
    found = probe.read(write(tmp_path, workload("Job")))
    assert found.constraints() == ["nodeSelector", "podAntiAffinity"]
    assert found.without("podAntiAffinity").constraints() == ["nodeSelector"]
    assert found.without("nodeSelector").constraints() == ["podAntiAffinity"]
    assert found.constraints() == ["nodeSelector", "podAntiAffinity"]


def test_what_the_scheduler_says_is_told_without_what_is_so_of_dry_pods_alone() -> None:
    said = (
        "0/7 nodes are available: 7 Insufficient cpu. no new claims to deallocate, preemption: not eligible due to x."
    )
    condition = {"type": "PodScheduled", "status": "False", "message": said}
    assert unschedulable({"status": {"conditions": [condition]}}) == "0/7 nodes are available: 7 Insufficient cpu."
    assert unschedulable({"status": {}}) is None
    assert (looked_at(said), looked_at("gated") > 10**6) == (7, True)


def test_the_answer_says_how_many_where_what_ends_it_and_what_helps(tmp_path: Path) -> None:
    verdict = Verdict(30, Counter({"n1": 4, "n2": 2}), "0/7 nodes are available: 7 Insufficient cpu.")
    answer = Answer(verdict, Counter({"web": 6}), [Change("8 more nodes like those of web", 8)], ["without x 3 fit"])
    found = lines("dev", probe.read(write(tmp_path, workload("Job")), 30), answer)
    assert found == [
        "x: 6 of 30 pods fit into dev",
        "  6 on web",
        "  limit: 0/7 nodes are available: 7 Insufficient cpu.",
        "  to fit all: 8 more nodes like those of web",
        "  tried: without x 3 fit",
    ]
