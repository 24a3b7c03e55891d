"""A CSV file of any headings, named by `--columns`.

Columns, by their content: `arrival`, seconds of any epoch or a date; `duration`, seconds; `workers`; `cpu`, CPUs of a
worker, such as 4 or 500m; `memory`, a quantity such as 16Gi, or bytes, or a number in the unit that is written behind
the heading, as `memory=mem_gb:Gi`; `gpus` of a worker, where 0.5 is half of one;
`gpuModels`, `A|B`; `priority`, a whole number; `user`; `qos`; `name`. Only `arrival` has to be there. A column whose
heading is one of these words need not be named.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.trace import MOST_GPUS
from kumulus.extras.lab.file.workload import MOST_WORKERS
from kumulus.extras.lab.policies.nodes import WHOLE_GPU
from kumulus.extras.lab.traces.reading import BadRow, TraceNotes, TraceRow, headings, lacks, made, refuse, rows
from kumulus.extras.lab.traces.task import Format, TraceContents, TraceTask, exactly
from kumulus.model.names import suggest
from kumulus.model.quantity import NANO, QuantityError, parse

COLUMNS = (
    "arrival", "duration", "workers", "cpu", "memory", "gpus", "gpuModels", "priority", "user", "qos", "name",
)  # fmt: skip
_UNITS = ("B", "Ki", "Mi", "Gi", "Ti", "k", "M", "G", "T")


def read(files: Sequence[Path], notes: TraceNotes, named: Mapping[str, str]) -> TraceContents:
    """Read the one file."""
    exactly(files, 1, 1, "one CSV file")
    for key in named:
        if key not in COLUMNS:
            near = suggest(key, COLUMNS)
            raise LabError(f"--columns has no {key}: {f'did you mean {near}?' if near else ', '.join(COLUMNS)}")
    there, wrong = headings(files[0]), list[str]()
    columns = {key: key for key in COLUMNS if key in there} | dict(named)
    unit = ""
    if (memory := columns.get("memory", "")) not in there and ":" in memory:
        columns["memory"], _, unit = memory.rpartition(":")
        if unit not in _UNITS:
            wrong.append(f"--columns memory={memory}: {unit!r} is no unit; write one of {', '.join(_UNITS)}")
    if "arrival" not in columns:
        remedy = f"write --columns arrival=HEADING; it has {', '.join(there[:12])}"
        wrong.append(f"{files[0]} has no column arrival: {remedy}")
    refuse([*wrong, *lacks(files[0], columns.values(), there)])
    notes.unused = [heading for heading in there if heading not in columns.values()]
    found = rows(files[0], notes, list(columns.values()))
    return TraceContents([], made(found, lambda row: _task(row, columns, unit), files[0], notes))


FORMAT = Format("csv", "FILE.csv", "a CSV file of any headings, named by --columns", "docs/traces.md", read)


def _task(row: TraceRow, columns: Mapping[str, str], unit: str) -> TraceTask:
    def cell(key: str) -> str:
        return row.text(columns[key]) if key in columns else ""

    asked = row.number(columns["gpus"], 0, MOST_GPUS, 0.0) if cell("gpus") else 0.0
    if asked > 1 and asked != int(asked):
        raise BadRow(f"{columns['gpus']} is {asked:g}; only a part of a single GPU can be asked for")
    share = WHOLE_GPU if asked >= 1 else round(asked * WHOLE_GPU)
    return TraceTask(
        name=cell("name") or f"job-{row.line}",
        arrival=row.time(columns["arrival"]),
        duration=row.number(columns["duration"]) if cell("duration") else None,
        workers=row.whole(columns["workers"], 1, MOST_WORKERS, 1) if cell("workers") else 1,
        cpu=_amount(cell("cpu"), NANO // 1000) if cell("cpu") else 0,
        memory=_amount(cell("memory") + unit.removesuffix("B"), NANO * 2**20) if cell("memory") else 0,
        gpus=max(1, int(asked)) if share else 0,
        gpu_milli=share,
        models=tuple(model for model in cell("gpuModels").split("|") if model),
        priority=row.whole(columns["priority"], -(10**9)) if cell("priority") else None,
        user=cell("user"),
        qos=cell("qos"),
    )


@lru_cache(maxsize=4096)
def _amount(written: str, unit: int) -> int:
    try:
        nanos = parse(written).nanos
    except QuantityError as error:
        raise BadRow(f"{written} {error}") from None
    if nanos < 0:
        raise BadRow(f"{written} is below 0")
    return -(-nanos // unit)
