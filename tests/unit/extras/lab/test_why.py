"""What is said of a pod's decision, and of all of a run's."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus.cli import main
from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.extender.column import NAME as COLUMNS
from kumulus.extras.lab.extender.column import PolicyColumn, PolicyColumns
from kumulus.extras.lab.extender.configuration import watched
from kumulus.extras.lab.file.load import load
from kumulus.extras.lab.report.why import explained, read, sums
from kumulus.extras.lab.run.policy import with_scheduler
from kumulus.extras.schedulers.decisions import reader
from kumulus.extras.schedulers.decisions.document import NAME, Decision, DecisionTotals, ScoredNode
from kumulus.extras.watch.history.document import EventKind, History, Status, save
from tests.support.reports import report

CHOSEN = ScoredNode("node-a", 190, {"NodeResourcesFit": 90, "TaintToleration": 100})
NEXT = ScoredNode("node-bb", 150, {"NodeResourcesFit": 50, "TaintToleration": 100})
PLAIN = Decision(
    "n/a", "node-a", 10, 6, CHOSEN, 1, NEXT, passed=6, filters={"TaintToleration": 3, "NodeResourcesFit": 1}
)
DECIDED = ScoredNode("east-1", 190, {"NodeResourcesFit": 90, "TaintToleration": 100})
DECISIONS = [
    Decision("ns-1/work-a", "east-1", 9, 3, DECIDED, 1, ScoredNode("west-1", 150, {"NodeResourcesFit": 50})),
    Decision("ns-1/work-b", "east-1", 9, 3, DECIDED, 4),
    Decision("ns-1/work-c", "east-2", 1, 1, ScoredNode("east-2", 180), like="ns-1/work-b"),
    Decision("ns-2/last", "west-2", 9, 1, refused=2, reason="0/9 nodes are available: 9 Insufficient cpu."),
    Decision("ns-2/odd", "west-2", 9, 5),
]


def test_of_a_pod_it_says_what_refused_nodes_and_what_scored_them() -> None:
    assert explained(PLAIN) == [
        "n/a -> node-a",
        "  nodes           10 looked at, 6 fitted, 4 were refused",
        "  refused by      TaintToleration 3, NodeResourcesFit 1",
        "  decided         the highest score",
        "  score             node-a  node-bb",
        "  NodeResourcesFit      90       50",
        "  TaintToleration      100      100",
        "  total                190      150",
    ]


def test_next_to_a_drawn_node_is_said_to_be_the_best_of_the_lower_ones() -> None:
    lower = ScoredNode("b", 150, {"NodeResourcesFit": 50})
    (said,) = (line for line in explained(Decision("n/a", "x", 9, 9, CHOSEN, 4, lower)) if "decided" in line)
    assert said.endswith(
        "one of 4 nodes with the highest score, drawn by kube-scheduler; next to it the best of the lower ones"
    )
    (said,) = (line for line in explained(Decision("n/a", "x", 9, 9, CHOSEN, 4, CHOSEN)) if "decided" in line)
    assert said.endswith("drawn by kube-scheduler")


def test_where_the_filters_are_not_known_it_says_why() -> None:
    unknown = Decision("n/a", "x", 10, 6, CHOSEN, 1, passed=6, unknown="an attempt came between")
    assert "  refused by      not known: an attempt came between" in explained(unknown)
    assert "  nodes           10 looked at, 6 fitted, 4 were refused" in explained(unknown)
    unasked = Decision("n/a", "x", 10, 6, CHOSEN, 1)
    assert "  refused by      not known: kube-scheduler asked no extender" in explained(unasked)
    assert not any("refused by" in line for line in explained(Decision("n/a", "x", 6, 6, CHOSEN, 1, passed=6)))


def test_what_an_extender_left_is_not_said_to_be_all_that_fitted() -> None:
    left = Decision("n/a", "x", 5, 1, passed=6, filters={"NodeAffinity": 4})
    said = explained(left)
    assert "  nodes           10 looked at, 6 fitted, 4 were refused" in said
    assert "  left            1 of those that fitted, by an extender" in said
    assert "  decided         the only node that an extender left" in said


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (("FGD", True, 6, 6, "node-a", 50.0, 0, 1, "node-bb", 47.5), "which decides: the highest score"),
        (("FGD", True, 6, 6, "", 50.0, 0, 3), "the highest score, as 3 nodes have it"),
        (("FGD", False, 6, 5, "node-a", 0.0, 2, 1, "node-bb", 3.0), "which looks on: 2 of 5 nodes have a"),
        (("FGD", False, 6, 2, "node-a", None, 2, 0, "node-bb", 3.0), "does not fit here, and fits on 2 of 6"),
        (("FGD", False, 6, 5, "node-a", 0.0, 1, 1, "node-bb", 3.0), "which looks on: 1 of 5 nodes has a"),
        (("Random", True, 6, 1, "node-a"), "it scores no node of the 6 that fitted"),
        (
            ("FGD", False, 6, 0, "", None, 0, 0, "", None, "it raised\nwith a traceback"),
            "which looks on: it failed: it raised",
        ),
    ],
)
def test_a_policys_column_says_how_the_node_stands(column: tuple[Any, ...], said: str) -> None:
    lines = explained(PLAIN, PolicyColumn("n/a", *column))
    assert said in next(line for line in lines if line.startswith("  policy  "))


def test_a_policys_scores_stand_below_each_other_as_kube_schedulers_do() -> None:
    *_, heads, scores = explained(PLAIN, PolicyColumn("n/a", "FGD", False, 6, 5, "node-a", 0.0, 2, 1, "node-bb", 47.5))
    assert heads == "  policy's score  node-a  node-bb"
    assert scores == "  FGD                  0     47.5"
    *_, heads, scores = explained(PLAIN, PolicyColumn("n/a", "FGD", False, 6, 2, "node-a", None, 2, 0, "node-bb", 3.0))
    assert scores == "  FGD                  -        3"


def test_of_all_it_says_for_how_many_the_filters_are_known() -> None:
    kept = [PLAIN] * 198 + [Decision("n/b", "x", 3, 2, CHOSEN, 1, passed=2, unknown="why")] * 2
    kept.append(Decision("n/c", "x", 2, 2, CHOSEN, 1, passed=2))
    document, lines = sums(kept, [DecisionTotals(201, 201)])
    assert document["filters"] == {
        "bindings": 200,
        "named": 198,
        "percent": 99.0,
        "refused": {"TaintToleration": 594, "NodeResourcesFit": 198},
        "unknown": {"why": 2},
    }
    assert "of 200 with refused nodes, the filters are known of 198 (99.0 %)" in lines
    assert "          2  not known: why" in lines
    document, lines = sums(kept[-1:], [])
    assert document["filters"]["bindings"] == 0
    assert not any("refused" in line for line in lines)


def test_what_a_run_recorded_is_read_of_all_starts_of_its_scheduler(tmp_path: Path) -> None:
    assert read(tmp_path) is None, "a run without why"
    for number, name in ((1, "scheduler"), (2, "scheduler-2")):
        (tmp_path / name).mkdir()
        line = Decision(f"experiment-x-{number}/a", "x", 1, 1).line()
        (tmp_path / name / NAME).write_text(f'{line}\n{{"bound":1}}\n')
    columns = PolicyColumns(tmp_path / "scheduler" / COLUMNS)
    columns.keep(PolicyColumn("experiment-x-1/a", "FGD", False, 1))
    columns.close()
    found = read(tmp_path)
    assert found is not None
    assert [each.pod for each in found.of(None)] == ["experiment-x-1/a", "experiment-x-2/a"]
    assert [each.pod for each in found.of(2)] == ["experiment-x-2/a"]
    assert len(found.totals) == 2
    assert list(found.columns) == ["experiment-x-1/a"]
    (tmp_path / "scheduler" / NAME).unlink()
    (tmp_path / "scheduler" / NAME).mkdir()
    with pytest.raises(LabError, match=r"decisions\.jsonl cannot be read"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ("scheduler: {name: volcano}\nwhy: true", "why: true cannot be combined with scheduler: volcano"),
        (
            "scheduler: {name: coscheduling}\nwhy: true\nwhyPolicy: FGD",
            "whyPolicy: FGD cannot be combined with scheduler: coscheduling",
        ),
    ],
)
def test_a_scheduler_that_cannot_say_why_is_refused(tmp_path: Path, fields: str, said: str) -> None:
    (tmp_path / "e.yaml").write_text(f"name: x\nworkloads: [{{name: w}}]\n{fields}\n")
    with pytest.raises(LabError, match=said):
        with_scheduler(load(tmp_path / "e.yaml"))


@pytest.mark.parametrize("fields", ["why: true", "why: true\nwhyPolicy: FGD"])
def test_who_is_to_say_why_has_a_kube_scheduler_of_its_own(tmp_path: Path, fields: str) -> None:
    (tmp_path / "e.yaml").write_text(f"name: x\nworkloads: [{{name: w}}]\n{fields}\n")
    assert with_scheduler(load(tmp_path / "e.yaml")).experiment.scheduler.name == "kube-scheduler"


def test_the_configuration_of_one_that_is_watched_is_the_users_with_one_extender_more(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    own = {"urlPrefix": "http://mine"}
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    mine.write_text(yaml.safe_dump({**head, "extenders": [own], "percentageOfNodesToScore": 7}))
    made = watched(mine, "http://here/secret")
    assert [each["urlPrefix"] for each in made["extenders"]] == ["http://mine", "http://here/secret"]
    assert made["extenders"][1]["ignorable"], "pods are scheduled whether it answers or not"
    assert made["percentageOfNodesToScore"] == 7
    assert [each["schedulerName"] for each in watched(None, "http://here")["profiles"]] == ["second-scheduler"]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run's directory with decisions, and a pod that was never bound."""
    (tmp_path / "scheduler").mkdir()
    (tmp_path / "report.json").write_text(report().model_dump_json())
    file = tmp_path / "scheduler" / NAME
    file.write_text("".join(f"{each.line()}\n" for each in DECISIONS))
    refused = (
        b'I1 1 schedule_one.go:1] "Unable to schedule pod; no fit; waiting" pod="ns-2/huge" err="9 Insufficient cpu"\n'
    )
    reader.read([refused], file, io.BytesIO())
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
    # A repetition is told by its namespace.
    assert json.loads(said(capsys, run, "--json", "--repetition", 2))["bound"] == 2


def test_of_a_repetition_what_the_file_does_not_have_of_all_is_no_part(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (run / "scheduler" / NAME).open("a") as file:
        file.write('{"bound": 3, "explained": 3, "dropped": 3}\n')
    assert said(capsys, run).startswith("4 of 8 bindings are explained (50.0 %)\n")
    of_one = said(capsys, run, "--repetition", 1)
    assert of_one.startswith("3 of 3 bindings are explained (100.0 %)\n")
    assert of_one.endswith("        3  of all repetitions not kept, as the file had reached its limit\n")


def test_a_pod_that_got_no_node_is_found_by_its_whole_name_first_and_by_one_beginning_only(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    waiting = {f"ns-{number}/train-{name}": f"{name} fits nowhere" for number, name in ((1, "10"), (1, "1"), (2, "2"))}
    with (run / "scheduler" / NAME).open("a") as file:
        file.write(Decision("ns-1/train-1-bound", "east-1", 9, 3).line() + "\n")
        file.write(json.dumps({"waiting": waiting}) + "\n")
    assert "ns-1/train-1 was never bound\n  1 fits nowhere" in said(capsys, run, "train-1")
    assert "4 pods begin with train" in refusal(capsys, run, "train")
    with (run / "scheduler" / NAME).open("a") as file:
        file.write(json.dumps({"waiting": {"ns-1/big-1-x": "fits nowhere", "ns-1/big-10-y": "fits nowhere"}}) + "\n")
    assert "ns-1/big-1-x was never bound" in said(capsys, run, "big-1")
    assert "ns-2/train-2 was never bound" in said(capsys, run, "train", "--repetition", 2)


def test_a_pod_that_is_one_of_several_or_not_there_and_a_run_without_decisions_are_refused_in_words(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "3 pods begin with work: ns-1/work-a, ns-1/work-b, ns-1/work-c" in refusal(capsys, run, "work")
    assert "nothing is known of a pod none; the run's end: " in refusal(capsys, run, "none")
    for wrong, right in (("workb", "work-b"), ("ns-1/worka", "work-a"), ("wrok", "work"), ("hgue", "huge")):
        assert refusal(capsys, run, wrong).endswith(f"\n  Did you mean {right}?\n")
    (run / "scheduler" / NAME).unlink()
    assert "Write why: true in the experiment's file" in refusal(capsys, run, "last")


def test_of_a_scheduler_that_logs_no_decisions_it_says_why_pods_waited(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "report.json").write_text(report().model_dump_json())
    history = History(
        end=9000,
        nodes=[["east-1"]],
        jobs=[["train", "Job", "w"]],
        facts=[[4, "q", 0, "Unschedulable: Resources were found for 2 pods while 4 are required", None]],
        pods=[["ns-1/train-a", 0, 0], ["ns-1/train-b", 0, 0]],
        texts=["Unschedulable: Resources were found for 2 pods while 4 are required"],
    )
    waits, runs = (EventKind.POD, int(Status.WAITING)), (EventKind.POD, int(Status.RUNNING))
    for event in ((0, EventKind.JOB, 0, 0, 0), (100, *_of(waits, 0)), (100, *_of(waits, 1)), (5500, *_of(runs, 0))):
        history.events.extend(int(each) for each in event)
    history.events.extend((6000, EventKind.POD, 0, Status.PREEMPTED, 0))
    save(history, tmp_path / "history-1.json.gz")
    reason = "Unschedulable: Resources were found for n pods while n are required"
    assert "pods said:" in said(capsys, tmp_path).splitlines()[0]
    save(history, tmp_path / "history-2.json.gz")
    assert "in repetition 1 (others: --repetition N):" in said(capsys, tmp_path).splitlines()[0]
    assert "in repetition 2 (others: --repetition N):" in said(capsys, tmp_path, "--repetition", 2).splitlines()[0]
    assert "2 pods begin with train-: ns-1/train-a, ns-1/train-b" in refusal(capsys, tmp_path, "train-")
    assert said(capsys, tmp_path).splitlines()[1:] == [
        f"        2  pods waited, 1 at the end: {reason}",
        f"        1  jobs said: {reason}",
    ]
    assert said(capsys, tmp_path, "train-a").splitlines()[1:] == [
        "ns-1/train-a",
        f"       0.1 s  waiting: {reason}",
        "       5.5 s  running on east-1",
        "       6.0 s  preempted",
    ]
    steps = json.loads(said(capsys, tmp_path, "train-b", "--json"))["steps"]
    assert steps == [{"seconds": 0.1, "status": "waiting", "node": "", "reasons": [reason]}]
    assert said(capsys, tmp_path, "train").splitlines()[1:] == [
        "train",
        "       0.0 s  Unschedulable: Resources were found for 2 pods while 4 are required",
        "           1  of its pods were evicted for others",
        f"           1  of its pods waited at the end: {reason}",
    ]
    assert "nothing is known of a pod or job other; the run's end: " in refusal(capsys, tmp_path, "other")
    assert refusal(capsys, tmp_path, "trian").endswith("\n  Did you mean train?\n")


def _of(what: tuple[EventKind, int], pod: int) -> tuple[int, int, int, int]:
    return what[0], pod, what[1], 0
