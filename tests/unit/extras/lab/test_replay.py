"""A recording as jobs and steps: the part that is played, at its speed; and what of a hostile one is refused."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus.extras.lab.file.load import load
from kumulus.extras.lab.file.recording import recording
from kumulus.extras.lab.plan.plan import RepetitionPlan, make
from kumulus.extras.lab.plan.pods import JOB_LABEL
from kumulus.extras.lab.plan.replayed import cordons, on_nodes
from kumulus.extras.lab.run.replaying import Within
from kumulus.model.errors import SpecError
from tests.support.misshapen import misshapen

HEAD = {"apiVersion": "kumulus.io/v1alpha1", "kind": "Recording", "priorities": {"urgent": 9, "system-x": 1}}
POD_SPEC: dict[str, Any] = {"containers": [{"name": "main", "image": "captured"}]}


def made(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    versions = {"Job": "batch/v1", "Pod": "v1"}
    body = POD_SPEC if kind == "Pod" else {"template": {"metadata": {"labels": {"a": "b"}}, "spec": POD_SPEC}}
    metadata = {"name": name, "namespace": "shop"}
    return {"apiVersion": versions.get(kind, "apps/v1"), "kind": kind, "metadata": metadata, "spec": {**body, **spec}}


def create(at: float, kind: str, name: str, ran: float | None = None, **spec: Any) -> dict[str, Any]:
    step = {"at": at, "do": "create", "job": f"{kind}/{name}", "queue": "q", "object": made(kind, name, **spec)}
    return step | ({} if ran is None else {"ran": ran})


def change(at: float, job: str, **spec: Any) -> dict[str, Any]:
    return {"at": at, "do": "change", "job": job, "spec": spec}


def write(directory: Path, *steps: Any, head: Any = HEAD, **replay: Any) -> Path:
    text = "".join(json.dumps(each) + "\n" for each in (head, *steps))
    (directory / "day.jsonl").write_text(text)
    workload = {"name": "recorded", "replay": {"file": "day.jsonl", **replay}}
    (directory / "day.yaml").write_text(yaml.safe_dump({"name": "day", "workloads": [workload]}))
    return directory / "day.yaml"


def plan(directory: Path, *steps: Any, **replay: Any) -> RepetitionPlan:
    return make(load(write(directory, *steps, **replay)), {})


def test_steps_come_at_the_speed_with_the_labels_of_their_job(tmp_path: Path) -> None:
    found = plan(
        tmp_path,
        create(0, "Deployment", "web", replicas=2),
        create(10, "Job", "a", ran=60, parallelism=2, completions=2),
        change(20, "Deployment/web", replicas=5),
        {"at": 30, "do": "delete", "job": "Job/a"},
        speed=10,
    )
    assert [(job.at, job.workers, job.recorded) for job in found.jobs] == [(0, 5, True), (1, 0, True)]
    (replay,) = found.replays.values()
    assert [(step.at, step.do, step.job) for step in replay.steps] == [
        (2, "change", "recorded-1"),
        (3, "delete", "recorded-2"),
    ]
    template = found.jobs[1].objects[0]["spec"]["template"]
    assert template["metadata"]["labels"][JOB_LABEL] == "recorded-2"
    assert template["metadata"]["annotations"] == {"pod-complete.stage.kwok.x-k8s.io/delay": "6.000s"}
    assert [each["metadata"]["name"] for each in found.setup] == ["urgent"]
    assert replay.namespaces == ("shop",)


def test_a_part_begins_with_what_was_there_as_it_was_then(tmp_path: Path) -> None:
    found = plan(
        tmp_path,
        create(0, "Deployment", "web", replicas=2),
        create(1, "Deployment", "gone", replicas=2),
        create(2, "Job", "over", ran=10),
        create(3, "Job", "half", ran=100),
        {"at": 4, "do": "cordon", "job": "n1"},
        change(5, "Deployment/web", replicas=7),
        {"at": 6, "do": "delete", "job": "Deployment/gone"},
        create(60, "Deployment", "late", replicas=1),
        create(90, "Deployment", "later", replicas=1),
        **{"from": "50s", "until": "80s"},
    )
    (replay,) = found.replays.values()
    assert [(job.at, job.objects[0]["metadata"]["name"]) for job in found.jobs] == [
        (0, "web"),
        (0, "half"),
        (10, "late"),
    ]
    assert found.jobs[0].objects[0]["spec"]["replicas"] == 7
    left = found.jobs[1].objects[0]["spec"]["template"]["metadata"]["annotations"]
    assert left == {"pod-complete.stage.kwok.x-k8s.io/delay": "53.000s"}, "half of it is over"
    (event,) = cordons([replay])
    assert event.fault is not None
    assert (event.at, event.fault.target.names) == (0, ("n1",))
    assert on_nodes(replay, {"n2"}).steps == ()
    assert on_nodes(replay, {"n2"}).strange == 1


def test_a_job_that_still_waits_or_has_pods_to_come_is_there_when_a_part_begins(tmp_path: Path) -> None:
    found = plan(
        tmp_path,
        create(0, "Deployment", "web", ran=5, replicas=2),
        create(0, "Job", "waits", ran=10) | {"over": 200},
        create(0, "Job", "nearly", ran=40) | {"over": 60},
        create(0, "Job", "over", ran=10) | {"over": 45},
        create(60, "Deployment", "late", replicas=1),
        **{"from": "50s"},
    )
    assert [job.objects[0]["metadata"]["name"] for job in found.jobs] == ["web", "waits", "nearly", "late"]
    delays = [
        job.objects[0]["spec"]["template"]["metadata"]["annotations"]["pod-complete.stage.kwok.x-k8s.io/delay"]
        for job in found.jobs[1:3]
    ]
    assert delays == ["10.000s", "10.000s"]


def test_the_same_recording_is_the_same_plan_and_a_step_more_is_another(tmp_path: Path) -> None:
    steps = [create(0, "Deployment", "web", replicas=2)]
    one, again = plan(tmp_path, *steps), plan(tmp_path, *steps)
    other = plan(tmp_path, *steps, change(1, "Deployment/web", replicas=3))
    assert one.digest == again.digest != other.digest


def test_a_pod_s_terms_mean_the_namespaces_of_the_run() -> None:
    within = Within("experiment-day-abc123-1", ["shop", "x" * 60])
    term = {"topologyKey": "zone", "namespaces": ["shop", "other"]}
    pod = {"metadata": {"name": "a", "namespace": "shop"}, "spec": {"affinity": {"podAffinity": {"a": [term]}}}}
    placed = within.translated(pod)
    assert placed["metadata"] == {"name": "a"}
    assert placed["spec"]["affinity"]["podAffinity"]["a"][0]["namespaces"] == ["experiment-day-abc123-1-shop", "other"]
    assert term["namespaces"] == ["shop", "other"], "the plan stays as it is"
    assert within.of(pod) == "experiment-day-abc123-1-shop"
    assert within.of({"metadata": {"name": "own"}}) == "experiment-day-abc123-1"
    assert all(len(each) <= 63 for each in within.others)
    assert len(set(within.others)) == 2


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"at": 1, "do": "explode", "job": "x"}, "does nothing that is known"),
        ({"at": -1, "do": "delete", "job": "Pod/a"}, "not from 0"),
        ({"at": "soon", "do": "delete", "job": "Pod/a"}, "no number"),
        ({"at": 1, "do": "delete", "job": "Pod/b"}, "not created before"),
        ({"at": 1, "do": "change", "job": "Pod/a", "spec": {"serviceAccountName": "root"}}, "changes something else"),
        (create(1, "Pod", "a"), "a second time"),
        (create(1, "ClusterRoleBinding", "b"), "no recording has"),
        ({**create(1, "Pod", "b"), "object": made("Pod", "../b")}, "without name and namespace"),
        ({**create(1, "Pod", "b"), "object": {**made("Pod", "b"), "spec": 3}}, "no mapping"),
        (create(1, "Pod", "b", volumes=[{"name": "v", "hostPath": {"path": "/"}}]), "a pod with volumes"),
        (create(1, "Pod", "b", initContainers=[{"name": "i", "image": "busybox"}]), "with the image busybox"),
        (create(1, "StatefulSet", "b", volumeClaimTemplates=[{}]), "volumeClaimTemplates"),
        (change(1, "Pod/a", template={"spec": {"containers": [{"name": "c"}]}}), "with the image None"),
        ({"was": {"queue": "q", "at": 1, "cpu": float("1e300")}}, "not from"),
        ("x" * 1_100_000, "characters"),
        ([1], "no mapping"),
    ],
)
def test_a_line_that_no_recording_has_is_refused_by_its_number(line: Any, said: str, tmp_path: Path) -> None:
    file = write(tmp_path, create(0, "Pod", "a"), line)
    with pytest.raises(SpecError) as caught:
        load(file)
    (problem,) = caught.value.problems
    assert "line 3" in problem.path
    assert said in problem.message


@pytest.mark.parametrize("seed", range(5))
def test_a_recording_with_fields_of_other_types_is_refused_or_planned(tmp_path: Path, seed: int) -> None:
    steps = [
        HEAD,
        create(0, "Deployment", "web", replicas=2),
        create(2, "Job", "job", ran=10),
        create(2, "Pod", "pod", ran=3, restartPolicy="Never"),
        change(5, "Deployment/web", template={"metadata": {"labels": {"a": "b"}}, "spec": POD_SPEC}),
        {"at": 4, "do": "cordon", "job": "n1"},
        {"at": 6, "do": "delete", "job": "Deployment/web"},
        {"was": {"queue": "q", "at": 1, "bound": 2, "ended": 3, "cpu": 1000, "preempted": True, "node": "n"}},
    ]
    draw, refused = random.Random(seed), 0
    for _ in range(60):
        head, *rest = misshapen([steps], draw)[0] or [None]
        try:
            assert make(load(write(tmp_path, *rest, head=head, **draw.choice(({}, {"from": "3s"})))), {}).replays
        except SpecError:
            refused += 1
    assert refused


def test_a_recording_may_be_longer_than_other_files(tmp_path: Path) -> None:
    steps = [create(number, "Deployment", f"web-{number}", replicas=1, minReadySeconds=0) for number in range(20_000)]
    file = write(tmp_path, *steps)
    assert (tmp_path / "day.jsonl").stat().st_size > 4 * 1024**2
    assert len(load(file).recordings["recorded"].steps) == 20_000


def test_what_is_no_recording_is_refused_at_its_head() -> None:
    for text in ("", "{}\n", "kind: Recording\n", '{"kind": "Recording"}\n' * 3):
        with pytest.raises(SpecError):
            recording(text, "day.jsonl")
