"""SWF: the Standard Workload Format of the Parallel Workloads Archive.

Source: "The Standard Workload Format", version 2.2, Feitelson et al., on the archive's pages.

Lines that start with `;` are comments; every other line has 18 numbers, -1 where one is not known. Used are 1 the job's
number; 2 submit time, seconds; 4 run time, seconds; 5 processors it got; 8 processors it asked for; 10 memory it asked
for, KB of each processor; 12 the user; 15 the queue. A processor is taken as a CPU; there are no GPUs. The others, such
as 3 wait time and 11 status, describe the outcome of the job and are not needed.
"""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from kumulus.extras.lab.traces.reading import LATEST, BadRow, TraceNotes, made, opened
from kumulus.extras.lab.traces.task import Format, TraceTask, one_file
from kumulus.model.errors import shown

_FIELDS = 18
_NUMBER, _SUBMITTED, _RAN, _GOT, _ASKED, _MEMORY, _USER, _QUEUE = 0, 1, 3, 4, 7, 9, 11, 14


def _tasks(file: Path, notes: TraceNotes) -> Iterator[TraceTask]:
    return made(_lines(file, notes), lambda cells: _task(cells, notes), file, notes)


def _lines(file: Path, notes: TraceNotes) -> Iterator[tuple[int, list[str]]]:
    with opened(file) as text:
        for line, written in enumerate(text, start=1):
            cells = written.split()
            if cells and not cells[0].startswith(";"):
                notes.rows += 1
                yield line, cells


def _task(cells: Sequence[str], notes: TraceNotes) -> TraceTask:
    if len(cells) != _FIELDS:
        raise BadRow(f"has {len(cells)} fields, not {_FIELDS}")
    values = [_number(cell) for cell in cells]
    processors = int(values[_ASKED] if values[_ASKED] > 0 else values[_GOT])
    if processors < 1:
        raise BadRow("asks for no processors and got none")
    if values[_SUBMITTED] < 0:
        raise BadRow("has no submit time")
    if values[_RAN] < 0:
        notes.left_out["has no run time: its duration is not known"] += 1
    memory = max(0.0, values[_MEMORY])
    if processors > 1:
        notes.left_out["has several processors: a worker of one CPU for each"] += 1
    queue, user = int(values[_QUEUE]), int(values[_USER])
    return TraceTask(
        name=f"job-{int(values[_NUMBER])}",
        arrival=values[_SUBMITTED],
        duration=values[_RAN] if values[_RAN] >= 0 else None,
        workers=processors,
        cpu=1000,
        memory=-(-int(memory) // 1024),
        user=f"queue-{queue}" if queue >= 0 else f"user-{user}" if user >= 0 else "",
    )


def _number(cell: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    # Also false of nan.
    if not abs(value) <= LATEST:
        raise BadRow(f"has {shown(cell)}, not a number up to {LATEST:g}")
    return value


FORMAT = Format(
    "swf", "FILE.swf", "the Standard Workload Format of the Parallel Workloads Archive",
    "https://www.cs.huji.ac.il/labs/parallel/workload/swf.html",
    one_file("one .swf file", _tasks),
)  # fmt: skip
