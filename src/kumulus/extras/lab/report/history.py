"""All runs on one self-contained HTML page: a list to search and filter, and trend lines.

A line joins runs that agree in everything their figures depend on; another setting begins another line, as on KAI's
page of scale tests.
"""

import html
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.amount import NOT_MEASURED
from kumulus.extras.lab.file.measures import BETTER, MEANINGS, UNITS
from kumulus.extras.lab.report import change
from kumulus.extras.lab.report.change import MeasureChange
from kumulus.extras.lab.report.checks import MeasureCheck
from kumulus.extras.lab.report.compare import labels, same_settings, table, unfair
from kumulus.extras.lab.report.files import manifest, os_errors_explained, report_at
from kumulus.extras.lab.report.model import Report
from kumulus.extras.lab.report.text import assumed, unheard
from kumulus.extras.lab.report.together import together
from kumulus.host import files

FILE = "history.html"
_PARTS = Path(__file__).parent / "page"
# A spread, and how many repetitions lack the figure.
_MORE, _SMALL = re.compile(rf",? (\(.* … .*|\d+ {NOT_MEASURED})$"), r" <small>\1</small>"


def write(results: Path) -> tuple[Path, list[str]]:
    """Write the page of a results directory; returns its path, and what could not be read."""
    runs = manifest(results)
    if not runs:
        raise LabError(f"there are no runs in {results}; `kumulus experiment run` makes one")
    reports: list[tuple[str, Report]] = []
    unread = []
    for run in runs:
        try:
            reports.append((str(run["path"]), report_at(results / str(run["path"]))))
        except LabError as error:
            unread.append(str(error))
    path = results / FILE
    with os_errors_explained(path):
        files.write(path, page(reports, results))
    return path, unread


def write_comparison(
    path: Path,
    columns: Sequence[Sequence[tuple[Path, Report]]],
    changes: Sequence[MeasureChange] = (),
    checks: Sequence[MeasureCheck] = (),
) -> None:
    """Write a page with some runs side by side.

    Args:
        columns: each one run, or several as its repetitions; each with the path of its report.json.
        changes: of measures, where there are two columns.
        checks: of limits that the change is to keep.
    """
    folder = path.resolve().parent
    near = [[(os.path.relpath(file.resolve(), folder), report) for file, report in column] for column in columns]
    with os_errors_explained(path):
        files.write(path, compared(near, folder, changes, checks))


def compared(
    columns: Sequence[Sequence[tuple[str, Report]]],
    folder: Path,
    changes: Sequence[MeasureChange] = (),
    checks: Sequence[MeasureCheck] = (),
) -> str:
    """The page of `write_comparison`; paths are relative to its folder."""
    runs = [each for column in columns for each in column]
    comparison = _comparison([together([report for _, report in column]) for column in columns], changes, checks)
    return page(runs, folder, comparison)


def _comparison(reports: Sequence[Report], changes: Sequence[MeasureChange], checks: Sequence[MeasureCheck]) -> str:
    """The comparison as HTML: the limits first, with what makes it unfair."""
    _, *rows = [[html.escape(cell) for cell in row] for row in table(reports)]
    # The ids are in the list of runs below.
    head = ["", *(html.escape(label) for label in labels(reports))]
    lines = ["<tr>" + "".join(f"<th>{cell}</th>" for cell in head) + "</tr>"]
    for name, *cells in rows:
        values = "".join(f'<td class="number">{_MORE.sub(_SMALL, cell)}</td>' for cell in cells)
        lines.append(f"<tr><th>{name}</th>{values}</tr>")
    wrong = "".join(f"<p class=partial>Unfair: {html.escape(line)}</p>" for line in unfair(reports))
    kept = "".join(
        f'<p class="{"" if each.holds else "worse"}">{"Kept" if each.holds else "Missed"}: '
        f"{html.escape(each.name)}: {html.escape(each.found)}</p>"
        for each in checks
    )
    changed = ""
    if changes:
        changed = f"<style>{change.STYLE}</style>{change.table(labels(reports), changes)}"
    table_of_all = '<table class="comparison">\n' + "\n".join(lines) + "\n</table>"
    return f'<section aria-label="Comparison">{kept}{wrong}{changed}{table_of_all}</section>'


def page(reports: Sequence[tuple[str, Report]], folder: Path, comparison: str = "") -> str:
    """The page.

    Args:
        reports: each with the path of its report.json, relative to the page; the oldest first.
        folder: where the page is.
        comparison: HTML to show above them.
    """
    data = {
        "runs": _runs(reports, folder),
        "measures": {name: {"unit": UNITS[name], "better": BETTER[name], "meaning": MEANINGS[name]} for name in UNITS},
    }
    # Neither "</script" nor "<!--", which would hide the end of the script, can then be in it.
    encoded = json.dumps(data).replace("<", "\\u003c")
    parts = {name: (_PARTS / f"history.{name}").read_text(encoding="utf-8") for name in ("html", "css", "js")}
    return (
        parts["html"]
        .replace("/* style */", parts["css"])
        .replace("<!-- count -->", html.escape(f"{len(reports):,} runs"))
        .replace("<!-- comparison -->", comparison)
        .replace("/* script */", parts["js"])
        .replace('"data"', encoded)
    )


def _runs(reports: Sequence[tuple[str, Report]], folder: Path) -> list[dict[str, Any]]:
    known: list[Report] = []
    return [_run(path, folder, report, _series(report, known)) for path, report in reports]


def _series(report: Report, known: list[Report]) -> int:
    """The number of the series that a run belongs to: that of the first with the same settings."""
    for number, other in enumerate(known):
        if same_settings(other, report):
            return number
    known.append(report)
    return len(known) - 1


def _run(path: str, folder: Path, report: Report, series: int) -> dict[str, Any]:
    metadata, tests = report.metadata, report.results.tests
    # Runs of `ab` have none.
    plots = [f"{Path(path).parent}/repetition-{number}.svg" for number in range(1, len(tests) + 1)]
    plots = [each for each in plots if (folder / each).is_file()]
    return {
        "id": metadata.run_id,
        "experiment": metadata.experiment,
        "scheduler": " ".join(filter(None, (metadata.scheduler.name, metadata.scheduler.config))),
        "status": report.results.status,
        "error": report.results.error,
        "time": metadata.timestamp,
        "commit": metadata.kumulus_commit,
        "stack": metadata.stack,
        "nodes": metadata.cluster.nodes,
        "series": series,
        "settings": metadata.scheduler.settings,
        # Links: a directory's name may have a "#" or a "%".
        "path": quote(path),
        "plots": [quote(each) for each in plots],
        "missed": [f"{each.expected}: {each.found}" for test in tests for each in test.thresholds if not each.holds],
        "unheard": [*unheard(tests), *assumed(tests)],
        # What was cut off would be in no trend for what it is.
        "measures": [test.details.measures for test in tests if test.status != "partial"],
        "notMeasured": sorted({name for test in tests for name in test.details.not_measured}),
    }
