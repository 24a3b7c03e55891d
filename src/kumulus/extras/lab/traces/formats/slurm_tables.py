"""Helios and Acme: tables of Slurm jobs of SenseTime's and Shanghai AI Laboratory's GPU clusters.

Source: S-Lab-System-Group/HeliosData, README.md (Hu et al., SC 2021; CC-BY-4.0), cluster_log.csv;
InternLM/AcmeTrace, README.md (Hu et al., NSDI 2024; CC-BY-4.0), trace_seren.csv and trace_kalos.csv.

Columns of both: `job_id`; `user`; `gpu_num` and `cpu_num` of the whole job; `node_num`; `state`; `submit_time`,
`start_time` and `end_time`, dates, Acme's with a zone; `duration` and `queue` in seconds. Helios also has `vc`, the
virtual cluster; Acme `type`, the kind of work; Kalos `mem_per_pod_GB`, GB of each pod. Machines are in neither file.
"""

from collections.abc import Iterator
from pathlib import Path

from kumulus.extras.lab.policies.nodes import WHOLE_GPU
from kumulus.extras.lab.traces.reading import TraceNotes, TraceRow, made, rows
from kumulus.extras.lab.traces.task import Format, TraceTask, one_file

_NEEDED = ("job_id", "user", "gpu_num", "cpu_num", "node_num", "submit_time", "duration")
_MIB_OF_GB = 1e9 / 2**20


def _tasks(file: Path, notes: TraceNotes) -> Iterator[TraceTask]:
    return made(rows(file, notes, _NEEDED), lambda row: _task(row, notes), file, notes)


def _task(row: TraceRow, notes: TraceNotes) -> TraceTask:
    gpus, workers = row.whole("gpu_num"), row.whole("node_num", 1)
    each = -(-gpus // workers)
    if each * workers != gpus:
        notes.left_out["has GPUs that are no multiple of its nodes: each worker gets the larger part"] += 1
    memory = row.number("mem_per_pod_GB", missing=0.0) * _MIB_OF_GB
    return TraceTask(
        name=row.text("job_id"),
        arrival=row.time("submit_time"),
        duration=row.number("duration"),
        workers=workers,
        cpu=round(1000 * row.number("cpu_num") / workers),
        memory=round(memory),
        gpus=each,
        gpu_milli=WHOLE_GPU if each else 0,
        user=row.text("vc") or row.text("user"),
        qos=row.text("type"),
    )


_READ = one_file("one job table, such as cluster_log.csv or trace_seren.csv", _tasks)
HELIOS = Format(
    "helios", "cluster_log.csv", "SenseTime's Helios: four clusters, 3.4 million jobs",
    "https://github.com/S-Lab-System-Group/HeliosData", _READ,
)  # fmt: skip
ACME = Format(
    "acme", "trace_seren.csv", "Shanghai AI Laboratory's Acme: Seren and Kalos, for large language models",
    "https://github.com/InternLM/AcmeTrace", _READ,
)  # fmt: skip
