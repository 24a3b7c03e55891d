"""A recorded trace as jobs: when each arrives, how many workers it has, how long it runs."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from kumulus.lab.file.arrival import Columns, Trace
from kumulus.lab.file.fields import MOST_JOBS
from kumulus.lab.file.workload import MOST_WORKERS
from kumulus.model.errors import Problem, SpecError, shown
from kumulus.model.names import suggest

_MOST_PROBLEMS = 10


@dataclass(frozen=True)
class TraceJob:
    """One job of a trace.

    Args:
        arrival: seconds after the first.
        size: workers; None for the workload's.
        duration: seconds; None for the workload's.
    """

    arrival: float
    size: int | None
    duration: float | None


def trace_jobs(text: str, trace: Trace, source: str) -> list[TraceJob]:
    """The jobs of a CSV text, in the order of their arrival.

    Args:
        text: with a heading.
        trace: which columns count, and how fast it is played.
        source: the file, for errors.

    Raises:
        SpecError: a column is missing, or a line has no number where one is needed; ten of these at most.
    """
    reader = csv.DictReader(io.StringIO(text))
    try:
        headings = [heading.strip() for heading in reader.fieldnames or ()]
        reader.fieldnames = headings
        columns = _columns(trace.columns, headings, source)
        problems: list[Problem] = []
        rows = []
        for line, row in enumerate(reader, start=2):
            found = _row(row, columns, line, problems)
            if found is not None:
                rows.append(found)
            if len(problems) >= _MOST_PROBLEMS:
                break
    except csv.Error as error:
        raise SpecError([Problem("", f"is no CSV: {error}")], source) from None
    if not problems and not rows:
        problems.append(Problem("", "has no jobs", "write a line for each below the heading"))
    if problems:
        raise SpecError(problems, source)
    rows.sort(key=lambda job: job.arrival)
    return list(_at_speed(rows[: trace.limit or MOST_JOBS], trace.speed))


def _at_speed(rows: list[TraceJob], speed: float) -> Iterator[TraceJob]:
    first = rows[0].arrival
    for job in rows:
        length = None if job.duration is None else job.duration / speed
        yield TraceJob((job.arrival - first) / speed, job.size, length)


def _columns(columns: Columns, headings: list[str], source: str) -> Columns:
    """The columns that are there: size and duration may be missing under their usual names."""
    missing = []
    for name in ("arrival", "size", "duration"):
        heading = getattr(columns, name)
        if heading and heading not in headings and (name == "arrival" or name in columns.model_fields_set):
            near = suggest(heading, headings)
            remedy = f"write {name}: {near or ' or '.join(headings[:8]) or '…'} in arrival.trace.columns"
            missing.append(Problem("", f"has no column {shown(heading)}", remedy))
    if missing:
        raise SpecError(missing, source)
    there = {
        name: getattr(columns, name) if getattr(columns, name) in headings else "" for name in ("size", "duration")
    }
    return columns.model_copy(update=there)


def _row(row: dict[str, str], columns: Columns, line: int, problems: list[Problem]) -> TraceJob | None:
    def number(heading: str, least: float, most: float) -> float | None:
        written = (row.get(heading) or "").strip()
        value = _number(written)
        if value is not None and least <= value <= most:
            return value
        problems.append(
            Problem(f"line {line}, {heading}", f"is {shown(written)}", f"write a number from {least:g} to {most:g}")
        )
        return None

    before = len(problems)
    arrival = number(columns.arrival, -1e12, 1e12)
    size = number(columns.size, 1, MOST_WORKERS) if columns.size else None
    duration = number(columns.duration, 0, 366 * 86_400) if columns.duration else None
    if len(problems) > before or arrival is None:
        return None
    return TraceJob(arrival, None if size is None else math.ceil(size), duration)


def _number(written: str) -> float | None:
    try:
        value = float(written)
    except ValueError:
        try:
            date = datetime.fromisoformat(written)
        except ValueError:
            return None
        value = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    return value if math.isfinite(value) else None
