"""Numbers of things, and lists of names, in messages."""

from __future__ import annotations

from collections.abc import Sequence


def counted(number: int, what: str) -> str:
    """A number of things: `1 node`, `2,550 nodes`.

    Args:
        number: how many.
        what: one of them, in the singular.
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def listed(names: Sequence[str], most: int, separator: str = ", ") -> str:
    """The first of several names, and how many more there are: `a, b and 2,548 more`.

    Args:
        names: all of them, in their order.
        most: how many to list.
        separator: what is between two.
    """
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return f"{separator.join(names[:most])}{more}"
