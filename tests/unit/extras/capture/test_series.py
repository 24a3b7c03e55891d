"""Captures one after the other as a recorded day: what differs between two was asked for in between."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus.extras.capture.day.importing import ImportedDay, import_day, summary
from kumulus.extras.capture.dumps import FileRefused
from kumulus.extras.capture.words import Words
from kumulus.extras.lab.file.recording import recording
from tests.unit.extras.capture.files import written

OWNERS = {"web": "ReplicaSet", "db": "StatefulSet", "job": "Job"}


def pod(name: str, on: str = "") -> dict[str, Any]:
    owner = {"kind": OWNERS[name.partition("-")[0]], "name": name.partition("-")[0], "controller": True}
    container = {"name": "main", "image": "secret.example/app", "resources": {"requests": {"cpu": "1"}}}
    return {
        "kind": "Pod",
        "metadata": {"namespace": "shop", "name": name, "labels": {"app": "web"}, "ownerReferences": [owner]},
        "spec": {"containers": [container], **({"nodeName": on} if on else {})},
        "status": {"phase": "Running" if on else "Pending"},
    }


def capture(day: Path, at: str, *pods: dict[str, Any], words: Words | None = None) -> None:
    written(day / at, words, *pods)


def series(day: Path, words: Words | None = None) -> Path:
    """Three captures, half a minute apart: pods come, get nodes, end; one is made again under its name."""
    capture(day, "20261122T090000Z", pod("web-1", "n1"), pod("web-2"), pod("db-0", "n1"), words=words)
    second = pod("web-1", "n1"), pod("web-2", "n2"), pod("db-0", "n2"), pod("job-1")
    capture(day, "20261122T090030Z", *second, words=words)
    capture(day, "20261122T090100Z", pod("web-2", "n2"), pod("db-0", "n2"), pod("job-1", "n1"), words=words)
    return day


def steps(found: ImportedDay) -> list[tuple[float, str, str]]:
    began = found.day.steps[0].at
    return [(step.at - began, step.do, step.job) for step in found.day.steps]


def test_what_differs_between_two_captures_was_asked_for_in_between(tmp_path: Path) -> None:
    found = import_day([series(tmp_path / "day")], tmp_path / "day.yaml", "mine")
    assert sorted(steps(found)[:3]) == [(0, "create", f"Pod/shop/{name}") for name in ("db-0", "web-1", "web-2")]
    assert steps(found)[3:] == [
        (30, "delete", "Pod/shop/db-0"),
        # In the order of a capture's shapes.
        *((30, "create", job) for job in ("Pod/shop/job-1", "Pod/shop/db-0#2")),
        (60, "delete", "Pod/shop/web-1"),
    ]
    assert (found.lasted, found.counted.entries, found.counted.bad) == (60, 3, [])


def test_claims_and_groups_are_made_once_in_front_of_the_pods_that_name_them(tmp_path: Path) -> None:
    claims = [{"name": "gpu", "resourceClaimTemplateName": "one"}]
    asks = {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}}
    more: dict[str, tuple[str, dict[str, Any]]] = {
        "ResourceClaimTemplate": ("resource.k8s.io/v1", asks),
        "PodGroup": ("scheduling.k8s.io/v1beta1", {"schedulingPolicy": {"basic": {}}, "resourceClaims": claims}),
    }
    for at in ("20261122T090000Z", "20261122T090030Z"):
        waits = pod("job-1")
        waits["spec"] |= {"resourceClaims": claims, "schedulingGroup": {"podGroupName": "one"}}
        named = {"metadata": {"namespace": "shop", "name": "one"}}
        raws = [{"apiVersion": of, "kind": kind, **named, "spec": spec} for kind, (of, spec) in more.items()]
        written(tmp_path / "day" / at, None, waits, *raws)
    found = import_day([tmp_path / "day"], tmp_path / "day.yaml", "mine")
    assert sorted(steps(found)) == [
        (0, "create", f"{kind}/shop/{name}")
        for kind, name in (("Pod", "job-1"), ("PodGroup", "one"), ("ResourceClaimTemplate", "one"))
    ]
    made = {step.what["object"]["kind"]: step.what["object"]["spec"] for step in found.day.steps}
    assert made["ResourceClaimTemplate"] == asks
    assert [made[kind]["resourceClaims"] for kind in ("Pod", "PodGroup")] == [claims, claims]
    assert made["Pod"]["schedulingGroup"] == {"podGroupName": "one"}
    assert [*found.day.left_out] == [
        "moments between captures: when pods came, got a node and ended is known to 30s only"
    ]


def test_when_pods_got_their_nodes_and_were_gone_is_known(tmp_path: Path) -> None:
    found = import_day([series(tmp_path / "day")], tmp_path / "day.yaml", "mine")
    began = found.day.steps[0].at
    then = {
        pod.job: tuple(None if at is None else at - began for at in (pod.created, pod.bound, pod.ended))
        for pod in found.day.pods.every
    }
    assert then == {
        "Pod/shop/web-1": (0, 0, 60),
        "Pod/shop/web-2": (0, 30, None),
        "Pod/shop/db-0": (0, 0, 30),
        "Pod/shop/db-0#2": (30, 30, None),
        "Pod/shop/job-1": (30, 60, None),
    }
    # Three had one in the first capture that shows them.
    said = list(summary(found))
    assert "what became of 5 pods then is known, of 2 when they got a node" in said
    known = "moments between captures: when pods came, got a node and ended is known to 30s only"
    assert f"  not replayed, 5: {known}" in said
    assert recording(found.recording.read_text(), "day").left_out == {known: 5}


def test_the_recording_is_one_that_the_lab_plays(tmp_path: Path) -> None:
    found = import_day([series(tmp_path / "day")], tmp_path / "day.yaml", "mine", since="30s")
    text = found.recording.read_text()
    played = recording(text, "day")
    assert (len(played.steps), len(played.pods)) == (len(found.day.steps), 5)
    # Where the pods were is not asked for again, nor is anything that a capture leaves out in it.
    assert all("nodeName" not in json.dumps(dict(step.what)) for step in played.steps)
    assert "secret.example" not in text
    experiment = yaml.safe_load((tmp_path / "day.yaml").read_text())
    assert experiment["workloads"][0]["replay"]["from"] == "30.000s"


def test_captures_with_words_for_names_are_the_same_day(tmp_path: Path) -> None:
    plain = import_day([series(tmp_path / "plain")], tmp_path / "plain.yaml", "mine")
    words = Words()
    shared = import_day([series(tmp_path / "shared", words)], tmp_path / "shared.yaml", "mine")
    # With one table for all of them, a pod has the same word in each.
    assert sorted((at, do, words.back(job)) for at, do, job in steps(shared)) == sorted(steps(plain))
    assert "shop" not in shared.recording.read_text()


def test_a_capture_that_was_cut_off_and_what_is_no_capture_are_passed_over(tmp_path: Path) -> None:
    day = series(tmp_path / "day")
    (day / "20261122T090045Z" / ".unfinished").mkdir(parents=True)
    (day / "notes").mkdir()
    (day / "notes" / "workload.yaml").write_text("not: one")
    found = import_day([day], tmp_path / "day.yaml", "mine")
    assert found.counted.entries == 3


def test_one_capture_is_no_series(tmp_path: Path) -> None:
    capture(tmp_path / "day", "20261122T090000Z", pod("web-1"))
    with pytest.raises(FileRefused, match="has 1 captures"):
        import_day([tmp_path / "day"], tmp_path / "day.yaml", "mine")


def test_a_hostile_capture_in_a_series_is_refused(tmp_path: Path) -> None:
    day = series(tmp_path / "day")
    (day / "20261122T090030Z" / "workload.yaml").write_text("a: &x [1]\nb: *x\n")
    with pytest.raises(FileRefused, match="alias"):
        import_day([day], tmp_path / "day.yaml", "mine")
