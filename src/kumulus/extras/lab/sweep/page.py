"""The page of a sweep: each measure as a table with intervals and verdicts, and as a plot with every run."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kumulus.extras.lab.file.measures import MEANINGS, UNITS, Unit
from kumulus.extras.lab.file.units import shown
from kumulus.extras.lab.report.files import os_errors_explained
from kumulus.extras.lab.sweep.file import SEED, Sweep, group_of, label, words
from kumulus.extras.lab.sweep.significance import Difference, difference, interval, needed
from kumulus.extras.lab.sweep.store import Result
from kumulus.host import files
from kumulus.model.words import counted

NAME = "sweep.html"
_WITHOUT = "no run of the baseline has this measure"
_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:64rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}
table{border-collapse:collapse;margin:.5rem 0 1rem}
td,th{padding:.25rem .7rem;text-align:right;border-bottom:1px solid #ddd}
td:first-child,th:first-child{text-align:left}.higher,.lower{font-weight:600}
.muted{color:#595959}svg{max-width:100%;height:auto}
"""


@dataclass(frozen=True)
class Row:
    """A group of runs that differ by seed alone, in one measure.

    Args:
        name: its values of the matrix, in words.
        values: of the runs, by seed and repetition.
        mean: of them.
        low, high: the bootstrap interval of the mean, at 95 %.
        against: the comparison with the baseline; None for the baseline itself, and if it has no complete run.
        baseline: whether it is the baseline.
    """

    name: str
    values: Mapping[object, float]
    mean: float
    low: float
    high: float
    against: Difference | None
    baseline: bool


def tables(sweep: Sweep, results: Sequence[Result]) -> dict[str, list[Row]]:
    """Each measure of the page with a row for each group, the baseline first; measures without values are left out."""
    groups: dict[tuple[tuple[str, str], ...], list[Result]] = {}
    for result in results:
        groups.setdefault(group_of(result.values), []).append(result)
    axes = {axis: label(values[0]) for axis, values in sweep.matrix.items() if axis != SEED}
    wanted = {axis: str(sweep.baseline.get(axis, first)) for axis, first in axes.items()}
    ordered = sorted(groups, key=lambda key: dict(key) != wanted)
    return {measure: found for measure in sweep.shown() if (found := _rows(measure, groups, ordered, wanted, sweep))}


def _rows(
    measure: str,
    groups: Mapping[tuple[tuple[str, str], ...], Sequence[Result]],
    ordered: Sequence[tuple[tuple[str, str], ...]],
    wanted: Mapping[str, str],
    sweep: Sweep,
) -> list[Row]:
    values = {key: _values(groups[key], measure) for key in ordered}
    first = next((values[key] for key in ordered if dict(key) == wanted), {})
    comparisons = _comparisons(len(ordered), sweep)
    found = []
    for key in ordered:
        if mine := values[key]:
            name = words(dict(key)) or sweep.name
            mean, (low, high) = sum(mine.values()) / len(mine), interval(list(mine.values()))
            baseline = dict(key) == wanted
            against = difference(mine, first, comparisons) if first and not baseline else None
            found.append(Row(name, mine, mean, low, high, against, baseline))
    return found


def _comparisons(groups: int, sweep: Sweep) -> int:
    """How many comparisons the page makes: they share the chance of calling noise a difference."""
    return max(1, (groups - 1) * len(sweep.shown()))


def _values(results: Sequence[Result], measure: str) -> dict[object, float]:
    return {
        (result.seed, number): run[measure]
        for result in results
        if result.complete
        for number, run in enumerate(result.runs)
        if measure in run
    }


def lines(sweep: Sweep, found: Mapping[str, Sequence[Row]]) -> Iterator[str]:
    """The tables, for the terminal."""
    for measure, rows in found.items():
        yield f"{measure}: {MEANINGS[measure]}"
        width = max(len(row.name) for row in rows)
        for row in rows:
            runs = counted(len(row.values), "run")
            cells = [row.name.ljust(width), _with_interval(UNITS[measure], row.mean, row.low, row.high), runs]
            yield "  " + "  ".join([*cells, _against(UNITS[measure], row)])


def write(sweep: Sweep, found: Mapping[str, Sequence[Row]], results: Sequence[Result], cells: int, file: Path) -> None:
    """Write the page: one self-contained file.

    Args:
        sweep: what was swept.
        found: its tables.
        results: of the cells that have one.
        cells: how many there are.
        file: to write.

    Raises:
        LabError: it cannot be written.
    """
    parts = [f"<h1>{html.escape(sweep.name)}</h1>"]
    if sweep.description:
        parts.append(f"<p>{html.escape(sweep.description)}</p>")
    failed = [result for result in results if not result.complete]
    where = "each on a cluster of its own" if sweep.live else "without a cluster"
    cut_off = f"{len(failed):,} not complete{', and in no table' if failed else ''}"
    parts.append(f"<p>{len(results):,} of {cells:,} runs, {where}; {cut_off}.</p>")
    parts.append(_method(_comparisons(len({group_of(each.values) for each in results}), sweep)))
    for measure, rows in found.items():
        parts += [f"<h2>{measure}</h2><p class=muted>{html.escape(MEANINGS[measure])}</p>", _table(measure, rows)]
        parts.append(_picture(measure, rows))
    if failed:
        entries = "".join(f"<li>{html.escape(f'{words(each.values)}: {each.error}')}</li>" for each in failed[:20])
        parts.append(f"<h2>Not complete</h2><ul>{entries}</ul>")
    head = f'<meta charset="utf-8"><title>{html.escape(sweep.name)}</title><style>{_STYLE}</style>'
    with os_errors_explained(file):
        files.write(file, f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(parts)}</body></html>\n')


def _method(comparisons: int) -> str:
    return (
        "<p class=muted>Means with bootstrap intervals at 95 %. A difference from the first row is called one when its "
        "bootstrap interval excludes 0 and a permutation test agrees, at 5 % for the whole page: "
        f"{comparisons} comparison{'s' if comparisons > 1 else ''}, each of which needs {needed(comparisons)} seeds or "
        "more. Runs of the same seed are compared with each other.</p>"
    )


def _table(measure: str, rows: Sequence[Row]) -> str:
    unit = UNITS[measure]
    body = "".join(
        f"<tr><td>{html.escape(row.name)}</td><td>{_with_interval(unit, row.mean, row.low, row.high)}</td>"
        f"<td>{len(row.values)}</td>{_cell(unit, row)}</tr>"
        for row in rows
    )
    head = "<tr><th>Group</th><th>Mean and interval</th><th>Runs</th><th>Less the first</th><th></th></tr>"
    return f"<table>{head}{body}</table>"


def _cell(unit: Unit, row: Row) -> str:
    against = row.against
    if against is None:
        return f"<td></td><td class=muted>{'' if row.baseline else _WITHOUT}</td>"
    style = against.verdict if against.verdict in ("higher", "lower") else "muted"
    amount = f"{_signed(unit, against.mean)} ({_signed(unit, against.low)} … {_signed(unit, against.high)})"
    return f"<td>{amount}</td><td class={style}>{against.verdict}</td>"


def _picture(measure: str, rows: Sequence[Row]) -> str:
    # Drawing needs a library that is slow to load.
    from kumulus.extras.lab.report import spreads

    return spreads.svg(measure, {row.name: list(row.values.values()) for row in rows})


def _against(unit: Unit, row: Row) -> str:
    if row.against is None:
        return "compared with this" if row.baseline else _WITHOUT
    return f"{_signed(unit, row.against.mean)}: {row.against.verdict}"


def _with_interval(unit: Unit, mean: float, low: float, high: float) -> str:
    return f"{_exact(unit, mean)} ({_exact(unit, low)} … {_exact(unit, high)})"


def _exact(unit: Unit, value: float) -> str:
    """As elsewhere, but shares with two decimals: policies differ by less than 1 %."""
    return f"{100 * value:.2f} %" if unit == "share" else shown(unit, value)


def _signed(unit: Unit, value: float) -> str:
    return f"{'-' if value < 0 else '+'}{_exact(unit, abs(value))}"
