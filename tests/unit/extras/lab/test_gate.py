"""A gate against a run of before: limits on what may become of a measure, and how they are shown."""

import random
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from kumulus.cli.main import main
from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.report import compare as compare_runs
from kumulus.extras.lab.report import gate, github
from kumulus.extras.lab.report.change import MeasureChange
from kumulus.extras.lab.report.files import RunDirectory
from kumulus.extras.lab.report.model import Report
from tests.support.reports import report

P99, SHARE = "timeToSchedule.p99", "fragmentation.end"
SOURCE = """\
name: fill
workloads: [{name: training}]
expect:
  - {measure: allocation.gpu, atLeast: 99%, atMost: 100%}
  - measure: timeToSchedule.p99
    atMost: 2s
  - {workload: training, nodes: [a100-use1-0]}
"""
JUDGED = [
    ("allocation.gpu at least 99.0 %", False, "92.2 %"),
    ("allocation.gpu at most 100.0 %", True, "92.2 %"),
    ("timeToSchedule.p99 at most 2.00 s", False, "3.10 s"),
    ("training on a100-use1-0", True, "a100-use1-0"),
]


def compared(*limits: str, base: dict[str, float], new: dict[str, float], **fields: Any) -> list[bool | None]:
    """Whether each limit is kept, of runs of one repetition."""
    reports = report("base", measures=[base]), report("new", measures=[new], **fields)
    found = [gate.limit(each) for each in limits]
    changes = gate.changes(reports, [each.measure for each in found])
    return [each.holds for each in gate.checks(found, reports, changes)]


@pytest.mark.parametrize(
    ("written", "base", "new", "kept"),
    [
        (f"{P99}:+10%", 1.0, 1.09, True),
        (f"{P99}:+10%", 1.0, 1.11, False),
        (f"{P99}:+10%", 1.0, 0.1, True),
        (f"{P99}:+2s", 1.0, 2.9, True),
        (f"{P99}:+2s", 1.0, 3.1, False),
        (f"{SHARE}:+1pt", 0.10, 0.109, True),
        (f"{SHARE}:+1pt", 0.10, 0.111, False),
        (f"{SHARE}:+10%", 0.10, 0.111, False),
        ("allocation.gpu:-2%", 0.90, 0.89, True),
        ("allocation.gpu:-2%", 0.90, 0.88, False),
        ("pods.pending:+3", 0.0, 3.0, True),
        ("pods.pending:+10%", 0.0, 1.0, False),
        ("memory.scheduler:+50Mi", 1e8, 1.6e8, False),
        ("pods.created:-0%", 10.0, 9.0, False),
        ("pods.created:+0%", 10.0, 10.0, True),
    ],
)
def test_a_limit_is_of_what_there_was_before(written: str, base: float, new: float, kept: bool) -> None:
    measure = written.partition(":")[0]
    assert compared(written, base={measure: base}, new={measure: new}) == [kept]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (P99, "Write MEASURE:\\+10%"),
        (f"{P99}:10%", "is no limit"),
        ("timeToShedule.p99:+10%", "timeToShedule.p99 is not measured\n  Write timeToSchedule.p99"),
        (f"{P99}:+2pt", "2pt is no amount of it\n  Write \\+10% or \\+2s"),
        (f"{SHARE}:+0.1", "Write \\+10% or \\+1pt"),
        (f"{P99}:+nan%", "nan% is no amount"),
        (
            "allocation.gpu:+10%",
            "would fail where it is better: more of allocation.gpu is\n  Write allocation.gpu:-10%",
        ),
    ],
)
def test_a_limit_that_is_none_is_said_with_what_to_write(written: str, said: str) -> None:
    with pytest.raises(LabError, match=said):
        gate.limit(written)


def test_what_was_not_measured_or_was_cut_off_passes_no_gate() -> None:
    assert compared(f"{P99}:+10%", base={P99: 1.0}, new={}) == [False]
    assert compared(f"{P99}:+10%", base={}, new={P99: 1.0}) == [False]
    assert compared(f"{P99}:+10%", base={}, new={}) == [False]
    assert compared(f"{P99}:+10%", base={P99: 1.0}, new={P99: 0.5}, status="partial") == [False]
    # Of a run whose second repetition did not begin, the first one may be the better half.
    reports = report("base", measures=[{P99: 1.0}]), report("new", measures=[{P99: 0.5}])
    reports[1].results.status = "partial"
    changes = gate.changes(reports, [P99])
    [check] = gate.checks([gate.limit(f"{P99}:+10%")], reports, changes)
    assert (check.holds, check.found) == (False, "incomplete: new did not come to its end")
    assert changes[0].amount == "-"


@pytest.mark.parametrize("swapped", [False, True])
def test_repetitions_that_have_the_measure_do_not_pass_for_all(swapped: bool) -> None:
    """Those that never ended have no makespan."""
    five, one = [{"makespan": 100.0}] * 5, [{"makespan": 95.0}, *[{"duration": 600.0}] * 4]
    base, new = (report(name, measures=each) for name, each in zip(("base", "new"), (five, one), strict=True))
    reports = (new, base) if swapped else (base, new)
    changes = gate.changes(reports, ["makespan"])
    [check] = gate.checks([gate.limit("makespan:+50%")], reports, changes)
    assert (check.holds, check.found) == (False, "not measured in 4 of 5 repetitions of new")
    assert compare_runs.spread(new, "makespan") == "95.00 s, 4 not measured"
    assert compare_runs.spread(new, "slowdown.p50") == "-"


def test_repetitions_say_how_exactly_a_difference_is_known() -> None:
    def change(base: list[float], new: list[float]) -> MeasureChange:
        [found] = gate.changes(
            (report(measures=[{P99: each} for each in base]), report(measures=[{P99: each} for each in new])), [P99]
        )
        return found

    few = change([1.0] * 3, [2.0] * 3)
    assert (few.amount, few.interval, few.verdict) == ("+100.0 %", "", "not decided")
    assert few.note == "3 and 3 repetitions; it takes 4 of each"
    enough = change([1.0, 1.1, 0.9, 1.0], [2.0, 2.1, 1.9, 2.0])
    assert (enough.verdict, enough.low > 0) == ("worse", True)
    assert change([1.0, 1.1, 0.9, 1.0], [1.05, 1.1, 0.9, 1.0]).verdict == "not decided"


@pytest.mark.parametrize("count", [4, 5, 8, 30])
def test_an_interval_of_repetitions_holds_the_difference_as_often_as_it_says(count: int) -> None:
    draw, missed = random.Random(count), 0
    for _ in range(400):
        base, new = ([{P99: 10 * 2 ** draw.gauss(0, 0.1)} for _ in range(count)] for _ in range(2))
        [found] = gate.changes((report(measures=base), report(measures=new)), [P99])
        missed += found.verdict in ("better", "worse")
    assert missed <= 0.07 * 400


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Two runs of five repetitions, of which the new one is a third slower."""
    for number, (name, factor) in enumerate((("base", 1.0), ("new", 1.33))):
        measures = [{P99: factor * (1 + each / 100), SHARE: 0.1, "duration": 9.0} for each in range(5)]
        made = report(f"2026112{number}-150000-{name}", measures=measures)
        directory = RunDirectory(tmp_path, "fill", made.metadata.run_id)
        directory.prepare({})
        directory.write(made)
    return tmp_path


def compare(results: Path, *more: str) -> int:
    return main(["experiment", "compare", "20261120", "20261121", *more, "--results", str(results)])


def test_a_missed_limit_is_exit_code_1_and_shown_everywhere(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    junit, page = tmp_path / "gate.xml", tmp_path / "gate.html"
    limits = ["--fail-if", f"{P99}:+10%", "--fail-if", f"{SHARE}:+1pt"]
    assert compare(results, *limits, "--junit", str(junit), "--page", str(page), "--github") == 1
    said = capsys.readouterr().out
    name = "timeToSchedule.p99 at most 10% more"
    found = "1.02 s → 1.36 s, +33.0 % (+29.1 % … +37.0 %): worse, 5 and 5 repetitions"
    assert f"missed: {name}: {found}" in said
    assert "kept: fragmentation.end at most 1pt more: 10.0 % → 10.0 %, +0.0 points" in said
    escaped = f"{name}: {found}".replace("%", "%25")
    assert f"::error title=fill.compare::{escaped}" in said
    assert f"| **missed** | {name} | {found} |" in summary.read_text()
    cases = list(ElementTree.fromstring(junit.read_text()).iter("testcase"))
    assert [(each.get("classname"), each.get("name"), len(each)) for each in cases] == [
        ("fill.compare", name, 1),
        ("fill.compare", "fragmentation.end at most 1pt more", 0),
    ]
    text = page.read_text()
    assert '<p class="worse">Missed: timeToSchedule.p99 at most 10% more' in text
    assert '<td class="verdict worse">worse' in text


def test_without_a_missed_limit_the_exit_code_is_0_and_the_difference_is_shown(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare(results, "--fail-if", f"{P99}:+50%") == 0
    assert compare(results) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith(P99)]
    assert {" ".join(row[-2:]) for row in rows} == {"+33.0 %"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["20261120", "--fail-if", f"{P99}:+10%"], "--fail-if is about two runs"),
        (["20261120", "20261121", "--junit", "x.xml"], "--junit and --github show limits; write --fail-if"),
        (
            ["a", "b", "--fail-if", "x", "--fail-if", f"{P99}:-10%"],
            "--fail-if x is no limit\n  Write MEASURE:+10%, MEASURE:-1pt, or MEASURE:+2s\n"
            f"--fail-if {P99}:-10% would fail where it is better: less of {P99} is\n",
        ),
    ],
)
def test_options_that_do_not_go_together_are_an_error(
    results: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["experiment", "compare", *arguments, "--results", str(results)]) == 1
    assert said in capsys.readouterr().err


@pytest.fixture
def github_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The files of the step's summary and outputs, with what other steps have written."""
    summary, output = tmp_path / "summary", tmp_path / "output"
    summary.write_text("before\n")
    output.write_text("other=1\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    monkeypatch.setenv("GITHUB_OUTPUT", str(output))
    return summary, output


def written(results: Path, made: Report, source: str = SOURCE) -> Path:
    directory = RunDirectory(results, "fill", made.metadata.run_id)
    directory.prepare({"experiment.yaml": source})
    directory.write(made)
    return directory.path


def annotate(results: Path, *arguments: str) -> int:
    return main(["experiment", "annotate", "latest", "--results", str(results), *arguments])


def test_missed_thresholds_stand_at_their_lines_and_fail_the_step(
    tmp_path: Path, github_files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    twice = [{"duration": 9.0}, {"duration": 9.0}]
    directory = written(tmp_path / "runs", report(status="failure", measures=twice, judged=JUDGED))
    assert annotate(tmp_path / "runs", "--file", "ci/gate, new.yaml") == 1
    missed = "title=fill%3A threshold missed"
    assert capsys.readouterr().out.splitlines() == [
        f"::error file=ci/gate%2C new.yaml,line=4,{missed}::allocation.gpu at least 99.0 %25: "
        "found 92.2 %25, 92.2 %25, missed in 2 of 2 repetitions",
        f"::error file=ci/gate%2C new.yaml,line=5,{missed}::timeToSchedule.p99 at most 2.00 s: "
        "found 3.10 s, 3.10 s, missed in 2 of 2 repetitions",
    ]
    summary, output = (path.read_text() for path in github_files)
    assert summary.startswith(
        "before\n### fill: 2 of 4 thresholds missed\n\nstack quickstart, 30 nodes, scheduler default"
    )
    assert "| missed | allocation.gpu at least 99.0 % | 92.2 %, 92.2 % |" in summary
    assert "| reached | training on a100-use1-0 | a100-use1-0, a100-use1-0 |" in summary
    assert output == f"other=1\nstatus=failure\nmissed=2\nreport={directory}\n"


def test_as_warnings_they_let_the_step_pass(
    tmp_path: Path, github_files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    written(tmp_path, report(status="failure", judged=JUDGED))
    assert annotate(tmp_path, "--level", "warning") == 0
    said = capsys.readouterr().out.splitlines()
    # Of a file that is not in the repository there is no line to show.
    assert said[0] == "::warning title=fill%3A threshold missed::allocation.gpu at least 99.0 %25: found 92.2 %25"
    assert len(said) == 2


def test_a_run_that_reached_all_says_so_and_nothing_else(
    tmp_path: Path, github_files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    written(tmp_path, report(judged=[(expected, True, found) for expected, _, found in JUDGED]))
    assert annotate(tmp_path) == 0
    assert capsys.readouterr().out == ""
    assert "### fill: all 4 thresholds reached" in github_files[0].read_text()


@pytest.mark.parametrize("level", ["error", "warning"])
def test_a_run_without_its_end_is_an_error_whatever_thresholds_are(
    level: str, tmp_path: Path, github_files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    written(tmp_path, report(status="partial", error="the API server is gone\n100% of it"))
    assert annotate(tmp_path, "--level", level, "--file", "f.yaml") == 1
    expected = "::error file=f.yaml,title=fill%3A not complete::the API server is gone%0A100%25 of it\n"
    assert capsys.readouterr().out == expected
    assert "### fill: not complete" in github_files[0].read_text()


def test_without_github_only_the_annotations_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT"):
        monkeypatch.delenv(name, raising=False)
    written(tmp_path, report(status="failure", judged=JUDGED))
    assert annotate(tmp_path) == 1
    assert len(capsys.readouterr().out.splitlines()) == 2


@pytest.mark.parametrize(("source", "lines"), [(SOURCE, {0: 4, 1: 4, 2: 5, 3: 7}), ("name: [", {}), ("name: x\n", {})])
def test_lines_are_those_of_the_file(source: str, lines: dict[int, int]) -> None:
    assert github.lines_of(source) == lines


def test_a_message_cannot_end_a_table(tmp_path: Path) -> None:
    made = report(status="failure", judged=[("a | b\n<script>", False, "c")])
    assert "| missed | a \\| b &lt;script> | c |" in github.summary(made)
