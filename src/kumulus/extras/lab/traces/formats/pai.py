"""PAI: Alibaba's cluster-trace-gpu-v2020, its table of tasks and, optionally, its table of machines.

Source: alibaba/clusterdata, cluster-trace-gpu-v2020, README.md; the trace of Weng et al., NSDI 2022. Free for research.

pai_task_table.csv has no heading; its columns are `job_name`; `task_name`, a role such as ps or worker; `inst_num`, how
many instances; `status`; `start_time` and `end_time` in seconds; `plan_cpu`, per cent of a CPU (600 is 6 CPUs);
`plan_mem`, GB; `plan_gpu`, per cent of a GPU (50 is half of one); `gpu_type`, `MISC` for various old ones.
pai_machine_spec.csv, likewise: `machine`; `gpu_type`; `cap_cpu` CPUs; `cap_mem` GB; `cap_gpu` GPUs.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.offline.placing import EmptyNode
from kumulus.extras.lab.policies.nodes import WHOLE_GPU
from kumulus.extras.lab.traces.reading import BadRow, TraceNotes, TraceRow, headings, made, rows
from kumulus.extras.lab.traces.task import Format, TraceContents, TraceTask, exactly

TASKS = (
    "job_name", "task_name", "inst_num", "status", "start_time", "end_time",
    "plan_cpu", "plan_mem", "plan_gpu", "gpu_type",
)  # fmt: skip
MACHINES = ("machine", "gpu_type", "cap_cpu", "cap_mem", "cap_gpu")
_MIB_OF_GB = 1024.0
"""A GB of the trace has 1,024 MiB: 29.296875 GB, its most common plan, is 30,000 MiB."""


def read(files: Sequence[Path], notes: TraceNotes, columns: Mapping[str, str]) -> TraceContents:
    """A table of tasks, with or without one of machines; either may have a heading."""
    exactly(files, 1, 2, "pai_task_table.csv, with pai_machine_spec.csv or without")
    wide = [file for file in files if len(headings(file)) == len(TASKS)]
    narrow = [file for file in files if len(headings(file)) == len(MACHINES)]
    if len(wide) != 1 or len(wide) + len(narrow) != len(files):
        raise LabError(f"one of the files has to be pai_task_table.csv, of {len(TASKS)} columns, the other of machines")
    machines = [machine for file in narrow for machine in made(_table(file, MACHINES, notes), _machine, file, notes)]
    return TraceContents(machines, made(_table(wide[0], TASKS, notes), lambda row: _task(row, notes), wide[0], notes))


FORMAT = Format(
    "pai", "pai_task_table.csv [pai_machine_spec.csv]", "Alibaba's PAI: tasks with shares of GPUs, 6,500 GPUs",
    "https://github.com/alibaba/clusterdata", read,
)  # fmt: skip


def _table(file: Path, names: Sequence[str], notes: TraceNotes) -> Iterator[tuple[int, TraceRow]]:
    return rows(file, notes, names, () if headings(file) == list(names) else names)


def _machine(row: TraceRow) -> EmptyNode:
    cpu, memory = round(1000 * row.number("cap_cpu", 1)), round(row.number("cap_mem", 1) * _MIB_OF_GB)
    return EmptyNode(row.text("machine"), cpu, memory, row.whole("cap_gpu", 0, 64), row.text("gpu_type"))


def _task(row: TraceRow, notes: TraceNotes) -> TraceTask:
    arrival, ended = row.time("start_time"), row.time_if_any("end_time")
    if ended is None:
        notes.left_out["has no end_time: its duration is not known"] += 1
    elif ended < arrival:
        raise BadRow(f"end_time {ended:g} is before start_time {arrival:g}")
    percent = row.number("plan_gpu", missing=0.0)
    gpus, share = _gpus(percent)
    if gpus > 1 and percent % 100:
        notes.left_out["asks for more than one GPU and a part of another: gets the next whole number"] += 1
    model = row.text("gpu_type")
    return TraceTask(
        name=f"{row.text('job_name')}/{row.text('task_name')}",
        arrival=arrival,
        duration=None if ended is None else ended - arrival,
        workers=row.whole("inst_num", 1, missing=1),
        cpu=round(10 * row.number("plan_cpu", missing=0.0)),
        memory=round(row.number("plan_mem", missing=0.0) * _MIB_OF_GB),
        gpus=gpus,
        gpu_milli=share,
        models=(model,) if gpus and model not in ("", "CPU") else (),
        user=row.text("job_name"),
    )


def _gpus(percent: float) -> tuple[int, int]:
    if percent <= 0:
        return 0, 0
    if percent < 100:
        return 1, max(1, round(10 * percent))
    return -(-int(percent) // 100), WHOLE_GPU
