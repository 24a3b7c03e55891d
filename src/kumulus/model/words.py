"""Texts for people: numbers of things, lists of names, tables, parts of pages, and the description of a release."""

import re
from collections.abc import Sequence

MOST_NAMES = 5
"""How many names a message has, before it says how many more there are."""


def counted(number: int, what: str) -> str:
    """A number of things, named in the singular: `1 node`, `2,550 nodes`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def listed(names: Sequence[str], most: int = MOST_NAMES, separator: str = ", ") -> str:
    """The first of several names, and how many more there are: `a, b and 2,548 more`."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return f"{separator.join(names[:most])}{more}"


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells as a table for the terminal, a line for each; all have the same number of cells."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def with_part(page: str, name: str, part: str) -> str:
    """A page with another text between the comments `<!-- NAME: begin -->` and `<!-- NAME: end -->`."""
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"
    head, rest = page.split(begin)
    _, tail = rest.split(end)
    return head + begin + part + end + tail


def repairs_text(times: int) -> str:
    """A Helm release's description: how many times it was repaired. Its change makes Pulumi update the release.

    Not to be reworded: it is read back from releases that exist.
    """
    return f"repaired {times} times" if times else ""


def repairs_in(description: str) -> int:
    """How many times a Helm release was repaired, by its description."""
    found = re.fullmatch("repaired ([0-9]+) times", description)
    return int(found[1]) if found else 0
