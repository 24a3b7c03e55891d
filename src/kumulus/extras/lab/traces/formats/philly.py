"""Philly: Microsoft's cluster_job_log, a JSON array of jobs, and its cluster_machine_list.

Source: msr-fiddle/philly-traces, README.md; the trace of Jeon et al., USENIX ATC 2019. CC-BY-4.0.

A job: `jobid`; `vc`, its virtual cluster; `user`; `status`; `submitted_time`, a date without a zone; `attempts`, each
with `start_time`, `end_time` (dates, or null where they are not known) and `detail`, a list of servers: `ip`, `gpus`.
Machine list: `machineId`, `number of GPUs`, `single GPU mem`, such as 24GB. CPU and memory are in neither file.

And as adaptdl reduced it, one CSV line for each job (petuum/adaptdl, branch osdi21-artifact,
simulator/traces/philly.csv; Qiao et al., OSDI 2021): `timestamp`, when it was submitted, a date; `duration` in seconds;
`num_gpus`; `gpu_time`, GPU-seconds, which follows from these; `cluster`, the virtual cluster.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.offline.placing import EmptyNode
from kumulus.extras.lab.policies.nodes import WHOLE_GPU
from kumulus.extras.lab.traces.reading import BadRow, TraceNotes, TraceRow, headings, made, opened, rows, seconds
from kumulus.extras.lab.traces.task import Format, TraceContents, TraceTask, exactly, one_file

_PIECE = 1 << 16
_LONGEST = 1 << 24
_MACHINES = ("machineId", "number of GPUs")
# Neither the trace nor the paper gives a machine's CPUs and memory. No task requests any.
_CPU, _MEMORY = 64_000, 524_288
_COLUMNS = ("timestamp", "duration", "num_gpus")
PER_MACHINE = 8
"""GPUs of a machine, where the trace does not say: the usual ones have eight."""


def read(files: Sequence[Path], notes: TraceNotes, columns: Mapping[str, str]) -> TraceContents:
    """A job log, with or without a machine list."""
    exactly(files, 1, 2, "cluster_job_log, with cluster_machine_list or without")
    logs = [file for file in files if _is_json(file)]
    lists = [file for file in files if file not in logs and "machineId" in headings(file)]
    if len(logs) != 1 or len(logs) + len(lists) != len(files):
        raise LabError("one of the files has to be cluster_job_log, a JSON array; the other cluster_machine_list")
    machines = [m for file in lists for m in made(rows(file, notes, _MACHINES), _machine, file, notes)]
    return TraceContents(machines, made(_items(logs[0], notes), lambda job: _task(job, notes), logs[0], notes))


FORMAT = Format(
    "philly", "JOB_LOG [MACHINE_LIST]", "Microsoft's Philly: cluster_job_log (JSON), gangs on 2,490 GPUs",
    "https://github.com/msr-fiddle/philly-traces", read,
)  # fmt: skip


def _is_json(file: Path) -> bool:
    with opened(file) as text:
        return text.read(_PIECE).lstrip().startswith("[")


def _machine(row: TraceRow) -> EmptyNode:
    model = row.text("single GPU mem").replace(" ", "")
    return EmptyNode(row.text("machineId"), _CPU, _MEMORY, row.whole("number of GPUs", 0, 64), model)


def _items(file: Path, notes: TraceNotes) -> Iterator[tuple[int, object]]:
    """The items of a JSON array with the line each starts on, with only one of them in memory at a time."""
    decoder, text, line = json.JSONDecoder(), "", 1
    with opened(file) as source:
        text = source.read(_PIECE).lstrip()[1:]
        while True:
            stripped = text.lstrip(" \t\r\n,")
            line += text[: len(text) - len(stripped)].count("\n")
            text = stripped
            if text.startswith("]"):
                return
            try:
                item, end = decoder.raw_decode(text)
            except json.JSONDecodeError as error:
                more = source.read(_PIECE)
                if not more or len(text) > _LONGEST:
                    raise LabError(f"{file}, line {line}: is no JSON array of jobs: {error.msg}") from None
                text += more
                continue
            notes.rows += 1
            yield line, item
            line += text[:end].count("\n")
            text = text[end:]


def _task(job: object, notes: TraceNotes) -> TraceTask:
    if not isinstance(job, Mapping):
        raise BadRow("is no job")
    arrival = TraceRow(_texts(job)).time("submitted_time")
    attempts = [each for each in _list(job.get("attempts")) if isinstance(each, Mapping)]
    servers = next(filter(None, map(_servers, attempts)), [])
    if not servers:
        raise BadRow("was never given a server, so its GPUs are not known")
    if len(set(servers)) > 1:
        notes.left_out["had unlike numbers of GPUs on its servers: each worker gets the largest"] += 1
    if len(attempts) > 1:
        notes.left_out["was tried more than once: runs once, for as long as all tries together"] += 1
    duration = _ran(attempts)
    if duration is None:
        notes.left_out["has a try without start or end: its duration is not known"] += 1
    return TraceTask(
        name=str(job.get("jobid", "")),
        arrival=arrival,
        duration=duration,
        workers=len(servers),
        gpus=max(servers),
        gpu_milli=WHOLE_GPU if max(servers) else 0,
        user=str(job.get("vc") or job.get("user") or ""),
    )


def _texts(job: Mapping[Any, Any]) -> dict[str, str]:
    return {str(key): value for key, value in job.items() if isinstance(value, str)}


def _servers(attempt: Mapping[Any, Any]) -> list[int]:
    return [len(_list(each.get("gpus"))) for each in _list(attempt.get("detail")) if isinstance(each, Mapping)]


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _ran(attempts: Sequence[Mapping[Any, Any]]) -> float | None:
    total = 0.0
    for attempt in attempts:
        start, end = seconds(str(attempt.get("start_time"))), seconds(str(attempt.get("end_time")))
        if start is None or end is None:
            return None
        if end < start:
            raise BadRow("a try ends before it starts")
        total += end - start
    return total


def _csv_tasks(file: Path, notes: TraceNotes) -> Iterator[TraceTask]:
    return made(rows(file, notes, _COLUMNS), lambda row: _csv_task(row, notes), file, notes)


def _csv_task(row: TraceRow, notes: TraceNotes) -> TraceTask:
    arrival = row.time("timestamp")
    workers, gpus, share = _workers_of(row.whole("num_gpus", 1), notes)
    duration, user = row.number("duration"), row.text("cluster")
    return TraceTask(f"job-{row.line}", arrival, duration, workers, gpus=gpus, gpu_milli=share, user=user)


def _workers_of(gpus: int, notes: TraceNotes) -> tuple[int, int, int]:
    """How many workers a job of so many GPUs has, the GPUs of each, and the milli-GPU of each GPU.

    Args:
        notes: counts jobs that cannot be divided evenly, whose last worker is given as many GPUs as the others.
    """
    if gpus <= PER_MACHINE:
        return 1, gpus, WHOLE_GPU if gpus else 0
    workers = -(-gpus // PER_MACHINE)
    each = -(-gpus // workers)
    if workers * each != gpus:
        notes.left_out[f"has GPUs that are no multiple of its workers: asks for up to {PER_MACHINE - 1} more"] += 1
    return workers, each, WHOLE_GPU


CSV = Format(
    "philly-csv", "philly.csv", "Microsoft's Philly, reduced to a CSV file by adaptdl",
    "https://github.com/petuum/adaptdl",
    one_file("philly.csv", _csv_tasks),
)  # fmt: skip
