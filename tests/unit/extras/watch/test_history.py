"""What happened, written down and read again."""

import gzip
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kumulus.extras.schedulers.readers import queue_of
from kumulus.extras.watch.history.document import EventKind, HistoryError, Status, history_from, load, save
from kumulus.extras.watch.history.forgetting import since
from kumulus.extras.watch.history.moment import HistoryMoment, fullest, holding, moment
from kumulus.extras.watch.history.recorder import Facts, JobKey, Recorder
from kumulus.extras.watch.live.admission import AdmissionRule, AdmissionShape, Alternative, Nature, Requirement
from kumulus.extras.watch.live.pod import pod_from
from tests.support.fleets import node, pod
from tests.support.histories import drawn, read_at
from tests.support.messages import pod_message

TRAIN = JobKey("train", "Job", "default")
WAITS = replace(pod("p", ""), phase="Pending", reasons=("Insufficient cpu",))


def plain(found: HistoryMoment) -> dict[str, Any]:
    """A moment in the words of the independent reading."""

    def amounts(of: Any) -> list[int]:
        return [of.gpus, of.cpu, of.memory, of.pods]

    return {
        "nodes": {n: [each.state, amounts(each.allocatable), amounts(each.taken)] for n, each in found.nodes.items()},
        "jobs": {
            name: {
                **{part: getattr(job, part) for part in ("state", "waiting", "held", "running", "succeeded", "lost")},
                "reasons": dict(job.reasons),
                "nodes": dict(job.nodes),
            }
            for name, job in found.jobs.items()
        },
        "pods": {int(status): count for status, count in found.pods.items()},
        "states": dict(found.states),
        "has": amounts(found.allocatable),
        "taken": amounts(found.taken),
        "queues": {name: list(figures) for name, figures in found.queues.items()},
        "happened": [what for _, what in found.happened],
    }


def test_at_two_hundred_drawn_moments_it_is_what_the_events_say() -> None:
    draw = random.Random(20)
    for seed in range(4):
        history = drawn(seed)
        for at in [0, history.end, *(draw.randrange(history.end) for _ in range(48))]:
            assert plain(moment(history, at)) == read_at(history.to_plain(), at), (seed, at)


@pytest.mark.parametrize("seed", range(3))
def test_the_fullest_moment_is_the_last_at_which_the_most_pods_had_a_node(seed: int) -> None:
    history = drawn(seed, steps=300)
    at, whole = fullest(history), history.to_plain()

    def held(when: int) -> int:
        return sum(count for status, count in read_at(whole, when)["pods"].items() if 2 <= status <= 5)

    times = sorted({event.at for event in history})
    assert held(at) == max(map(held, times))
    assert all(held(when) < held(at) for when in times if when > at)
    assert [number for _, number in holding(history)] == [held(when) for when, _ in holding(history)]


def test_a_history_on_the_disk_is_the_same_and_small(tmp_path: Path) -> None:
    history = drawn(1)
    save(history, tmp_path / "one.json.gz")
    save(history, tmp_path / "two.json.gz")
    again = load(tmp_path / "one.json.gz")
    assert again.to_plain() == history.to_plain()
    assert (tmp_path / "one.json.gz").read_bytes() == (tmp_path / "two.json.gz").read_bytes()


def test_what_is_told_twice_happened_once() -> None:
    recorder = Recorder()
    for at in (0, 5, 9):
        recorder.node("n-0", node("n-0"), at)
        recorder.pod("default/p", WAITS, TRAIN, at)
    assert [event.at for event in recorder.history] == [0, 0]


def test_a_pod_of_the_same_name_in_another_job_is_another_one() -> None:
    recorder = Recorder()
    recorder.node("n-0", node("n-0"), 0)
    recorder.pod("default/p", pod("p", "n-0", 8), TRAIN, 1)
    recorder.pod("default/p", WAITS, JobKey("other", "Job", "default"), 2)
    found = moment(recorder.history, 2)
    assert found.nodes["n-0"].taken.gpus == 0
    assert (found.jobs["default/Job/train"].lost, found.jobs["default/Job/other"].waiting) == (1, 1)


def test_a_pod_that_completed_stays_so_when_it_is_removed() -> None:
    recorder = Recorder()
    recorder.pod("default/p", pod("p", "n-0", 8, "Succeeded"), TRAIN, 1)
    recorder.pod("default/p", None, TRAIN, 2)
    assert moment(recorder.history, 2).pods == {Status.SUCCEEDED: 1}
    assert moment(recorder.history, 2).jobs["default/Job/train"].state == "ended"


def test_a_job_goes_from_waiting_over_partly_to_running_and_ended() -> None:
    recorder = Recorder()
    recorder.job(TRAIN, Facts(2, "a", 7), 0)
    recorder.node("n-0", node("n-0"), 0)
    recorder.pod("default/a", replace(WAITS, name="a"), TRAIN, 1)
    recorder.pod("default/b", replace(WAITS, name="b"), TRAIN, 1)
    recorder.pod("default/a", replace(pod("a", "n-0"), phase="Pending"), TRAIN, 2)
    recorder.pod("default/b", replace(pod("b", "n-0"), phase="Pending"), TRAIN, 3)
    for name in "ab":
        recorder.pod(f"default/{name}", pod(name, "n-0"), TRAIN, 4)
    for name in "ab":
        recorder.pod(f"default/{name}", pod(name, "n-0", phase="Succeeded"), TRAIN, 5)
    states = [moment(recorder.history, at).jobs["default/Job/train"].state for at in range(6)]
    assert states == ["waiting", "waiting", "partly", "placed", "running", "ended"]
    job = moment(recorder.history, 5).jobs["default/Job/train"]
    assert (job.size, job.queue, job.priority, job.first, job.whole) == (2, "a", 7, 0, 3)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_forgotten_leaves_the_rest_as_it_was(seed: int) -> None:
    history = drawn(seed)
    cut = history.end // 2
    shorter = since(history, cut)
    assert len(shorter.events) < len(history.events)
    assert shorter.begin == cut
    history_from(shorter.to_plain(), "shorter")
    draw = random.Random(seed)
    for at in [cut, history.end, *(draw.randrange(cut, history.end) for _ in range(20))]:
        before, after = plain(moment(history, at)), plain(moment(shorter, at))
        for part in ("nodes", "states", "has", "taken", "queues"):
            assert after[part] == before[part]
        for name, job in after["jobs"].items():
            for part in ("waiting", "held", "running", "reasons", "nodes"):
                assert job[part] == before["jobs"][name][part]


def test_what_pods_may_go_to_survives_what_is_forgotten() -> None:
    """Kinds of nodes and pods keep their numbers, and those that come later are compared with those before."""
    fast, slow = Nature((("kind", "fast"),)), Nature((("kind", "slow"),))
    shape = AdmissionShape((Requirement("kind", "In", ("fast",)),))
    recorder = Recorder()
    recorder.node("n-0", node("n-0", nature=slow), 0)
    recorder.pod("default/gone", replace(WAITS, rule=AdmissionRule()), TRAIN, 0)
    recorder.pod("default/gone", None, TRAIN, 1)
    recorder.pod("default/p", replace(WAITS, rule=AdmissionRule((Alternative(shape, ("n-1",)),))), TRAIN, 10)
    recorder.go_on(since(recorder.history, 5))
    recorder.node("n-1", node("n-1", nature=fast), 20)
    recorder.pod("default/q", replace(WAITS, rule=AdmissionRule((Alternative(shape, ("n-1",)),))), TRAIN, 30)
    history = recorder.history
    ((asked, *_),) = {(each[2],) for each in history.pods}
    ((number, only, never),), apart = history.rules[history.requests[asked][3]]
    assert (only, never, apart, len(history.rules)) == (["n-1"], [], [], 1)
    natures = {history.nodes[event.what][0]: event.other for event in history if event.kind == EventKind.NODE}
    assert [number, natures["n-1"]] in history.fits
    assert [number, natures["n-0"]] not in history.fits


def test_a_history_of_the_version_before_is_read() -> None:
    plain_ = {**drawn(1).to_plain(), "version": 1}
    del plain_["rules"], plain_["fits"]
    plain_["requests"] = [each[:3] for each in plain_["requests"]]
    found = history_from(plain_, "it")
    assert (found.rules, found.fits) == ([], [])
    assert moment(found, found.end).taken.gpus


@pytest.mark.parametrize(
    "change",
    [
        {"format": "other"},
        {"version": 99},
        {"events": [1, 2, 3]},
        {"events": [0, 1, 10**9, 1, 0]},
        {"events": [0, 9, 0, 1, 0]},
        {"events": [5, 4, 0, 0, 0, 1, 4, 0, 0, 0]},
        {"events": [0.5, 4, 0, 0, 0]},
        {"nodes": {}},
    ],
)
def test_what_is_no_history_is_refused_with_its_place(change: dict[str, Any], tmp_path: Path) -> None:
    recorder = Recorder()
    recorder.happened("x", 0, 0)  # type: ignore[arg-type]
    file = tmp_path / "broken.json.gz"
    file.write_bytes(gzip.compress(json.dumps({**recorder.history.to_plain(), **change}).encode()))
    with pytest.raises(HistoryError, match=r"broken\.json\.gz"):
        load(file)


@pytest.mark.parametrize(
    "content", [b"", b"no gzip", gzip.compress(b"[", mtime=0)[:-9], gzip.compress(b"\xff{", mtime=0)]
)
def test_a_broken_file_is_told(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "broken.json.gz").write_bytes(content)
    with pytest.raises(HistoryError, match=r"broken\.json\.gz"):
        load(tmp_path / "broken.json.gz")


@pytest.mark.parametrize(
    ("labels", "more", "owners", "job"),
    [
        ({}, {}, [], "Pod/p"),
        ({}, {}, [("Job", "train")], "Job/train"),
        ({"jobset.sigs.k8s.io/jobset-name": "set"}, {}, [("Job", "set-workers-0")], "JobSet/set"),
        ({"pod-template-hash": "abc12"}, {}, [("ReplicaSet", "web-abc12")], "Deployment/web"),
        ({}, {}, [("ReplicaSet", "web-abc12")], "ReplicaSet/web-abc12"),
        ({"kueue.x-k8s.io/pod-group-name": "g"}, {}, [], "PodGroup/g"),
        ({"kueue.x-k8s.io/pod-group-name": "g"}, {}, [("Workload", "w")], "PodGroup/g"),
        ({}, {"annotations": {"scheduling.k8s.io/group-name": "g"}}, [("Job", "train")], "Job/train"),
        ({}, {"schedulingGroup": {"podGroupName": "g"}}, [("PodGroup", "g")], "PodGroup/g"),
        ({}, {"schedulingGroup": {"podGroupName": "g"}}, [("Job", "train"), ("PodGroup", "g")], "Job/train"),
        ({"applicationId": "app"}, {}, [], "Application/app"),
    ],
)
def test_a_pod_is_of_the_uppermost_thing(
    labels: dict[str, str], more: dict[str, Any], owners: list[tuple[str, str]], job: str
) -> None:
    owned = [{"kind": kind, "name": name} for kind, name in owners]
    metadata = {"labels": labels, "annotations": more.pop("annotations", {}), "ownerReferences": owned}
    assert pod_from(pod_message(metadata=metadata, **more)).job == job


def test_a_queue_is_named_by_label_or_annotation() -> None:
    assert queue_of({"kueue.x-k8s.io/queue-name": "a"}, {}) == "a"
    assert queue_of({}, {"scheduling.volcano.sh/queue-name": "b"}) == "b"
    assert queue_of({}, {}) == ""
