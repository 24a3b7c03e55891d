"""A and B in turn: when it is decided which is better, what is never said, and how it is shown."""

import argparse
import asyncio
import json
import math
import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from kumulus.cli.main import main
from kumulus.extras.lab.ab import page, pairs
from kumulus.extras.lab.ab.pairs import Measures, Pairs
from kumulus.extras.lab.ab.running import Comparison, Side, Until, compared
from kumulus.extras.lab.commands import ab
from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.load import LoadedExperiment, load
from kumulus.extras.lab.report import checks
from kumulus.extras.lab.report.change import MeasureChange
from kumulus.extras.lab.report.model import Report
from kumulus.kube import Connection
from tests.support.reports import report
from tests.support.simulated_ab import MEASURE, SimulatedAb

RATE, SHARE = "scheduling.rate", "fragmentation.end"
DECIDED = Until(decided=True, pairs=30)


# The whole is `python -m benchmarks ab`.
@pytest.mark.parametrize(("noise", "spread"), [(0.02, "normal"), (0.08, "normal"), (0.05, "heavy"), (0.05, "skewed")])
def test_what_has_not_changed_is_not_said_to_have(noise: float, spread: str) -> None:
    found = SimulatedAb(noise, spread=spread, drift=0.002).verdicts(60)
    assert (found["better"] + found["worse"], found["alike"] >= 57) == (0, True)


@pytest.mark.parametrize(("noise", "spread"), [(0.02, "normal"), (0.08, "normal"), (0.05, "heavy"), (0.05, "skewed")])
def test_a_slowdown_of_ten_per_cent_is_found(noise: float, spread: str) -> None:
    assert SimulatedAb(noise, slower=0.1, spread=spread, drift=0.002).verdicts(60)["worse"] >= 57


def test_a_test_that_looks_after_every_pair_is_wrong_no_more_often_than_it_says() -> None:
    draw, wrong, level = random.Random(3), 0, 0.1
    for _ in range(200):
        apart = [draw.gauss(0, 1) for _ in range(40)]
        wrong += any(pairs.excludes(apart[:count], 0.0, level) for count in range(1, 41))
    assert wrong <= level * 200


def test_an_interval_excludes_what_the_test_excludes() -> None:
    draw = random.Random(4)
    for _ in range(50):
        apart = [draw.gauss(draw.choice((0, 0.5)), 1) for _ in range(30)]
        found = pairs.decision(apart)
        assert pairs.excludes(apart, 0.0) == (found.low > 0) - (found.high < 0)
        assert found.low < found.difference < found.high


def test_an_interval_of_which_one_end_is_known_says_so() -> None:
    change = MeasureChange(MEASURE, 1.0, 1.3, True, 0.3, 0.12, math.inf, "worse", "")
    assert change.interval == "+12.0 % or more"
    assert replace(change, low=-math.inf, high=-0.1).interval == "-10.0 % or less"
    assert replace(change, low=-math.inf).interval == ""


def test_a_few_pairs_decide_nothing_however_far_they_are_apart() -> None:
    assert pairs.excludes([9e9] * 8, 0.0) == 0
    assert pairs.decision([9e9] * 8).high == math.inf
    assert pairs.excludes([9e9] * 12, 0.0) == 1


def pairs_of(measure: str, *values: tuple[float, float], margin: float = 0.1) -> Pairs:
    return Pairs((measure,), margin, [({measure: a}, {measure: b}) for a, b in values])


@pytest.mark.parametrize(
    ("measure", "a", "b", "verdict", "amount"),
    [
        (MEASURE, 10.0, 12.0, "worse", "+20.0 %"),
        (MEASURE, 10.0, 8.0, "better", "-20.0 %"),
        (MEASURE, 10.0, 10.5, "alike", "+5.0 %"),
        (RATE, 100.0, 120.0, "better", "+20.0 %"),
        (SHARE, 0.10, 0.15, "worse", "+5.0 points"),
        (SHARE, 0.10, 0.105, "alike", "+0.5 points"),
        ("pods.pending", 0.0, 0.0, "alike", "+0"),
        ("pods.pending", 0.0, 2.0, "worse", "+2"),
        # A time of 0 has no part of it.
        (MEASURE, 0.0, 2.0, "worse", "+2.00 s"),
    ],
)
def test_a_difference_is_judged_by_what_is_better(measure: str, a: float, b: float, verdict: str, amount: str) -> None:
    [found] = pairs_of(measure, *[(a, b)] * 12).changes()
    assert (found.verdict, found.amount) == (verdict, amount)


def test_several_measures_share_the_chance_of_a_wrong_verdict_and_one_that_is_worse_decides() -> None:
    draw = random.Random(6)
    apart = [draw.gauss(0.08, 0.06) for _ in range(100)]
    alone = next(
        n for n in range(1, 101) if pairs_of(MEASURE, *[(1, math.exp(x)) for x in apart[:n]]).changes()[0].low > 0
    )
    several = Pairs((MEASURE, *[RATE] * 9), 0.1, [({MEASURE: 1}, {MEASURE: math.exp(x)}) for x in apart[:alone]])
    assert several.changes()[0].low < 0
    assert several.changes()[0].verdict == "not decided"
    runs: list[tuple[Measures, Measures]] = [
        ({MEASURE: 10.0, RATE: 10.0}, {MEASURE: 9.0 + n % 3, RATE: 5.0}) for n in range(14)
    ]
    found = Pairs((MEASURE, RATE), 0.1, runs)
    assert [each.verdict for each in found.changes()] == ["not decided", "worse"]
    assert found.verdict == "worse"


def test_a_pair_in_which_a_measure_was_not_taken_is_left_out_and_counted() -> None:
    found = Pairs((MEASURE,), 0.1, [({MEASURE: 1.0}, {MEASURE: 1.0}), ({MEASURE: 1.0}, {})])
    assert found.changes()[0].note == "after 1 pair, and 1 in which it was not measured"


def test_how_much_runs_differ_of_themselves_is_said() -> None:
    draw = random.Random(9)
    pairs = pairs_of(MEASURE, *[(math.exp(draw.gauss(0, 0.08)), math.exp(draw.gauss(0, 0.08))) for _ in range(200)])
    assert pairs.changes()[0].note == "after 200 pairs, of runs that differ by 9 %"


Make = Callable[[LoadedExperiment, int], Report]


def ran(
    tmp_path: Path, make: Make, until: Until = DECIDED, measures: tuple[str, ...] = (MEASURE,)
) -> tuple[Comparison, list[tuple[str, int]]]:
    """A comparison whose runs are made up; also the sides and seeds in the order in which they ran."""
    file = tmp_path / "e.yaml"
    file.write_text("name: fill\nseed: 7\nrepetitions: 5\nworkloads: [{name: w}]\n")
    loaded = load(file)
    b = LoadedExperiment(loaded.experiment.model_copy(update={"description": "B"}), tmp_path)
    order: list[tuple[str, int]] = []

    async def made(each: LoadedExperiment) -> Report:
        assert each.experiment.repetitions == 1
        order.append((each.experiment.description or "A", each.experiment.seed))
        return make(each, len(order))

    sides = (Side("main.yaml", loaded), Side("mine<.yaml", b))
    return asyncio.run(compared(sides, Pairs(measures, 0.1), until, made, lambda _: None)), order


def slower(loaded: LoadedExperiment, number: int) -> Report:
    value = 10.0 * (1.3 if loaded.experiment.description else 1) * (1 + number % 5 / 100)
    return report(f"run-{number}", measures=[{MEASURE: value}])


def test_pairs_have_one_seed_each_and_a_drawn_order_and_end_when_it_is_decided(tmp_path: Path) -> None:
    found, order = ran(tmp_path, slower)
    assert found.verdict == "worse"
    assert 11 <= len(found.reports) < DECIDED.pairs
    assert len(order) == 2 * len(found.reports)
    for number, (one, two) in enumerate(zip(order[::2], order[1::2], strict=True)):
        assert {one[0], two[0]} == {"A", "B"}
        assert one[1] == two[1] == 7 + number
    assert {"A", "B"} == {side for side, _ in order[::2]}, "either comes first at times"


def test_a_number_of_pairs_is_run_in_any_case(tmp_path: Path) -> None:
    found, _ = ran(tmp_path, slower, Until(decided=False, pairs=20))
    assert (found.verdict, len(found.reports)) == ("worse", 20)
    found, _ = ran(tmp_path, slower, Until(decided=True, pairs=2))
    assert (found.verdict, len(found.reports)) == ("not decided", 2)


@pytest.mark.parametrize("side", ["A", "B"])
def test_a_run_that_was_cut_off_makes_it_incomplete_and_never_better(tmp_path: Path, side: str) -> None:
    def make(loaded: LoadedExperiment, number: int) -> Report:
        if (loaded.experiment.description or "A") == side and number > 26:
            return report(f"run-{number}", status="partial", error="timeout", measures=[{MEASURE: 0.1}])
        return slower(loaded, number)

    found, _ = ran(tmp_path, make, Until(decided=False, pairs=30))
    assert found.verdict == "incomplete"
    name = {"A": "main.yaml", "B": "mine<.yaml"}[side]
    assert page.headline(found).startswith(f"incomplete after 13 pairs of runs: {name}: run run-")
    assert [each.holds for each in page.checks_of(found)] == [False]


@pytest.mark.parametrize("factor", [0.5, 1.0, 1.3])
@pytest.mark.parametrize(
    ("lost", "said"),
    [
        (
            {"measures": {"pods.pending": 500.0}},
            "left 500 pods without a node, run A of main.yaml 0; to compare that, too: --measure pods.pending",
        ),
        ({"judged": [("pods.pending exactly 0", False, "500")]}, "missed pods.pending exactly 0 (500), run A of main"),
        ({"without": "makespan"}, "has no makespan, run A of main.yaml has one"),
    ],
)
def test_b_is_not_better_where_it_does_less_than_a(
    tmp_path: Path, lost: dict[str, Any], said: str, factor: float
) -> None:
    """In one pair of 20: by waits of those pods that got a node, who drops the hard ones wins."""

    def make(loaded: LoadedExperiment, number: int) -> Report:
        b = bool(loaded.experiment.description)
        measures = {MEASURE: 10.0 * (factor if b else 1), "makespan": 9.0, "pods.pending": 0.0}
        judged = [("pods.pending exactly 0", True, "0")]
        if b and number in (3, 4):
            measures = {key: value for key, value in measures.items() if key != lost.get("without")}
            measures, judged = measures | lost.get("measures", {}), lost.get("judged", judged)
        return report("B" if b else "A", measures=[measures], judged=judged)

    found, _ = ran(tmp_path, make, Until(decided=False, pairs=20), (MEASURE, "makespan"))
    if factor > 1:
        assert found.verdict == "worse"
        return
    assert found.verdict == "incomplete"
    assert page.headline(found).startswith(f"incomplete after 20 pairs of runs: mine<.yaml: run B {said}")
    assert [each.holds for each in page.checks_of(found)] == [False, False]


def test_a_measure_that_was_not_heard_of_b_says_nothing_of_b(tmp_path: Path) -> None:
    def make(loaded: LoadedExperiment, number: int) -> Report:
        b = bool(loaded.experiment.description)
        made = report("B" if b else "A", measures=[{MEASURE: 5.0 if b else 10.0}])
        if b and number == 3:
            details = made.results.tests[0].details
            details.not_measured[MEASURE] = (4.9, 5.8)
            del details.measures[MEASURE]
        return made

    found, _ = ran(tmp_path, make, Until(decided=False, pairs=20))
    assert found.verdict == "better"


def test_pods_without_a_node_are_one_of_the_measures_if_they_are_compared(tmp_path: Path) -> None:
    def make(loaded: LoadedExperiment, number: int) -> Report:
        b = bool(loaded.experiment.description)
        return report(f"{number}", measures=[{MEASURE: 5.0 if b else 10.0, "pods.pending": 100.0 + b}])

    found, _ = ran(tmp_path, make, measures=(MEASURE, "pods.pending"))
    assert found.verdict == "better"
    found, _ = ran(tmp_path, make)
    assert found.verdict == "incomplete"


def test_an_error_amid_the_runs_keeps_what_there_is_and_one_at_once_is_an_error(tmp_path: Path) -> None:
    def make(loaded: LoadedExperiment, number: int) -> Report:
        if number == 5:
            raise LabError("another run is under way")
        return slower(loaded, number)

    found, _ = ran(tmp_path, make)
    assert (found.verdict, len(found.reports)) == ("incomplete", 2)
    assert found.cut_off.endswith("another run is under way")

    def none(loaded: LoadedExperiment, number: int) -> Report:
        raise LabError("no scheduler")

    with pytest.raises(LabError, match="no scheduler"):
        ran(tmp_path, none)


def test_a_measure_that_is_never_taken_ends_it_early(tmp_path: Path) -> None:
    found, _ = ran(tmp_path, slower, measures=(MEASURE, "slowdown.p50"))
    assert found.verdict == "incomplete"
    assert found.cut_off == "slowdown.p50 was measured in none of 3 pairs"


def test_what_else_differed_is_said_once(tmp_path: Path) -> None:
    def make(loaded: LoadedExperiment, number: int) -> Report:
        made = slower(loaded, number)
        if loaded.experiment.description:
            made.metadata.machine.cores = 4
        made.metadata.run_id = "B" if loaded.experiment.description else "A"
        return made

    found, _ = ran(tmp_path, make)
    assert [line for line in found.unfair() if line.startswith("cores")] == ["cores differ: 2 in A, 4 in B"]


def test_the_page_the_checks_and_the_file_say_the_same(tmp_path: Path) -> None:
    found, _ = ran(tmp_path, slower)
    page.write(found, tmp_path / "ab")
    text = (tmp_path / "ab" / page.PAGE).read_text()
    count = len(found.reports)
    assert (
        f'<p class="verdict worse">mine&lt;.yaml is worse than main.yaml after {count} pairs of runs: {MEASURE} +30'
        in text
    )
    assert '<td class="verdict worse">worse' in text
    assert text.count("<circle") == count
    assert re.search(r'<span style="top:95%">0</span><span style="top:5%">\+3\d\.\d %</span>', text)
    assert not {"http", "src=", "url("} & set(text.split('"'))
    suite = ElementTree.fromstring((tmp_path / "ab" / page.JUNIT).read_text())
    [case] = suite.iter("testcase")
    assert (case.get("classname"), case.get("name")) == ("fill.ab", f"{MEASURE} is not worse")
    [failure] = case.iter("failure")
    assert f"worse, after {count} pairs" in str(failure.get("message"))
    data = json.loads((tmp_path / "ab" / page.DATA).read_text())
    assert (data["verdict"], len(data["runs"]), data["measures"][MEASURE]["verdict"]) == ("worse", count, "worse")
    assert data["measures"][MEASURE]["low"] > 0
    [line] = checks.commands("fill.ab", page.checks_of(found))
    assert line.startswith(f"::error title=fill.ab::{MEASURE} is not worse: +30")


def test_what_is_not_decided_is_neither_a_failure_nor_passed(tmp_path: Path) -> None:
    found, _ = ran(tmp_path, slower, Until(decided=True, pairs=2))
    page.write(found, tmp_path / "ab")
    suite = ElementTree.fromstring((tmp_path / "ab" / page.JUNIT).read_text())
    assert [len(list(suite.iter(each))) for each in ("failure", "skipped")] == [0, 1]
    text = (tmp_path / "ab" / page.PAGE).read_text()
    assert "not decided after 2 pairs of runs: mine&lt;.yaml may be better or worse than main.yaml" in text
    assert next(checks.commands("fill.ab", page.checks_of(found))).startswith("::warning ")
    assert "inf" not in (tmp_path / "ab" / page.DATA).read_text().lower()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """An experiment file beside two configurations of one name, a policy and a program."""
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "s.yaml").write_text(
            "kind: KubeSchedulerConfiguration\napiVersion: kubescheduler.config.k8s.io/v1\n"
        )
    (tmp_path / "mine.py").write_text("def score(pod, nodes, study): return 0\n")
    path = tmp_path / "e.yaml"
    path.write_text("name: fill\nstack: quickstart\nworkloads: [{name: w}]\n")
    return path


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--measure", "timeToShedule.p99"], "--measure timeToShedule.p99 is not measured; write timeToSchedule.p99"),
        (["--measure", "pods.created"], "--measure pods.created is neither better nor worse"),
        (["--until", "now"], "--until is now; write decided, or a number from 1 to 1,000"),
        (["--until", "0"], "--until is 0; write decided, or a number"),
        (["--at-most", "0"], "--at-most is 0; write a number from 1"),
        (["--margin", "lots"], "--margin is lots; write a percentage such as 5%"),
        (["--a", "nowhere.yaml"], "nowhere.yaml"),
        (["--kubeconfig", "nowhere"], "kubeconfig nowhere does not exist"),
    ],
)
def test_a_wrong_option_is_said_before_anything_runs(
    file: Path, options: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(file.parent)
    assert main(["experiment", "ab", str(file), "--b", "one/s.yaml", *options]) == 1
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("a", "b", "names", "fields"),
    [
        (None, "one/s.yaml", ("e.yaml as it is", "s.yaml"), ("kube-scheduler", "one/s.yaml", "", "")),
        ("one/s.yaml", "two/s.yaml", ("one/s.yaml", "two/s.yaml"), ("kube-scheduler", "two/s.yaml", "", "")),
        ("default", "volcano", ("default", "volcano"), ("volcano", "", "", "")),
        ("FGD", "mine.py", ("FGD", "mine.py"), ("default", "", "", "mine.py")),
        ("FGD", "BestFit", ("FGD", "BestFit"), ("default", "", "", "BestFit")),
        ("volcano", "volcano", ("volcano (A)", "volcano (B)"), ("volcano", "", "", "")),
        ("one/s.yaml", "./scheduler", ("s.yaml", "scheduler"), ("kube-scheduler", "", "./scheduler", "")),
    ],
)
def test_each_side_is_a_scheduler_its_configuration_a_policy_or_a_program(
    file: Path,
    a: str | None,
    b: str,
    names: tuple[str, str],
    fields: tuple[str, str, str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(file.parent)
    args = argparse.Namespace(file=file, a=a, b=b, measure=None, until="decided", at_most=5, margin="10%")
    sides = ab._asked(args, load(file)).sides(load(file))
    assert tuple(each.name for each in sides) == names
    scheduler, config, binary, policy = fields
    experiment = sides[1].loaded.experiment
    assert experiment.scheduler.name == scheduler
    for found, wanted in ((experiment.scheduler.config, config), (experiment.scheduler.binary, binary)):
        assert found == (str(Path(wanted).absolute()) if wanted else "")
    assert experiment.policy == (str(Path(policy).absolute()) if policy.endswith(".py") else policy)


@pytest.mark.parametrize(
    ("make", "until", "code"),
    [
        (slower, "20", 1),
        (slower, "2", 3),
        (lambda loaded, number: report(f"{number}", measures=[{MEASURE: 1.0}]), "20", 0),
        (lambda loaded, number: report(f"{number}", status="partial"), "20", 1),
    ],
)
def test_the_exit_code_says_what_a_gate_needs(
    file: Path,
    make: Make,
    until: str,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = []

    class Runs:
        """Reports in place of runs, whose cluster is not there."""

        def __init__(self, client: object, loaded: LoadedExperiment, options: object) -> None:
            self._loaded = loaded

        async def run(self) -> Report:
            made.append(1)
            experiment = self._loaded.experiment
            scheduled = experiment.model_copy(update={"description": experiment.scheduler.config})
            return make(LoadedExperiment(scheduled, file.parent), len(made))

    monkeypatch.setattr(ab, "Run", Runs)
    monkeypatch.setattr(ab, "load_kubeconfig", lambda _: Connection("http://127.0.0.1:1", "test"))
    kubeconfig = file.parent / "kubeconfig"
    kubeconfig.touch()
    where = ["--kubeconfig", str(kubeconfig), "--results", str(file.parent / "results")]
    options = ["--b", str(file.parent / "one" / "s.yaml"), "--until", until, "--github", *where]
    assert main(["experiment", "ab", str(file), *options]) == code
    [directory] = (file.parent / "results" / "fill").iterdir()
    assert {each.name for each in directory.iterdir()} == {page.PAGE, page.JUNIT, page.DATA}
    assert f"page: {directory / page.PAGE}" in capsys.readouterr().out
