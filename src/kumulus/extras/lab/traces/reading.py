"""Rows of a trace's files, one at a time; bad rows are counted and recorded by line."""

import csv
import gzip
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO, TypeVar

from kumulus.extras.lab.errors import LabError
from kumulus.model.durations import moment
from kumulus.model.errors import shown
from kumulus.model.names import suggest

In = TypeVar("In")
Out = TypeVar("Out")

LATEST = 1e12
"""Seconds; a later time is a mistake, such as one in milliseconds with too many digits."""


class BadRow(Exception):
    """A row that cannot be a task; the message says why."""


@dataclass
class TraceNotes:
    """What was found wrong, or could not be represented, while a trace was read."""

    on_bad: Callable[[str, int, str], None]
    """Takes each bad row: file, line and why."""
    bad: int = 0
    rows: int = 0
    """How many rows were read, bad ones included."""
    left_out: Counter[str] = field(default_factory=Counter)
    """What could not be represented of good rows, with the number of such rows."""
    unused: list[str] = field(default_factory=list)
    """The headings of columns that are not read, of a format whose columns the user names."""

    def reject(self, file: Path, line: int, why: str) -> None:
        """Count a bad row and record it."""
        self.bad += 1
        self.on_bad(file.name, line, why)


class TraceRow:
    """A row of a table, with its cells converted to what they have to be.

    Args:
        cells: by their headings.
        line: of the file; 0 for what is no line of it.
    """

    __slots__ = ("_cells", "line")

    def __init__(self, cells: Mapping[str, str | None], line: int = 0) -> None:
        self._cells, self.line = cells, line

    def text(self, heading: str) -> str:
        """A cell's text; empty where there is none."""
        return (self._cells.get(heading) or "").strip()

    def number(self, heading: str, least: float = 0.0, most: float = LATEST, missing: float | None = None) -> float:
        """A cell's number.

        Args:
            missing: what an empty cell stands for; None where it may not be empty.

        Raises:
            BadRow: it is not a number, or out of range.
        """
        written = self.text(heading)
        if not written and missing is not None:
            return missing
        try:
            value = float(written)
        except ValueError:
            raise BadRow(f"{heading} is {shown(written)}, not a number") from None
        if not least <= value <= most:
            raise BadRow(f"{heading} is {written}, not from {least:g} to {most:g}")
        return value

    def whole(self, heading: str, least: int = 0, most: int = 10**9, missing: int | None = None) -> int:
        """A cell's whole number; arguments as of :meth:`number`.

        Raises:
            BadRow: it is not a whole number, or out of bounds.
        """
        value = self.number(heading, least, most, missing)
        if value != int(value):
            raise BadRow(f"{heading} is {value:g}, not a whole number")
        return int(value)

    def time(self, heading: str) -> float:
        """A cell's time in seconds: a number, or a date, taken as UTC where it names no zone.

        Raises:
            BadRow: it is neither.
        """
        written = self.text(heading)
        if (value := seconds(written)) is None:
            raise BadRow(f"{heading} is {shown(written)}, neither a number of seconds nor a date")
        return value

    def time_if_any(self, heading: str) -> float | None:
        """A cell's time; None where it is empty."""
        return self.time(heading) if self.text(heading) else None


def seconds(written: str) -> float | None:
    """A time in seconds from a number or a date; None where it is neither."""
    value = moment(written)
    return value if value is not None and abs(value) <= LATEST else None


@contextmanager
def opened(file: Path) -> Iterator[TextIO]:
    """Open a file as text, decompressed if it is a gzip file."""
    try:
        if file.suffix == ".gz":
            with gzip.open(file, "rt", encoding="utf-8-sig", errors="replace", newline="") as text:
                yield text
        else:
            with file.open(encoding="utf-8-sig", errors="replace", newline="") as text:
                yield text
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise LabError(f"{file} cannot be read: it is damaged, or no gzip file: {error}") from None
    except OSError as error:
        raise LabError(f"{file} cannot be read: {error.strerror}") from None


def headings(file: Path) -> list[str]:
    """The headings of a table."""
    for _, cells in _records(file):
        return [each.strip() for each in cells]
    raise LabError(f"{file} is empty\n  Name a file with a heading and a line for each row")


def rows(
    file: Path, notes: TraceNotes, needed: Sequence[str], named: Sequence[str] = ()
) -> Iterator[tuple[int, TraceRow]]:
    """The rows of a CSV file, with their lines.

    Args:
        notes: takes rows whose number of cells is wrong.
        needed: headings that have to be there.
        named: the headings, for a file that has none of its own.
    """
    found = list(named) or headings(file)
    refuse([*lacks(file, needed, found)])
    for place, (line, cells) in enumerate(_records(file)):
        if not place and not named:
            continue
        notes.rows += 1
        if len(cells) != len(found):
            notes.reject(file, line, f"has {len(cells)} cells, not {len(found)}")
            continue
        yield line, TraceRow(dict(zip(found, cells, strict=True)), line)


def lacks(file: Path, needed: Iterable[str], found: Sequence[str]) -> Iterator[str]:
    """Each heading that has to be in a file and is not, with what it may mean."""
    for heading in needed:
        if heading not in found:
            near = suggest(heading, found)
            remedy = f"did you mean {near}?" if near else f"it has {', '.join(found[:12])}"
            yield f"{file} has no column {heading}: {remedy}"


def refuse(wrong: Sequence[str]) -> None:
    """Refuse a file for all that is wrong with it at once, if anything is."""
    if wrong:
        raise LabError("\n  ".join(wrong))


def made(items: Iterable[tuple[int, In]], make: Callable[[In], Out], file: Path, notes: TraceNotes) -> Iterator[Out]:
    """What the items of a file stand for; those that cannot stand for it are counted and recorded.

    Args:
        items: each with its line.
        make: raises :class:`BadRow` where an item cannot be it.
    """
    for line, item in items:
        try:
            yield make(item)
        except BadRow as error:
            notes.reject(file, line, str(error))


def _records(file: Path) -> Iterator[tuple[int, list[str]]]:
    """The lines of a CSV file that are not blank, the heading included, with their numbers."""
    with opened(file) as text:
        reader = csv.reader(text)
        try:
            for cells in reader:
                if cells:
                    yield reader.line_num, cells
        except csv.Error as error:
            raise LabError(f"{file}, line {reader.line_num}: is no CSV: {error}") from None
