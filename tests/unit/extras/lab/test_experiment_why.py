"""`kumulus experiment why`: what it says of a pod, of a whole run, and of a run that has nothing to say."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from kumulus.cli import main
from kumulus.extras.schedulers.decisions.document import NAME, Decision, Scored
from kumulus.extras.schedulers.decisions.reader import read
from kumulus.extras.watch.history.document import History, save
from kumulus.extras.watch.history.words import Kind, Status

CHOSEN = Scored("east-1", 190, {"NodeResourcesFit": 90, "TaintToleration": 100})
DECISIONS = [
    Decision("ns-1/work-a", "east-1", 9, 3, CHOSEN, 1, Scored("west-1", 150, {"NodeResourcesFit": 50})),
    Decision("ns-1/work-b", "east-1", 9, 3, CHOSEN, 4),
    Decision("ns-1/work-c", "east-2", 1, 1, Scored("east-2", 180), like="ns-1/work-b"),
    Decision("ns-2/last", "west-2", 9, 1, refused=2, reason="0/9 nodes are available: 9 Insufficient cpu."),
    Decision("ns-2/odd", "west-2", 9, 5),
]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run's directory with decisions, and a pod that was never bound."""
    (tmp_path / "scheduler").mkdir()
    (tmp_path / "report.json").write_text("{}")
    file = tmp_path / "scheduler" / NAME
    file.write_text("".join(f"{each.line()}\n" for each in DECISIONS))
    refused = (
        b'I1 1 schedule_one.go:1] "Unable to schedule pod; no fit; waiting" pod="ns-2/huge" err="9 Insufficient cpu"\n'
    )
    read([refused], file, io.BytesIO())
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main.main(["experiment", "why", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def refusal(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main.main(["experiment", "why", *map(str, arguments)]) != 0
    return capsys.readouterr().err


def test_a_pod_is_explained_by_its_nodes_scores_beside_the_next_best(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said(capsys, run, "work-a").splitlines() == [
        "ns-1/work-a -> east-1",
        "  nodes           9 looked at, 3 fitted, 6 were refused",
        "  refused by      not known: kube-scheduler asked no extender",
        "  decided         the highest score",
        "  score             east-1  west-1",
        "  NodeResourcesFit      90      50",
        "  TaintToleration      100       0",
        "  total                190     150",
    ]


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        ("work-b", "one of 4 nodes with the highest score, drawn by kube-scheduler"),
        ("work-c", "those of ns-1/work-b, an equal pod, whose list was used again"),
        ("ns-2/last", "refused before  2 times, the last time: 0/9 nodes are available: 9 Insufficient cpu."),
        ("last", "the only node that fitted"),
        ("huge", "ns-2/huge was never bound\n  9 Insufficient cpu"),
    ],
)
def test_each_way_to_a_node_is_said(run: Path, capsys: pytest.CaptureFixture[str], pod: str, expected: str) -> None:
    assert expected in said(capsys, run, pod)


def test_without_a_pod_it_says_of_how_many_bindings_it_is_known(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, run).startswith("4 of 5 bindings are explained (80.0 %)\n")
    sums = json.loads(said(capsys, run, "--json"))
    assert (sums["bound"], sums["explained"], sums["percent"]) == (5, 4, 80.0)


def test_a_repetition_is_told_by_its_namespace(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(said(capsys, run, "--json", "--repetition", 2))["bound"] == 2


def test_several_pods_of_one_beginning_are_named(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "3 pods begin with work: ns-1/work-a, ns-1/work-b, ns-1/work-c" in refusal(capsys, run, "work")


def test_a_pod_that_is_not_there_and_a_run_without_decisions_are_refused_in_words(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "nothing is known of a pod none" in refusal(capsys, run, "none")
    (run / "scheduler" / NAME).unlink()
    assert "Write why: true in the experiment's file" in refusal(capsys, run, "last")


def test_of_a_scheduler_that_logs_no_decisions_it_says_why_pods_waited(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "report.json").write_text("{}")
    history = History(
        end=9000,
        nodes=[["east-1"]],
        jobs=[["train", "Job", "w"]],
        facts=[[4, "q", 0, "Unschedulable: Resources were found for 2 pods while 4 are required", None]],
        pods=[["ns-1/train-a", 0, 0], ["ns-1/train-b", 0, 0]],
        texts=["Unschedulable: Resources were found for 2 pods while 4 are required"],
    )
    waits, runs = (Kind.POD, int(Status.WAITING)), (Kind.POD, int(Status.RUNNING))
    for event in ((0, Kind.JOB, 0, 0, 0), (100, *_of(waits, 0)), (100, *_of(waits, 1)), (5500, *_of(runs, 0))):
        history.events.extend(int(each) for each in event)
    save(history, tmp_path / "history-1.json.gz")
    reason = "Unschedulable: Resources were found for n pods while n are required"
    assert said(capsys, tmp_path).splitlines()[1:] == [
        f"        2  pods waited, 1 at the end: {reason}",
        f"        1  jobs said: {reason}",
    ]
    assert said(capsys, tmp_path, "train-a").splitlines()[1:] == [
        "ns-1/train-a",
        f"       0.1 s  waiting: {reason}",
        "       5.5 s  running on east-1",
    ]
    steps = json.loads(said(capsys, tmp_path, "train-b", "--json"))["steps"]
    assert steps == [{"seconds": 0.1, "status": "waiting", "node": "", "reasons": [reason]}]
    assert "nothing is known of a pod other" in refusal(capsys, tmp_path, "other")


def _of(what: tuple[Kind, int], pod: int) -> tuple[int, int, int, int]:
    return what[0], pod, what[1], 0
