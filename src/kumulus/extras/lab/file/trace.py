"""A recorded trace as jobs: when each arrives, how many workers it has, how long it runs."""

from __future__ import annotations

import csv
import heapq
import math
from array import array
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from typing import TextIO

from kumulus.extras.lab.file.fields import MOST_JOBS
from kumulus.extras.lab.file.workload import MOST_WORKERS, Trace, TraceColumns
from kumulus.model.durations import LONGEST_S, moment
from kumulus.model.errors import Problem, SpecError, shown
from kumulus.model.names import suggest
from kumulus.model.quantity import NANO, QuantityError, parse

_MOST_PROBLEMS = 10
MOST_GPUS = 1024
"""GPUs of a worker."""
ASKED = ("name", "cpu", "memory", "gpus", "gpuMilli", "gpuModels", "priority", "user", "qos")
"""Columns that say what a job's workers ask for, and its user."""


@dataclass(frozen=True)
class WorkerRequests:
    """What each worker of a job asks for, where the trace says so."""

    name: str = ""
    cpu: int = 0
    """Milli-CPU."""
    memory: int = 0
    """MiB."""
    gpus: int = 0
    gpu_milli: int = 0
    """Milli-GPU of each of them."""
    models: frozenset[str] = frozenset()
    """GPU models that it may run on; none named means any."""
    priority: int | None = None
    """Larger goes first; None where the trace does not say."""
    user: str = ""
    qos: str = ""
    """The trace's word for the quality of service."""


@dataclass(frozen=True)
class TraceJob:
    """One job of a trace."""

    arrival: float
    """Seconds after the first."""
    size: int | None
    """Workers; None for the workload's."""
    duration: float | None
    """Seconds; None for the workload's, or for no end."""
    asked: WorkerRequests | None = None
    """What its workers ask for; None for the workload's `requests`."""


def trace_jobs(opened: Callable[[], TextIO], trace: Trace, source: str, kept: TextIO | None = None) -> list[TraceJob]:
    """The jobs of a CSV text, in the order of their arrival.

    The text is read twice, first for the arrivals, then for the jobs of the window. Nothing is kept of jobs outside it,
    and only their arrivals have to be valid.

    Args:
        opened: opens the text, which has a heading.
        trace: which columns count, and how fast it is replayed.
        source: the file, for errors.
        kept: takes the heading and the lines that are replayed.

    Raises:
        SpecError: a column is missing, or lines have no number where one is needed; ten at most are named.
        UnicodeDecodeError: it is not UTF-8.
    """
    try:
        with opened() as text:
            chosen = _chosen(_arrivals(text, trace, source), trace, source)
        with opened() as text:
            rows = _rows(text, chosen, trace, source, kept)
    except csv.Error as error:
        raise SpecError([Problem("", f"is no CSV: {error}")], source) from None
    rows.sort(key=lambda job: job.arrival)
    return list(_at_speed(rows, trace))


def _arrivals(text: TextIO, trace: Trace, source: str) -> array[float]:
    reader, columns = _reader(text, trace, source)
    problems: list[Problem] = []
    found = array("d")
    for row in reader:
        found.append(_arrival(row, columns, reader.line_num, problems) or 0.0)
        if len(problems) >= _MOST_PROBLEMS:
            break
    if not problems and not found:
        problems.append(Problem("", "has no jobs", "write a line for each below the heading"))
    # If all lines are replayed, problems of their arrivals are reported later, with all other problems.
    if problems and (not found or trace.window is not None or trace.limit is not None):
        raise SpecError(problems, source)
    return found


def _chosen(arrivals: array[float], trace: Trace, source: str) -> set[int]:
    """The rows of the window, or those that arrive first up to the limit, by their places in the text."""
    first, window = min(arrivals), trace.window
    places: Sequence[int] = range(len(arrivals))
    if window is not None:
        places = [place for place in places if window.from_ <= arrivals[place] - first < window.to]
    if not places:
        raise SpecError([Problem("", "has no jobs in its window", "write another arrival.trace.window")], source)
    if trace.limit is not None:
        places = heapq.nsmallest(trace.limit, places, key=lambda place: (arrivals[place], place))
    if len(places) > MOST_JOBS:
        remedy = "write arrival.trace.limit or window"
        raise SpecError([Problem("", f"has {len(places):,} jobs, more than {MOST_JOBS:,}", remedy)], source)
    return set(places)


def _rows(text: TextIO, chosen: Container[int], trace: Trace, source: str, kept: TextIO | None) -> list[TraceJob]:
    reader, columns = _reader(text, trace, source)
    copy = csv.DictWriter(kept, reader.fieldnames or (), restval="", extrasaction="ignore") if kept else None
    if copy is not None:
        copy.writeheader()
    problems: list[Problem] = []
    rows = []
    for place, row in enumerate(reader):
        if place not in chosen:
            continue
        found = _row(row, columns, reader.line_num, problems)
        if found is not None:
            rows.append(found)
        if len(problems) >= _MOST_PROBLEMS:
            break
        if copy is not None:
            copy.writerow(row)
    if problems:
        raise SpecError(problems, source)
    return rows


def _reader(text: TextIO, trace: Trace, source: str) -> tuple[csv.DictReader[str], TraceColumns]:
    reader = csv.DictReader(text)
    headings = [heading.strip() for heading in reader.fieldnames or ()]
    reader.fieldnames = headings
    return reader, _columns(trace.columns, headings, source)


def _at_speed(rows: list[TraceJob], trace: Trace) -> Iterator[TraceJob]:
    first = rows[0].arrival
    for job in rows:
        length = None if job.duration is None or trace.stay else job.duration / trace.speed
        yield TraceJob((job.arrival - first) / trace.speed, job.size, length, job.asked)


def _columns(columns: TraceColumns, headings: list[str], source: str) -> TraceColumns:
    """The columns that exist: size and duration may be missing if they have their default headings."""
    missing = []
    for name in ("arrival", "size", "duration", *ASKED):
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


def _row(row: dict[str, str], columns: TraceColumns, line: int, problems: list[Problem]) -> TraceJob | None:
    before = len(problems)
    arrival = _arrival(row, columns, line, problems)
    size = _between(row, columns.size, 1, MOST_WORKERS, line, problems) if columns.size else None
    # In a trace of tasks, which has a CPU column, the duration may be empty.
    has_duration = columns.duration and (not columns.cpu or (row.get(columns.duration) or "").strip())
    duration = _between(row, columns.duration, 0, LONGEST_S, line, problems) if has_duration else None
    asked = _asked(row, columns, line, problems) if any(getattr(columns, name) for name in ASKED) else None
    if len(problems) > before or arrival is None:
        return None
    return TraceJob(arrival, None if size is None else math.ceil(size), duration, asked)


def _arrival(row: dict[str, str], columns: TraceColumns, line: int, problems: list[Problem]) -> float | None:
    return _between(row, columns.arrival, -1e12, 1e12, line, problems)


def _between(
    row: dict[str, str], heading: str, least: float, most: float, line: int, problems: list[Problem]
) -> float | None:
    written = (row.get(heading) or "").strip()
    value = moment(written)
    if value is not None and least <= value <= most:
        return value
    remedy = f"write a number from {least:g} to {most:g}"
    problems.append(Problem(f"line {line}, {heading}", f"is {shown(written)}", remedy))
    return None


def _asked(row: dict[str, str], columns: TraceColumns, line: int, problems: list[Problem]) -> WorkerRequests | None:
    def cell(name: str) -> str:
        heading = getattr(columns, name)
        return (row.get(heading) or "").strip() if heading else ""

    def whole(name: str, written: str, least: int, most: int) -> int:
        try:
            value = int(written)
        except ValueError:
            value = most + 1
        if not least <= value <= most:
            remedy = f"write a whole number from {least} to {most}"
            problems.append(Problem(f"line {line}, {getattr(columns, name)}", f"is {shown(written)}", remedy))
        return value

    def amount(name: str, unit: int) -> int:
        try:
            return -(-parse(cell(name) or "0").nanos // unit)
        except QuantityError as error:
            problems.append(Problem(f"line {line}, {getattr(columns, name)}", str(error), "write 4, 500m or 16Gi"))
            return 0

    gpus = whole("gpus", cell("gpus") or "0", 0, MOST_GPUS)
    share = whole("gpuMilli", cell("gpuMilli") or "1000", 0, 1000) if gpus else 0
    if gpus > 1 and share != 1000:
        remedy = "write 1000; a part of a GPU is of a single one"
        problems.append(Problem(f"line {line}, {columns.gpuMilli}", f"is {share} of {gpus} GPUs", remedy))
    return WorkerRequests(
        name=cell("name"),
        cpu=amount("cpu", NANO // 1000),
        memory=amount("memory", NANO << 20),
        gpus=gpus,
        gpu_milli=share,
        models=frozenset(model for model in cell("gpuModels").split("|") if model) if gpus else frozenset(),
        priority=whole("priority", cell("priority"), -(10**9), 10**9) if cell("priority") else None,
        user=cell("user"),
        qos=cell("qos"),
    )
