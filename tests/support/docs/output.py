"""Whether a command wrote what the page says it writes.

A printed line stands for itself, except for parts that differ between runs:

- ``…`` stands for anything in a line, and alone in a line for any number of lines;
- durations (``0.12s``, ``3.0 s``, ``1m3s``), rates (``101/s``), times of day and dates, and amounts of MB and GB stand
  for others of their kind;
- blanks stand for any number of blanks, and blank lines for nothing.
"""

import re
from collections.abc import Sequence

ANY = "…"

# Each pattern with what it stands for; the first that matches at a place is used.
_PATTERNS = tuple(
    (re.compile(found), stands_for)
    for found, stands_for in (
        (r"\d{4}-\d\d-\d\d(T| )\d\d:\d\d:\d\dZ?", r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\dZ?"),
        (r"\b\d\d:\d\d:\d\d\b", r"\d\d:\d\d:\d\d"),
        (r"\b\d[\d,]*(\.\d+)?/s\b", r"\d[\d,]*(?:\.\d+)?/s"),
        (r"\b\d[\d,]*(\.\d+)? [MG]B\b", r"\d[\d,]*(?:\.\d+)? [KMG]B"),
        (r"(?<![\w.])(\d+(\.\d+)?[ ]?(ms|µs|s|m|h|d))+\b(?!/)", r"(?:\d+(?:\.\d+)?[ ]?(?:ms|µs|s|m|h|d))+"),
        (ANY, r".*"),
        (r"\s+", r"\s+"),
    )
)
# Lines that are written now and then: the progress of Pulumi and of an experiment where it takes a while, and kubectl's
# word that the watch which it has just ended has ended.
_NOW_AND_THEN = re.compile(
    r"^@ (updating|previewing|destroying|refreshing)\b.*\.\.\.\.+$|^the run is over; removing its pods: "
    r"|^[IW]\d{4} .* reflector\.go:.*context canceled"
)


def differences(printed: str, written: str, unordered: bool = False) -> list[str]:
    """The differences between a page's output and what was written.

    Args:
        unordered: whether lines may come in another order, as from parallel work.

    Returns:
        One sentence for the first difference found; none when they agree.
    """
    wanted, found = _lines(printed), [line for line in _lines(written) if not _NOW_AND_THEN.match(line.strip())]
    return _in_any_order(wanted, found) if unordered else _in_order(wanted, found)


def pattern(line: str) -> re.Pattern[str]:
    """The regular expression that a printed line stands for."""
    parts: list[str] = []
    place, text = 0, line.strip()
    while place < len(text):
        for known, stands_for in _PATTERNS:
            if match := known.match(text, place):
                parts.append(stands_for)
                place = match.end()
                break
        else:
            parts.append(re.escape(text[place]))
            place += 1
    return re.compile(r"\s*" + "".join(parts) + r"\s*")


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def _in_order(wanted: Sequence[str], found: Sequence[str]) -> list[str]:
    # The positions in `found` at which the lines of `wanted` so far can end.
    ends, gap = {0}, False
    for line in wanted:
        if line.strip() == ANY:
            gap = True
            continue
        expression = pattern(line)
        starts = range(min(ends), len(found)) if gap else sorted(ends)
        ends = {place + 1 for place in starts if place < len(found) and expression.fullmatch(found[place])}
        if not ends:
            near = [found[place] for place in starts if place < len(found)]
            instead = "the output ends there" if not near else f"there is {near[0].strip()!r}" if not gap else "missing"
            return [f"printed: {line.strip()!r}; {instead}"]
        gap = False
    if not gap and len(found) not in ends:
        return [f"not printed: {found[max(ends)].strip()!r}"]
    return []


def _in_any_order(wanted: Sequence[str], found: Sequence[str]) -> list[str]:
    rest, gap = list(found), False
    for line in wanted:
        if line.strip() == ANY:
            gap = True
            continue
        expression = pattern(line)
        hit = next((each for each in rest if expression.fullmatch(each)), None)
        if hit is None:
            return [f"printed, and nowhere in the output: {line.strip()!r}"]
        rest.remove(hit)
    return [] if gap or not rest else [f"not printed: {rest[0].strip()!r}"]
