"""A report as GitHub Actions shows it: missed thresholds at the lines they are in, a summary, outputs of the step.

Source of the formats: https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import yaml

from kumulus.extras.lab.report import text
from kumulus.extras.lab.report.files import os_errors_explained
from kumulus.extras.lab.report.model import Report
from kumulus.model.errors import SpecError
from kumulus.stackfile.yamltext import read_yaml

Level = Literal["error", "warning"]


@dataclass(frozen=True)
class ThresholdOutcome:
    """A threshold in all repetitions."""

    expected: str
    found: tuple[str, ...]
    missed: int

    def __str__(self) -> str:
        times = f", missed in {self.missed} of {len(self.found)} repetitions" if len(self.found) > 1 else ""
        return f"{self.expected}: found {', '.join(self.found)}{times}"


def outcomes(report: Report) -> list[ThresholdOutcome]:
    """The thresholds of a report, in the order of the experiment's file."""
    tests = [test.thresholds for test in report.results.tests if test.thresholds]
    return [
        ThresholdOutcome(each[0].expected, tuple(one.found for one in each), sum(not one.holds for one in each))
        for each in zip(*tests, strict=False)
    ]


def commands(report: Report, file: str, lines: Mapping[int, int], level: Level) -> Iterator[str]:
    """Workflow commands, one for each threshold that was missed and one for a run that is not complete.

    Args:
        file: the path of the experiment's file in the repository; empty when it is not in the repository.
        lines: the line of each threshold in the file, by its number from 0; may lack some.
        level: the severity of a missed threshold; an incomplete run is always an error.
    """
    name = report.metadata.experiment
    for number, each in enumerate(outcomes(report)):
        if each.missed:
            yield command(level, file, lines.get(number), f"{name}: threshold missed", str(each))
    if report.results.status == "partial" or report.results.error:
        ended = [test.details.ended for test in report.results.tests if test.status == "partial"]
        why = report.results.error or ", ".join(dict.fromkeys(ended)) or "it was ended"
        yield command("error", file, None, f"{name}: not complete", why)


def lines_of(source: str) -> dict[int, int]:
    """The line of each threshold in an experiment's text, by its number from 0; empty when that cannot be known."""
    # Others take from here how a limit is shown on GitHub, and read no experiment.
    from kumulus.extras.lab.file.model import ExperimentSpec

    try:
        experiment = ExperimentSpec.checked(read_yaml(source))
        root = yaml.compose(source, yaml.SafeLoader)
    except (SpecError, yaml.YAMLError):
        return {}
    items = _items(root)
    numbers: dict[int, int] = {}
    if len(items) == len(experiment.expect):
        for item, expectation in zip(items, experiment.expect, strict=True):
            for _ in range(len(expectation.limits) if expectation.measure else 1):
                numbers[len(numbers)] = item.start_mark.line + 1
    return numbers


def _items(root: yaml.Node | None) -> list[yaml.Node]:
    for key, value in root.value if isinstance(root, yaml.MappingNode) else ():
        if key.value == "expect" and isinstance(value, yaml.SequenceNode):
            return list(value.value)
    return []


def summary(report: Report) -> str:
    """The report for the page of a workflow's run, in Markdown."""
    found = outcomes(report)
    missed = sum(bool(each.missed) for each in found)
    head = f"{missed} of {len(found)} thresholds missed" if missed else f"all {len(found)} thresholds reached"
    if report.results.status == "partial":
        head = "not complete"
    about = report.metadata
    rows = [
        f"| {'missed' if each.missed else 'reached'} | {cell(each.expected)} | {cell(', '.join(each.found))} |"
        for each in found
    ]
    table = ["", "| | Threshold | Found |", "|---|---|---|", *rows] if rows else []
    # An indented block, which no content of a message can end.
    details = "\n".join(f"    {line}" for line in text.lines(report))
    where = f"stack {about.stack}, {about.cluster.nodes:,} nodes, scheduler {about.scheduler.name}"
    return "\n".join([f"### {about.experiment}: {head}", "", where, *table, "", details, "", ""])


def outputs(report: Report, directory: Path) -> str:
    """Outputs of the workflow's step: `status`, `missed` and `report`."""
    missed = sum(bool(each.missed) for each in outcomes(report))
    return f"status={report.results.status}\nmissed={missed}\nreport={directory}\n"


def published(summary: str, outputs: str) -> None:
    """Add to the summary of a workflow's run, and to the outputs of its step; outside of one, do nothing."""
    for variable, content in (("GITHUB_STEP_SUMMARY", summary), ("GITHUB_OUTPUT", outputs)):
        if target := os.environ.get(variable):
            with os_errors_explained(Path(target)), Path(target).open("a", encoding="utf-8") as file:
                file.write(content)


def command(level: Level, file: str, line: int | None, title: str, message: str) -> str:
    """A workflow command that shows a message.

    Args:
        file: the path of a file in the repository that it is about; empty for none.
    """
    fields = {"file": file, "line": line if file else None, "title": title}
    properties = ",".join(f"{key}={_property(str(value))}" for key, value in fields.items() if value)
    return f"::{level} {properties}::{_data(message)}"


def _data(value: str) -> str:
    return value.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: str) -> str:
    return _data(value).replace(":", "%3A").replace(",", "%2C")


def cell(value: str) -> str:
    """A text as a cell of a table in Markdown."""
    return " ".join(value.split()).replace("|", "\\|").replace("<", "&lt;")
