"""Whether changes are accepted, as CI systems show it: JUnit XML whose names are the same every time, and GitHub."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from kumulus.extras.lab.report import github
from kumulus.extras.lab.report.junit import printable


@dataclass(frozen=True)
class MeasureCheck:
    """One thing that a change has to keep."""

    name: str
    """What, the same every time: `timeToSchedule.p99 at most 10 % more`."""
    holds: bool | None
    found: str


def junit(suite: str, checks: Sequence[MeasureCheck]) -> str:
    """The checks as JUnit XML: a failure for what does not hold, skipped where it is not decided."""
    suites = ElementTree.Element("testsuites", name=suite)
    inner = ElementTree.SubElement(
        suites,
        "testsuite",
        name=suite,
        tests=str(len(checks)),
        failures=str(sum(each.holds is False for each in checks)),
        skipped=str(sum(each.holds is None for each in checks)),
    )
    for each in checks:
        case = ElementTree.SubElement(inner, "testcase", name=printable(each.name), classname=suite)
        if not each.holds:
            ElementTree.SubElement(case, "skipped" if each.holds is None else "failure", message=printable(each.found))
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def on_github(suite: str, title: str, checks: Sequence[MeasureCheck], outputs: str) -> Iterator[str]:
    """Add the checks to the summary of a workflow's run, and outputs to its step; the lines are to be printed."""
    github.published(summary(title, checks), outputs)
    return commands(suite, checks)


def commands(suite: str, checks: Sequence[MeasureCheck]) -> Iterator[str]:
    """Workflow commands of GitHub: an error for what does not hold, a warning where it is not decided."""
    for each in checks:
        if not each.holds:
            level: github.Level = "warning" if each.holds is None else "error"
            yield github.command(level, "", None, suite, f"{each.name}: {each.found}")


def summary(title: str, checks: Sequence[MeasureCheck]) -> str:
    """The checks for the page of a workflow's run, in Markdown."""
    words = {True: "holds", False: "**missed**", None: "not decided"}
    rows = [f"| {words[each.holds]} | {github.cell(each.name)} | {github.cell(each.found)} |" for each in checks]
    return "\n".join([f"### {title}", "", "| | Change | Found |", "|---|---|---|", *rows, "", ""])
