"""A run as GitHub shows it: annotations at the lines of missed thresholds, a summary, outputs of the step."""

from __future__ import annotations

from pathlib import Path

import pytest

from kumulus.cli.main import main
from kumulus.extras.lab.report import github
from kumulus.extras.lab.report.files import RunDirectory
from kumulus.extras.lab.report.model import Report
from tests.support.reports import report

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


@pytest.mark.parametrize("level", github.LEVELS)
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
