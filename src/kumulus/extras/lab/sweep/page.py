"""The page of a sweep: each measure as a table with intervals and verdicts, and as a plot with every seed."""

import html
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kumulus.extras.lab.file.amount import NOT_MEASURED, shown, signed
from kumulus.extras.lab.file.measures import MEANINGS, UNITS, Unit
from kumulus.extras.lab.report.change import document
from kumulus.extras.lab.report.files import os_errors_explained
from kumulus.extras.lab.sweep.file import SEED, Sweep, group_of, label, words
from kumulus.extras.lab.sweep.significance import GroupDifference, Interval, difference, interval, needed
from kumulus.extras.lab.sweep.store import CellResult
from kumulus.host import files
from kumulus.model.words import counted

NAME = "sweep.html"
# Of a share: policies differ by less than 1 %.
_DECIMALS = 2
# What the measures that a run without a cluster can have begin with.
_WITHOUT_CLUSTER = ("pods.", "policy.")
_Group = tuple[tuple[str, str], ...]
_WITHOUT = "incomplete: no seed of it and of the baseline has this measure"
_STYLE = """
:root{color-scheme:light dark}
body{font:15px/1.5 system-ui,sans-serif;max-width:64rem;margin:2rem auto;padding:0 1rem}
div{overflow-x:auto}table{border-collapse:collapse;margin:.5rem 0 1rem}
td,th{padding:.25rem .7rem;text-align:right;border-bottom:1px solid #8884}
td{white-space:nowrap}:is(td,th):is(:first-child,:last-child){text-align:left;white-space:normal}
.higher,.lower{font-weight:600}
.muted{color:light-dark(#595959,#aaa)}svg{max-width:100%;min-width:36rem;height:auto;background:#fff}
@media(prefers-color-scheme:dark){svg{filter:invert(.93) hue-rotate(180deg)}}
@media(max-width:520px){:is(table,tbody,tr,td){display:block}tr:first-child,td:empty{display:none}
tr{padding:.3rem 0;border-bottom:1px solid #8884}
table td{border:0;padding:.1rem 0;text-align:left;white-space:normal;overflow-wrap:anywhere}
td:first-child{font-weight:600}td[data-of]::before{content:attr(data-of) ": "}}
"""


@dataclass(frozen=True)
class GroupRow:
    """A group of runs that differ by seed alone, in one measure."""

    name: str
    values: Mapping[int, float]
    """Of its seeds, each the mean of its repetitions."""
    missing: int
    """How many other seeds it has, whose runs were cut off or lack the measure."""
    against: GroupDifference | None
    """The comparison with the baseline; None for the baseline itself, and where no seed has both."""
    baseline: bool

    @property
    def mean(self) -> float:
        """Of its seeds; it has at least one."""
        return math.fsum(self.values.values()) / len(self.values)

    @property
    def interval(self) -> Interval | None:
        """Of the mean, at 95 %; None where it has too few seeds."""
        return interval(list(self.values.values()))


def tables(sweep: Sweep, results: Sequence[CellResult]) -> dict[str, list[GroupRow]]:
    """Each measure of the page with a row for each group, the baseline first.

    Measures without values are left out, but for those that the file asks for.
    """
    groups: dict[_Group, list[CellResult]] = {}
    for result in results:
        groups.setdefault(group_of(result.values), []).append(result)
    axes = {axis: label(values[0]) for axis, values in sweep.matrix.items() if axis != SEED}
    wanted = {axis: str(sweep.baseline.get(axis, first)) for axis, first in axes.items()}
    ordered = {key: groups[key] for key in sorted(groups, key=lambda key: dict(key) != wanted)}
    found = {measure: _rows(measure, ordered, wanted, sweep) for measure in sweep.shown()}
    return {
        measure: rows
        for measure, rows in found.items()
        if any(row.values for row in rows) or (rows and measure in sweep.measures)
    }


def _nowhere(measure: str, rows: Sequence[GroupRow], sweep: Sweep) -> str:
    """What is said of a measure that no run has; empty for others."""
    if any(row.values for row in rows):
        return ""
    runs = sum(row.missing for row in rows)
    why = "" if sweep.live or measure.startswith(_WITHOUT_CLUSTER) else ", each without a cluster"
    return f"{NOT_MEASURED} in {runs:,} of {counted(runs, 'run')}{why}"


def _rows(
    measure: str, groups: Mapping[_Group, Sequence[CellResult]], wanted: Mapping[str, str], sweep: Sweep
) -> list[GroupRow]:
    found: list[GroupRow] = []
    for key, results in groups.items():
        values = _values(results, measure)
        row = GroupRow(words(dict(key)) or sweep.name, values, len(results) - len(values), None, dict(key) == wanted)
        base = found[0] if found and found[0].baseline else None
        if base and values:
            incomplete = bool(row.missing or base.missing)
            row = replace(row, against=difference(values, base.values, _comparisons(sweep), incomplete=incomplete))
        found.append(row)
    return found


def _comparisons(sweep: Sweep) -> int:
    """How many comparisons the page makes: they share the chance of calling noise a difference."""
    groups = math.prod(len(values) for axis, values in sweep.matrix.items() if axis != SEED)
    return (groups - 1) * len(sweep.shown())


def _values(results: Sequence[CellResult], measure: str) -> dict[int, float]:
    return {
        result.seed: math.fsum(run[measure] for run in result.runs) / len(result.runs)
        for result in results
        if result.complete and all(measure in run for run in result.runs)
    }


def too_few(sweep: Sweep) -> str:
    """What is to be said before a sweep whose seeds cannot show a difference; empty for others."""
    comparisons, seeds = _comparisons(sweep), len(sweep.matrix.get(SEED, [0]))
    if not comparisons or seeds >= needed(comparisons):
        return ""
    return (
        f"{counted(seeds, 'seed')}: no difference can be distinguished from noise, as "
        f"{counted(comparisons, 'comparison')} {'take' if comparisons > 1 else 'takes'} {needed(comparisons)}"
    )


def lines(sweep: Sweep, found: Mapping[str, Sequence[GroupRow]]) -> Iterator[str]:
    """The tables, for the terminal."""
    for measure, rows in found.items():
        if nowhere := _nowhere(measure, rows, sweep):
            yield f"{measure}: {nowhere}"
            continue
        yield f"{measure}: {MEANINGS[measure]}"
        width = max(len(row.name) for row in rows)
        for row in rows:
            amount, verdict = _against(UNITS[measure], row, sweep)
            cells = [row.name.ljust(width), _figure(UNITS[measure], row), _seeds(row)]
            yield "  " + "  ".join([*cells, f"{amount}: {verdict}" if amount else verdict])


def write(
    sweep: Sweep, found: Mapping[str, Sequence[GroupRow]], results: Sequence[CellResult], cells: int, file: Path
) -> None:
    """Write the page: one self-contained file."""
    parts = [f"<h1>{html.escape(sweep.name)}</h1>"]
    if sweep.description:
        parts.append(f"<p>{html.escape(sweep.description)}</p>")
    failed = [result for result in results if not result.complete]
    where = "each on a cluster of its own" if sweep.live else "without a cluster"
    cut_off = f"{len(failed):,} not complete{', and in no table' if failed else ''}"
    missed = sum(result.status == "failure" for result in results)
    thresholds = f"; {missed:,} missed a threshold" if missed else ""
    parts.append(f"<p>{len(results):,} of {cells:,} runs, {where}; {cut_off}{thresholds}.</p>")
    parts.append(_method(_comparisons(sweep)))
    for measure, rows in found.items():
        meaning = html.escape(MEANINGS[measure])
        if nowhere := _nowhere(measure, rows, sweep):
            parts.append(f"<h2>{measure}</h2><p class=muted>{meaning}</p><p>{nowhere}</p>")
            continue
        parts += [f"<h2>{measure}</h2><p class=muted>{meaning}</p>", _table(measure, rows, sweep)]
        parts.append(_picture(measure, rows))
    if failed:
        entries = "".join(f"<li>{html.escape(f'{words(each.values)}: {each.error}')}</li>" for each in failed[:20])
        parts.append(f"<h2>Not complete</h2><ul>{entries}</ul>")
    with os_errors_explained(file):
        files.write(file, document(sweep.name, _STYLE, "".join(parts)))


def _method(comparisons: int) -> str:
    return (
        "<p class=muted>A figure is the mean of its seeds, each of which is the mean of its repetitions, with an "
        f"interval at 95 %; with fewer than {needed(1)} seeds, their range. Groups are compared with the first row, "
        "seed by seed. A difference is called one when its interval excludes 0, at 5 % for the whole page: "
        f"{counted(comparisons, 'comparison')}, {'each of which' if comparisons > 1 else 'which'} takes "
        f"{needed(comparisons)} seeds or more. In a plot, a dot is a seed, and the line is the mean.</p>"
    )


def _table(measure: str, rows: Sequence[GroupRow], sweep: Sweep) -> str:
    unit = UNITS[measure]
    body = "".join(
        f'<tr><td>{html.escape(row.name)}</td><td data-of="Mean">{_figure(unit, row)}</td><td>{_seeds(row)}</td>'
        f"{_cell(row, *_against(unit, row, sweep))}</tr>"
        for row in rows
    )
    heads = ("Group", "Mean and interval", "Seeds", "Difference from the first", "Verdict")
    head = f"<tr>{''.join(f'<th>{each}</th>' for each in heads)}</tr>"
    return f"<div><table>{head}{body}</table></div>"


def _cell(row: GroupRow, amount: str, verdict: str) -> str:
    called = row.against is not None and row.against.verdict in ("higher", "lower")
    return (
        f'<td data-of="Difference from the first">{amount}</td>'
        f"<td class={verdict if called else 'muted'}>{verdict}</td>"
    )


def _picture(measure: str, rows: Sequence[GroupRow]) -> str:
    # Drawing needs a library that is slow to load.
    from kumulus.extras.lab.report import spreads

    return f"<div>{spreads.svg(measure, {row.name: list(row.values.values()) for row in rows if row.values})}</div>"


def _seeds(row: GroupRow) -> str:
    seeds = len(row.values) + row.missing
    return f"{len(row.values):,} of {counted(seeds, 'seed')}" if row.missing else counted(seeds, "seed")


def _figure(unit: Unit, row: GroupRow) -> str:
    if len(row.values) <= 1:
        return _exact(unit, row.mean) if row.values else "–"
    low, high = row.interval or (min(row.values.values()), max(row.values.values()))
    between = "…" if row.interval else "to"
    return f"{_exact(unit, row.mean)} ({_exact(unit, low)} {between} {_exact(unit, high)})"


def _against(unit: Unit, row: GroupRow, sweep: Sweep) -> tuple[str, str]:
    found = row.against
    if found is None:
        return "", "compared with this" if row.baseline else _WITHOUT
    amount = signed(unit, found.mean, _DECIMALS)
    if found.interval:
        low, high = (signed(unit, each, _DECIMALS) for each in found.interval)
        amount += f" ({low} … {high})"
    more = {
        "one seed": ": nothing is known about other workloads",
        "too few seeds": f": {found.seeds} of {needed(_comparisons(sweep))}",
        "incomplete": f": compared by {counted(found.seeds, 'seed')} that both have",
    }
    return amount, found.verdict + more.get(found.verdict, "")


def _exact(unit: Unit, value: float) -> str:
    return f"{100 * value:.{_DECIMALS}f} %" if unit == "share" else shown(unit, value)
