"""openb: Alibaba's cluster-trace-gpu-v2023, a production cluster whose GPUs are shared.

Source: hkust-adsl/kubernetes-scheduler-simulator, data/csv; the trace of Weng et al., USENIX ATC 2023. Apache-2.0.

Node list: `sn` the name; `cpu_milli` milli-CPU; `memory_mib` MiB; `gpu` how many; `model`.
Pod list: `name`; `cpu_milli`; `memory_mib`; `num_gpu`; `gpu_milli`, milli-GPU of the one GPU when num_gpu is 1, else
1000; `gpu_spec`, models it may run on, `A|B`, empty for any; `qos`; `pod_phase`; `creation_time`, `deletion_time` and
`scheduled_time` in seconds, the last empty for pods that never ran.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.offline.placing import EmptyNode
from kumulus.extras.lab.policies.nodes import WHOLE_GPU
from kumulus.extras.lab.traces.reading import BadRow, TraceNotes, TraceRow, headings, made, rows
from kumulus.extras.lab.traces.task import Format, TraceContents, TraceTask, exactly

_NODES = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
_PODS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
_MOST_GPUS = 64


def read(files: Sequence[Path], notes: TraceNotes, columns: Mapping[str, str]) -> TraceContents:
    """A node list and a pod list, in either order."""
    exactly(files, 2, 2, "a node list and a pod list")
    nodes = [file for file in files if "sn" in headings(file)]
    pods = [file for file in files if "num_gpu" in headings(file)]
    if len(nodes) != 1 or len(pods) != 1:
        raise LabError("one of the files has to be a node list, with a column sn, and one a pod list, with num_gpu")
    machines = made(rows(nodes[0], notes, _NODES), _machine, nodes[0], notes)
    return TraceContents(
        list(machines), made(rows(pods[0], notes, _PODS), lambda row: _task(row, notes), pods[0], notes)
    )


FORMAT = Format(
    "openb", "NODES.csv PODS.csv", "Alibaba's cluster-trace-gpu-v2023: nodes and pods, with shares of GPUs",
    "https://github.com/hkust-adsl/kubernetes-scheduler-simulator", read,
)  # fmt: skip


def _machine(row: TraceRow) -> EmptyNode:
    cpu, memory = row.whole("cpu_milli", 1), row.whole("memory_mib", 1)
    return EmptyNode(row.text("sn"), cpu, memory, row.whole("gpu", 0, _MOST_GPUS), row.text("model"))


def _task(row: TraceRow, notes: TraceNotes) -> TraceTask:
    gpus = row.whole("num_gpu", 0, _MOST_GPUS)
    share = row.whole("gpu_milli", 1, WHOLE_GPU) if gpus else 0
    if gpus > 1 and share != WHOLE_GPU:
        raise BadRow(f"asks for {share} milli of each of {gpus} GPUs; only a single GPU is shared")
    arrival = row.time_if_any("creation_time") or 0.0
    started, ended = row.time_if_any("scheduled_time"), row.time_if_any("deletion_time")
    waits = row.text("pod_phase") == "Pending" or started is None or ended is None
    if not waits and started is not None and ended is not None and ended < started:
        raise BadRow(f"deletion_time {ended:g} is before scheduled_time {started:g}")
    task = TraceTask(
        name=row.text("name"),
        arrival=arrival,
        duration=None if waits or ended is None or started is None else ended - started,
        cpu=row.whole("cpu_milli"),
        memory=row.whole("memory_mib"),
        gpus=gpus,
        gpu_milli=share,
        models=tuple(model for model in row.text("gpu_spec").split("|") if model) if gpus else (),
        qos=row.text("qos"),
    )
    if row.text("pod_phase") == "Pending":
        notes.left_out["was still waiting when the trace ended: its duration is not known"] += 1
    return task
