"""What became of a measure between two: how much it differs, how exactly that is known, and whether it is better."""

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from kumulus.extras.lab.file.amount import shown, signed
from kumulus.extras.lab.file.measures import BETTER, MEANINGS, UNITS

Verdict = Literal["better", "worse", "alike", "not decided"]

# Shares of 1 and whole numbers may well be 0: their differences are amounts.
_BY_AMOUNT = ("share", "count")
# Colours are not the only sign: each verdict is a word, too.
STYLE = """
:root{color-scheme:light dark;--line:#8884;--better:light-dark(#2f6d23,#7fc26f);--worse:light-dark(#a93226,#f08a7e);
--open:light-dark(#8a5a0b,#e0b050)}
.changes{overflow-x:auto}.changes table{border-collapse:collapse;margin:.5rem 0 1rem}
.changes th,.changes td{padding:.3rem .7rem;text-align:left;border-bottom:1px solid var(--line);vertical-align:top}
.changes td{font-variant-numeric:tabular-nums;white-space:nowrap}.changes th{font-weight:600}
.changes small{display:block;font-weight:400;color:light-dark(#595959,#aaa);max-width:22rem;white-space:normal}
.better{color:var(--better)}.worse{color:var(--worse)}.undecided,.incomplete{color:var(--open)}
td.verdict{font-weight:600}
@media(max-width:520px){.changes :is(table,tbody,tr,th,td){display:block}.changes tr:first-child{display:none}
.changes tr{border-bottom:1px solid var(--line);padding:.4rem 0}.changes :is(th,td){border:0;padding:.1rem 0}
.changes td[data-of]::before{content:attr(data-of) ": ";font-weight:400}}
"""
_PAGE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:64rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.3rem;margin:0}p.verdict{font-size:1.15rem;font-weight:600;margin:.3rem 0 1rem}
figure{margin:1rem 0}figcaption{font-size:.85rem;opacity:.8}svg{width:100%;height:auto;display:block}
circle{fill:currentColor;fill-opacity:.7}line{stroke:currentColor;stroke-dasharray:4 4;stroke-opacity:.6}
rect{fill:currentColor;fill-opacity:.15}.plot{position:relative;margin-top:.6rem;padding-left:5.5rem}
.plot span{position:absolute;left:0;transform:translateY(-50%);font-size:.8rem}.unfair{color:var(--open)}
"""


@dataclass(frozen=True)
class MeasureChange:
    """A measure of two.

    Args:
        before, after: its values, in the middle; None where it was not measured.
        by_factor: whether the difference is a part of the value before, or an amount in the measure's unit.
        apart: the difference; None where there is none.
        low, high: the interval of it; infinite where little is known.
    """

    measure: str
    before: float | None
    after: float | None
    by_factor: bool
    apart: float | None
    low: float
    high: float
    verdict: Verdict
    note: str

    @property
    def values(self) -> tuple[str, str]:
        """Both values, for people."""
        one, two = ("-" if each is None else shown(UNITS[self.measure], each) for each in (self.before, self.after))
        return one, two

    @property
    def amount(self) -> str:
        """The difference, for people: `+13.8 %`, `+1.2 points`, `-3`."""
        return "-" if self.apart is None else self.signed(self.apart)

    @property
    def interval(self) -> str:
        """Its interval, for people; empty where nothing is known of it."""
        ends = ["" if math.isinf(each) else self.signed(each) for each in (self.low, self.high)]
        if self.apart is None or not any(ends):
            return ""
        return " … ".join(ends) if all(ends) else f"{ends[0]} or more" if ends[0] else f"{ends[1]} or less"

    @property
    def found(self) -> str:
        """The difference with its interval and what it means, in words."""
        between = f" ({self.interval})" if self.interval else ""
        return f"{self.amount}{between}: {self.verdict}, {self.note}"

    def __str__(self) -> str:
        return f"{self.measure} {self.found}"

    def signed(self, value: float) -> str:
        """A difference of it, for people."""
        return f"{value:+.1%}".replace("%", " %") if self.by_factor else signed(UNITS[self.measure], value)


def by_factor(measure: str, values: Sequence[float]) -> bool:
    """Whether differences of such values are parts of them, as they are of times; a value of 0 has none."""
    return UNITS[measure] not in _BY_AMOUNT and min(values) > 0


def judged(measure: str, sign: int) -> Verdict:
    """What it means that a measure is larger (1), smaller (-1), or that this is not known (0).

    A measure of which neither more nor less is better is never decided.
    """
    if not sign or not BETTER[measure]:
        return "not decided"
    return "better" if (sign > 0) == (BETTER[measure] == "higher") else "worse"


def as_part(value: float) -> float:
    """A difference of logarithms as a part of the value before."""
    return math.expm1(min(value, 700.0)) if math.isfinite(value) else value


def table(names: Sequence[str], changes: Sequence[MeasureChange]) -> str:
    """The changes as a table."""
    heads = "".join(f"<th>{html.escape(each)}</th>" for each in ("", "verdict", "difference", "interval", *names))
    rows = "".join(_row(names, change) for change in changes)
    return f"<div class=changes><table><tr>{heads}</tr>{rows}</table></div>"


def _row(names: Sequence[str], change: MeasureChange) -> str:
    known = style(change.verdict)
    cells = [
        ("difference", change.amount),
        ("interval", change.interval or "–"),
        *zip(names, change.values, strict=True),
    ]
    found = "".join(f'<td data-of="{html.escape(of)}">{html.escape(each)}</td>' for of, each in cells)
    return (
        f"<tr><th>{html.escape(change.measure)}<small>{html.escape(MEANINGS[change.measure])}</small></th>"
        f'<td class="verdict {known}">{change.verdict}<small>{html.escape(change.note)}</small></td>{found}</tr>'
    )


def page(title: str, headline: str, verdict: str, body: str) -> str:
    """A page with its verdict on top."""
    top = f'<h1>{html.escape(title)}</h1><p class="verdict {style(verdict)}">{html.escape(headline)}</p>'
    return document(f"{title}: {verdict}", STYLE + _PAGE, top + body)


def document(title: str, css: str, body: str) -> str:
    """A page that needs nothing but itself."""
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{css}</style>"
    )
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{body}</body></html>\n'


def style(verdict: str) -> str:
    """The class of a verdict's colour."""
    return "undecided" if verdict == "not decided" else verdict
