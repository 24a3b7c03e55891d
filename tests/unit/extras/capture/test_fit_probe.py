"""What `kumulus fit` asks of a manifest, and how it says the answer."""

import argparse
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus.cli import which
from kumulus.cli.errors import UserError
from kumulus.extras.capture import probe
from kumulus.extras.capture.commands import fit
from kumulus.extras.capture.commands.fit import Said, lines, plain
from kumulus.extras.capture.dumps import FileRefused
from kumulus.extras.capture.fit import FitAnswer, FitChange
from kumulus.extras.capture.probe import Probe, ProbeVerdict, looked_at, taint_text, unschedulable
from kumulus.extras.capture.raising import exceeded, lender
from kumulus.host import installation

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
SAID = (
    'pods "fit-1-3" is forbidden: exceeded quota: small, requested: pods=1,requests.memory=1Gi, '
    "used: pods=3,requests.memory=3Gi, limited: pods=3,requests.memory=3500Mi"
)
WANTED = Probe("training", "default", {}, {}, 3)


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


def gang(least: int, **more: Any) -> dict[str, Any]:
    return {"schedulingPolicy": {"gang": {"minCount": least}}, **more}


def test_pods_are_asked_about_as_the_group_that_they_are(tmp_path: Path) -> None:
    zone = {"topology": [{"key": "zone"}]}
    job = workload("Job", parallelism=8, scheduling=gang(8, schedulingConstraints=zone, disruptionMode={"all": {}}))
    found = probe.read(write(tmp_path, job))
    assert found.group == gang(8, schedulingConstraints=zone)
    assert found.constraints() == ["nodeSelector", "podAntiAffinity", "schedulingConstraints"]
    assert found.without("schedulingConstraints").group == gang(8)
    assert found.manifest("run", 2, 0, None)["spec"]["schedulingGroup"] == {"podGroupName": "run-2"}
    assert "schedulingGroup" not in found.alone_on("n").manifest("run", 2, 0, None)["spec"]
    # All of a gang are all of it, however many; fewer that suffice still do.
    assert probe.read(write(tmp_path, job), 20).group["schedulingPolicy"]["gang"]["minCount"] == 20
    part = workload("Job", parallelism=8, scheduling=gang(4))
    assert probe.read(write(tmp_path, part), 20).group["schedulingPolicy"]["gang"]["minCount"] == 4
    assert probe.read(write(tmp_path, part), 2).group["schedulingPolicy"]["gang"]["minCount"] == 2


def test_the_group_that_pods_name_has_to_be_in_the_file(tmp_path: Path) -> None:
    named = workload("Deployment", replicas=3)
    named["spec"]["template"]["spec"] = {**SPEC, "schedulingGroup": {"podGroupName": "g"}}
    group = {"kind": "PodGroup", "metadata": {"name": "g"}, "spec": gang(3)}
    assert probe.read(write(tmp_path, group, named)).group == gang(3)
    with pytest.raises(FileRefused, match="the pods name PodGroup 'g', which the file lacks; write it there"):
        probe.read(write(tmp_path, named))


def test_a_mistake_in_a_workload_is_refused_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(FileRefused, match=r"workload.yaml: spec.replicas is .?three|spec.replicas: is .three"):
        probe.read(write(tmp_path, workload("Deployment", replicas="three")))
    assert probe.read(write(tmp_path, workload("Deployment", replicas=None))).count == 1


def test_a_file_without_a_workload_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileRefused, match="has Service; write a Pod"):
        probe.read(write(tmp_path, {"kind": "Service"}))
    with pytest.raises(FileRefused, match="no pod template"):
        probe.read(write(tmp_path, {"kind": "Job", "spec": {}}))
    (tmp_path / "bad.yaml").write_text("a: [")
    with pytest.raises(FileRefused, match="no YAML"):
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
    verdict = ProbeVerdict(30, Counter({"n1": 4, "n2": 2}), "0/7 nodes are available: 7 Insufficient cpu.")
    answer = FitAnswer(
        verdict, Counter({"web": 6}), [FitChange("8 more nodes like those of web", 8)], ["without x 3 fit"]
    )
    found = lines("dev", probe.read(write(tmp_path, workload("Job")), 30), answer)
    assert found == [
        "x: 6 of 30 pods fit into dev",
        "  6 on web",
        "  limit: 0/7 nodes are available: 7 Insufficient cpu.",
        "  to fit all: 8 more nodes like those of web",
        "  tried: without x 3 fit",
    ]


FAKE = {"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}


def node(*taints: dict[str, str]) -> dict[str, Any]:
    return {"spec": {"taints": [*taints]}}


def test_the_taints_that_keep_pods_off_a_node_are_those_without_a_toleration() -> None:
    worker, gpu = (
        node(FAKE),
        node(FAKE, {"key": "gpu", "effect": "NoExecute"}, {"key": "x", "effect": "PreferNoSchedule"}),
    )
    assert [taint_text(each) for each in WANTED.untolerated(worker)] == ["kwok.x-k8s.io/node=fake:NoSchedule"]
    assert next(taint_text(each) for each in WANTED.untolerated(gpu)) == "gpu:NoExecute"
    tolerant = replace(WANTED, spec={"tolerations": [{"key": "kwok.x-k8s.io/node", "operator": "Exists"}]})
    assert tolerant.untolerated(worker) == ()
    assert [taint_text(each) for each in tolerant.untolerated(gpu)] == ["gpu:NoExecute"]
    assert tolerant.tolerating(tolerant.untolerated(gpu)).untolerated(gpu) == ()
    assert WANTED.tolerating(WANTED.untolerated(worker)).spec["tolerations"] == [{**FAKE, "operator": "Equal"}]


def test_a_taint_in_the_way_is_named_with_how_many_nodes_have_it() -> None:
    taint = Counter({"kwok.x-k8s.io/node=fake:NoSchedule": 30})
    refused = FitAnswer(ProbeVerdict(3, reason="0/30 nodes are available: x."), untolerated=taint)
    assert lines("dev", WANTED, refused)[-1] == "  not tolerated: kwok.x-k8s.io/node=fake:NoSchedule of 30 nodes"
    assert plain("dev", WANTED, refused)["untolerated"] == taint


def quota(namespace: str, hard: dict[str, str], used: dict[str, str], **spec: Any) -> dict[str, Any]:
    metadata = {"namespace": namespace, "name": "quota"}
    return {"metadata": metadata, "spec": {"hard": hard, **spec}, "status": {"hard": hard, "used": used}}


def test_the_raised_amounts_are_what_all_pods_need() -> None:
    said = exceeded(SAID)
    assert said is not None
    assert said.needed(2) == {"pods": "5", "requests.memory": "5Gi"}
    assert said.missing(2) == {"pods": "2", "requests.memory": "1620Mi"}
    assert said.change(2) == "raising the quota small (pods from 3 to 5, requests.memory from 3500Mi to 5Gi)"


@pytest.mark.parametrize(
    "message",
    [
        'pods "x" is forbidden: failed quota: small: must specify requests.cpu for: main',
        'admission webhook "x" denied the request',
        'pods "x" is forbidden: exceeded quota: small, requested: pods=1, used: cpu=3, limited: pods=3',
        'pods "x" is forbidden: exceeded quota: small, requested: pods=one, used: pods=3, limited: pods=3',
    ],
)
def test_a_refusal_that_no_amount_would_change_is_no_quota_to_be_raised(message: str) -> None:
    assert exceeded(message) is None


def test_the_quota_with_the_most_to_spare_lends() -> None:
    wanted = {"pods": "2"}
    quotas = [
        quota("a", {"pods": "4"}, {"pods": "3"}),
        quota("b", {"pods": "9"}, {"pods": "4"}),
        quota("c", {"pods": "99"}, {}, scopes=["Terminating"]),
        quota("d", {"requests.cpu": "99"}, {}),
        quota("e", {"pods": "7"}, {"pods": "4"}),
    ]
    assert lender(quotas, wanted) == "the quota quota of b"
    assert lender(quotas, {"pods": "6"}) is None
    assert lender(quotas, {"pods": "1", "requests.cpu": "1"}) is None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["jbo.yaml"], "there is no file jbo.yaml; write job.yaml"),
        (["job.yaml", "--on", "capp"], "capp is no capture: it has no stack.yaml; write cap"),
        (["job.yaml", "--on", "else"], "else is no capture: it has no stack.yaml; write the path of one that is there"),
    ],
)
def test_a_similar_file_or_capture_is_suggested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("cap", "capps"):
        (tmp_path / name).mkdir()
    (tmp_path / "cap" / "stack.yaml").touch()
    write(tmp_path, workload("Job")).rename("job.yaml")
    with pytest.raises(UserError, match=f"^{re.escape(said)}$"):
        fit.run(asked(*words))


def test_that_a_clone_stays_up_is_said_with_what_takes_it_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = which.StackCluster("cap", "", "cap")
    monkeypatch.setattr(fit, "_cluster", lambda _: found)
    monkeypatch.setattr(fit, "ask", lambda *_, **__: answer(3))
    monkeypatch.setattr(installation, "command", lambda: "kumulus")
    job = str(write(tmp_path, workload("Job")))
    assert fit.run(asked(job, "--on", "cap")) == 0
    assert capsys.readouterr().out.splitlines()[-1] == (
        "cap stays up for the next question; `kumulus down cap` takes it down"
    )
    for words in (["--on", "cap", "--json"], ["-s", "cap"]):
        fit.run(asked(job, *words))
        assert "stays up" not in capsys.readouterr().out


def asked(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    fit.add_arguments(parser)
    return parser.parse_args(words)


def answer(fitted: int, reason: str = "") -> FitAnswer:
    return FitAnswer(ProbeVerdict(3, Counter({"node": fitted}), reason))


def test_only_another_answer_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    said = Said(WANTED)
    for each in (answer(1, "2 Insufficient cpu"), answer(1, "3 Insufficient cpu"), answer(3), answer(3)):
        said.of(each, [])
    lines = [re.sub(r"^[0-9:]{8}  ", "", line) for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "training: 1 of 3 pods fit: 2 Insufficient cpu",
        "training: 3 of 3 pods fit, before 1",
    ]


def test_a_source_that_is_away_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    said = Said(WANTED)
    for each in (answer(3), "no answer", "no answer", answer(3), "no answer", answer(2, "why")):
        said.of(*((None, [each]) if isinstance(each, str) else (each, [])))
    lines = [re.sub(r"^[0-9:]{8}  ", "", line) for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "training: 3 of 3 pods fit",
        "no answer; going on",
        "no answer; going on",
        "training: 2 of 3 pods fit, before 3: why",
    ]
