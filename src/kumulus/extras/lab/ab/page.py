"""What A and B came to: lines for the terminal, a page, checks for CI, and a file for programs."""

import html
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from kumulus.extras.lab.ab.running import Comparison
from kumulus.extras.lab.report import checks
from kumulus.extras.lab.report.change import MeasureChange, page, style, table
from kumulus.extras.lab.report.checks import MeasureCheck
from kumulus.extras.lab.report.files import os_errors_explained
from kumulus.host import files
from kumulus.model.words import aligned, counted

PAGE, JUNIT, DATA = "ab.html", "junit.xml", "ab.json"
_SHOWN = 6
_WIDE, _HIGH, _EDGE = 720, 150, 8
# Of the height of a plot: labels that are nearer to each other overlap.
_APART = 0.15


def headline(found: Comparison) -> str:
    """The verdict in a sentence."""
    one, two = found.sides
    said = ", ".join(f"{each.measure} {each.amount}" for each in found.pairs.changes() if each.verdict == found.verdict)
    pairs = f"after {counted(len(found.reports), 'pair')} of runs"
    margin = f"{found.pairs.margin:.0%}".replace("%", " %")
    return {
        "worse": f"{two} is worse than {one} {pairs}: {said}",
        "better": f"{two} is better than {one} {pairs}: {said}",
        "alike": f"{two} and {one} are alike {pairs}: no difference of {margin} or more",
        "not decided": f"not decided {pairs}: {two} may be better or worse than {one}",
        "incomplete": f"incomplete {pairs}: {found.incomplete}",
    }[found.verdict]


def lines(found: Comparison) -> Iterator[str]:
    """The verdict, the measures, and what else differed."""
    yield headline(found)
    rows = [("", "verdict", "difference", "interval", *found.sides)]
    rows += [(each.measure, each.verdict, each.amount, each.interval, *each.values) for each in found.pairs.changes()]
    yield from (f"  {line}" for line in aligned(rows).splitlines())
    unfair = list(found.unfair())
    yield from (f"unfair: {line}" for line in unfair[:_SHOWN])
    if len(unfair) > _SHOWN:
        yield f"unfair: {len(unfair) - _SHOWN} more, on the page"


def checks_of(found: Comparison) -> list[MeasureCheck]:
    """The measures that have to be no worse, for CI; an incomplete comparison keeps none of them."""
    holds = {"worse": False, "not decided": None, "better": True, "alike": True}
    return [
        MeasureCheck(
            f"{each.measure} is not worse",
            False if found.incomplete else holds[each.verdict],
            f"{each.found}; {found.incomplete}" if found.incomplete else each.found,
        )
        for each in found.pairs.changes()
    ]


def suite(found: Comparison) -> str:
    """What the checks are called together, the same in every comparison of one experiment."""
    return f"{found.experiment}.ab"


def write(found: Comparison, directory: Path) -> None:
    """Write the page, JUnit XML and the file for programs."""
    changes = found.pairs.changes()
    parts = [table(found.sides, changes)]
    parts += [_drawn(each, found) for each in changes if each.apart is not None]
    for line in found.unfair():
        parts.append(f"<p class=unfair>Unfair: {html.escape(line)}</p>")
    text = page(found.experiment, headline(found), found.verdict, "".join(parts))
    with os_errors_explained(directory):
        directory.mkdir(parents=True, exist_ok=True)
        files.write(directory / PAGE, text)
        files.write(directory / JUNIT, checks.junit(suite(found), checks_of(found)))
        files.write(directory / DATA, json.dumps(_data(found, changes), indent=1) + "\n")


def _data(found: Comparison, changes: Sequence[MeasureChange]) -> dict[str, object]:
    def known(value: float | None) -> float | None:
        return value if value is not None and math.isfinite(value) else None

    return {
        "experiment": found.experiment,
        "sides": list(found.sides),
        "verdict": found.verdict,
        "incomplete": found.incomplete,
        "runs": [[report.metadata.run_id for report in pair] for pair in found.reports],
        "measures": {
            each.measure: {
                "a": each.before,
                "b": each.after,
                "difference": known(each.apart),
                "low": known(each.low),
                "high": known(each.high),
                "byFactor": each.by_factor,
                "verdict": each.verdict,
            }
            for each in changes
        },
    }


def _drawn(change: MeasureChange, found: Comparison) -> str:
    """The difference of each pair in the order in which they ran, with the interval of all, as SVG."""
    apart = found.pairs.differences(change.measure)
    ends = [each for each in (change.low, change.high) if math.isfinite(each)]
    least, most = min([0.0, *apart, *ends]), max([0.0, *apart, *ends])
    room = (most - least) or 1.0

    def down(value: float) -> str:
        return f"{_EDGE + (most - value) / room * (_HIGH - 2 * _EDGE):.1f}"

    across = (_WIDE - 2 * _EDGE) / max(len(apart), 1)
    dots = "".join(
        f'<circle cx="{_EDGE + across * (number + 0.5):.1f}" cy="{down(value)}" r="4"/>'
        for number, value in enumerate(apart)
    )
    band, banded = "", ""
    if len(ends) == len((change.low, change.high)):
        height = float(down(change.low)) - float(down(change.high))
        where = f'x="0" y="{down(change.high)}" width="{_WIDE}" height="{height:.1f}"'
        band, banded = f'<rect class="{style(change.verdict)}" {where}/>', "; the band is the interval of all"
    labels = "".join(
        f'<span style="top:{100 * float(down(value)) / _HIGH:.0f}%">{change.signed(value) if value else "0"}</span>'
        # An end next to 0 would lie on it.
        for value in sorted({least, most, 0.0})
        if not value or abs(value) > _APART * room
    )
    return (
        f"<figure><figcaption>{html.escape(change.measure)}: the difference in each pair, in the order in which they "
        f"ran{banded}</figcaption><div class=plot>{labels}"
        f'<svg viewBox="0 0 {_WIDE} {_HIGH}" role="img" aria-label="{html.escape(str(change))}">{band}'
        f'<line x1="0" x2="{_WIDE}" y1="{down(0)}" y2="{down(0)}"/>{dots}</svg></div></figure>'
    )
