"""Formatting of numbers, for both the text and the terminal. Pure functions."""

from __future__ import annotations

from kumulus.extras.watch.live.amounts import Amounts

RESOURCES = ("GPUs", "CPU", "memory", "pods")
"""The resources whose allocation is shown, in the order in which the terminal offers them."""

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def amount(resource: str, found: Amounts) -> int:
    """How much of a resource there is: pieces, thousandths of a core, or bytes.

    Args:
        resource: one of :data:`RESOURCES`.
        found: the amounts.
    """
    return {"GPUs": found.gpus, "CPU": found.cpu, "memory": found.memory, "pods": found.pods}[resource]


def written(resource: str, number: int) -> str:
    """An amount in a unit for people: 20,400 · 3,072 cores · 13.4 TiB."""
    if resource == "memory":
        size, unit = float(number), 0
        while size >= 1024 and unit < len(_UNITS) - 1:
            size, unit = size / 1024, unit + 1
        return f"{size:,.1f} {_UNITS[unit]}" if unit and size < 100 else f"{size:,.0f} {_UNITS[unit]}"
    if resource == "CPU":
        return f"{number / 1000:,.0f}"
    return f"{number:,}"


def percent(part: int, whole: int) -> str:
    """A part of a whole: 64 %; never 0 % for more than nothing or 100 % for less than all; – if the whole is 0."""
    if not whole:
        return "–"
    found = round(100 * part / whole)
    if part and not found:
        return "<1 %"
    if found == 100 and part < whole:
        return ">99 %"
    return f"{found} %"


def bar(part: int, whole: int, width: int) -> str:
    """A bar of the given width in characters, filled to an eighth of a character."""
    eighths = min(8 * width, round(8 * width * part / whole)) if whole else 0
    if part and whole and not eighths:
        eighths = 1
    full, rest = divmod(eighths, 8)
    return ("█" * full + (_EIGHTHS[rest] if rest else "")).ljust(width)
