"""Changes of measures as HTML: better, worse or not decided, in colour, each with its difference and its interval."""

from __future__ import annotations

import html
from collections.abc import Sequence

from kumulus.extras.lab.file.measures import MEANINGS
from kumulus.extras.lab.report.change import Change, judged

# Colours are not the only sign: each verdict is a word, too.
STYLE = """
:root{color-scheme:light dark;--line:#8884;--better:light-dark(#2f6d23,#7fc26f);--worse:light-dark(#a93226,#f08a7e);
--open:light-dark(#8a5a0b,#e0b050)}
.changes{overflow-x:auto}.changes table{border-collapse:collapse;margin:.5rem 0 1rem}
.changes th,.changes td{padding:.3rem .7rem;text-align:left;border-bottom:1px solid var(--line);vertical-align:top}
.changes td{font-variant-numeric:tabular-nums;white-space:nowrap}.changes th{font-weight:600}
.changes small{display:block;font-weight:400;opacity:.75;max-width:22rem;white-space:normal}
.better{color:var(--better)}.worse{color:var(--worse)}.undecided,.incomplete{color:var(--open)}
td.verdict{font-weight:600}
"""
_PAGE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:64rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.3rem;margin:0}p.verdict{font-size:1.15rem;font-weight:600;margin:.3rem 0 1rem}
figure{margin:1rem 0}figcaption{font-size:.85rem;opacity:.8}svg{width:100%;height:auto;display:block}
circle{fill:currentColor;fill-opacity:.7}line{stroke:currentColor;stroke-dasharray:4 4;stroke-opacity:.6}
rect{fill:currentColor;fill-opacity:.15}.unfair{color:var(--open)}
"""


def table(names: Sequence[str], changes: Sequence[Change]) -> str:
    """The changes as a table.

    Args:
        names: what the two are called.
        changes: of their measures.
    """
    heads = "".join(f"<th>{html.escape(each)}</th>" for each in ("", "verdict", "difference", "interval", *names))
    rows = "".join(map(_row, changes))
    return f"<div class=changes><table><tr>{heads}</tr>{rows}</table></div>"


def _row(change: Change) -> str:
    values = "".join(f"<td>{html.escape(each)}</td>" for each in change.values)
    apart = change.apart if change.apart and change.verdict != "alike" else 0.0
    towards = judged(change.measure, (apart > 0) - (apart < 0)) if apart else ""
    return (
        f"<tr><th>{html.escape(change.measure)}<small>{html.escape(MEANINGS[change.measure])}</small></th>"
        f'<td class="verdict {style(change.verdict)}">{change.verdict}<small>{html.escape(change.note)}</small></td>'
        f'<td class="{style(towards)}">{html.escape(change.amount)}</td><td>{html.escape(change.interval or "–")}</td>'
        f"{values}</tr>"
    )


def page(title: str, headline: str, verdict: str, body: str) -> str:
    """A page that needs nothing but itself, with its verdict on top."""
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}: {html.escape(verdict)}</title><style>{STYLE}{_PAGE}</style>"
    )
    top = f'<h1>{html.escape(title)}</h1><p class="verdict {style(verdict)}">{html.escape(headline)}</p>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{top}{body}</body></html>\n'


def style(verdict: str) -> str:
    """The class of a verdict's colour."""
    return "undecided" if verdict == "not decided" else verdict
