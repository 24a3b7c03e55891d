"""What an experiment measures: the names that thresholds, reports, comparisons and trends have in common.

A measure is one number of one repetition. Its unit says how a threshold on it is written and how it is shown.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from kumulus.model.names import nearest

Unit = Literal["s", "share", "count", "perSecond", "bytes", "usd", "ratio", "gpuHours", "gpuSeconds"]
Better = Literal["lower", "higher", ""]

PERCENTILES = (50, 90, 99)
"""The percentiles of each spread that are measures; one added here is measured, plotted and valid in thresholds."""
_PARTS = ("min", "mean", *(f"p{percent}" for percent in PERCENTILES), "max")

_SINGLE: dict[str, tuple[Unit, Better, str]] = {
    "pods.created": ("count", "", "pods of the workloads that were seen"),
    "pods.scheduled": ("count", "higher", "pods that were bound to a node"),
    "pods.pending": ("count", "lower", "pods without a node at the end"),
    "pods.ran": ("count", "higher", "pods that were seen Running"),
    "pods.succeeded": ("count", "higher", "pods that completed"),
    "pods.failed": ("count", "lower", "pods that failed"),
    "pods.assumed": ("count", "lower", "pods of Jobs that completed by assumption: nobody has declared how they end"),
    "pods.preempted": ("count", "lower", "pods that the scheduler evicted for others"),
    "pods.disrupted": (
        "count",
        "lower",
        "pods that went for another reason: evicted, their node gone, taken by a queue",
    ),
    "pods.untimed": (
        "count",
        "lower",
        "pods with a time that is not known, as the client was cut off or stood still; no time is measured by it",
    ),
    "jobs.total": ("count", "", "jobs of the workloads"),
    "jobs.admitted": ("count", "higher", "jobs all of whose workers had a node at the same time, or had completed"),
    "jobs.partlyAdmitted": ("count", "lower", "jobs of which some workers have a node at the end, and some do not"),
    "jobs.partlyAdmittedPeak": ("count", "lower", "the most jobs that were partly admitted at one time"),
    "jobs.pending": ("count", "lower", "jobs without any worker on a node at the end"),
    "jobs.dispatched": ("count", "higher", "of a federation: Jobs that a worker has admitted, as the hub knows"),
    "jobs.completed": ("count", "higher", "of a federation: Jobs that have completed, as the hub knows"),
    "jobs.requeued": (
        "count",
        "lower",
        "of a federation: how often a Job was taken from its worker, to be queued again",
    ),
    "jobs.lost": (
        "count",
        "lower",
        "of a federation: Jobs that have neither completed, nor wait, nor have a pod on a worker",
    ),
    "jobs.runTwice": ("count", "lower", "of a federation: Jobs of which pods have begun more than once as a whole"),
    "dispatch.rate": (
        "perSecond",
        "higher",
        "of a federation: Jobs dispatched in a second, from the first one's creation to the last one's dispatch",
    ),
    "dispatch.ratePeak": ("perSecond", "higher", "of a federation: the most Jobs dispatched in any one second"),
    "groups.total": ("count", "", "PodGroups of Kubernetes' own, of gangs, that the workloads' pods name"),
    "groups.admitted": ("count", "higher", "those that kube-scheduler has placed as a whole, as their condition says"),
    "groups.partlyPlaced": (
        "count",
        "lower",
        "those of which some pods have a node at the end, or completed, but fewer than its minimum",
    ),
    "groups.preempted": ("count", "lower", "those of which the scheduler evicted pods for others"),
    "placements.evaluated": (
        "count",
        "lower",
        "places of the topology that kube-scheduler tried for whole groups, by its own counter",
    ),
    "creation.duration": ("s", "lower", "from the first object's creation until all workloads are created"),
    "scheduling.duration": ("s", "lower", "from the first binding to the last"),
    "scheduling.rate": ("perSecond", "higher", "bindings in a second, from the first to the last"),
    "scheduling.ratePeak": ("perSecond", "higher", "the most bindings in any one second"),
    "makespan": ("s", "lower", "from the first object's creation to the end of the last pod"),
    "duration": ("s", "lower", "from the first object's creation to the end of the measurement"),
    "nodes.end": ("count", "", "nodes that are there at the end"),
    "nodes.peak": ("count", "", "the most nodes at one time"),
    "nodes.came": ("count", "", "nodes that came during the measurement"),
    "nodes.gone": ("count", "lower", "nodes that went during the measurement: removed, replaced, taken back"),
    "timeToEvacuate": (
        "s",
        "lower",
        "from the begin of a fault of the timeline until none of the pods was on its nodes; the longest of all faults",
    ),
    "timeToRecover": (
        "s",
        "lower",
        "from the begin of such a fault until as many pods ran on other nodes, or had completed, as ran before it, and "
        "never fewer afterwards; the longest of all faults",
    ),
    "gpus.capacity": ("count", "", "GPUs of the cluster at the start"),
    "gpus.allocated": ("count", "higher", "GPUs allocated at the end"),
    "gpus.freeWhilePending": ("count", "lower", "GPUs free at the end while pods that want some are pending"),
    "allocation.gpu": ("share", "higher", "the greatest share of GPUs that was allocated at one time"),
    "allocation.gpuEnd": ("share", "higher", "the share of GPUs allocated at the end"),
    "allocation.gpuMean": ("share", "higher", "the share of GPUs allocated, averaged over the measurement"),
    "allocation.cpu": ("share", "higher", "the greatest share of CPUs requested at one time"),
    "allocation.memory": ("share", "higher", "the greatest share of memory requested at one time"),
    "allocation.cpuEnd": ("share", "higher", "the share of CPUs requested at the end"),
    "allocation.memoryEnd": ("share", "higher", "the share of memory requested at the end"),
    "gpuHours.used": ("gpuHours", "higher", "GPU-hours that pods had, parts of GPUs included"),
    "gpuHours.idle": ("gpuHours", "lower", "GPU-hours that no pod had"),
    "gpuHours.stranded": ("gpuHours", "lower", "of the idle ones, those on nodes where no typical pod fitted"),
    "work.lost": ("gpuSeconds", "lower", "GPU-seconds of pods that were deleted or failed"),
    "work.lostPreempted": ("gpuSeconds", "lower", "of these, those of pods that the scheduler evicted for others"),
    "work.lostDisrupted": ("gpuSeconds", "lower", "those of pods that were disrupted otherwise, see pods.disrupted"),
    "work.lostFailed": ("gpuSeconds", "lower", "those of pods that failed"),
    "work.lostDeleted": ("gpuSeconds", "lower", "those of pods that were deleted for any other reason"),
    "fairness.users": ("count", "", "users or queues that asked for something"),
    "fairness.jain": (
        "ratio",
        "higher",
        "Jain's index over users of the part that each had of the GPU time asked for; 1 when all had the same part",
    ),
    "fairness.jainShare": ("ratio", "", "Jain's index over users of the GPU time that each had"),
    "fragmentation.end": ("share", "lower", "of the free GPUs at the end, those on nodes partly in use"),
    "fragmentation.peak": ("share", "lower", "the greatest such share at one time"),
    "cpu.scheduler": ("s", "lower", "CPU time of the scheduler"),
    "cpu.controlPlane": ("s", "lower", "CPU time of the control plane, scheduler and KWOK included"),
    "cpu.client": ("s", "lower", "CPU time of the measuring client"),
    "cpu.clientShare": ("share", "lower", "CPU time of the client over that of the control plane"),
    "cpu.fragmentation": (
        "s",
        "lower",
        "CPU time of the client, a part of its own, for allocated and fragmented GPUs by the demand that arrived",
    ),
    "cpu.fragmentationShare": ("share", "lower", "that CPU time over the control plane's"),
    "memory.scheduler": ("bytes", "lower", "the scheduler's greatest resident memory"),
    "memory.controlPlane": ("bytes", "lower", "the control plane's greatest resident memory, all processes together"),
    "memory.client": ("bytes", "lower", "the measuring client's greatest resident memory"),
    "client.stall": ("s", "lower", "the longest time for which the measuring client stood still, or was behind"),
    "client.interruptions": ("count", "lower", "how often one of the client's watches was interrupted"),
    "cost.total": ("usd", "lower", "what the nodes with a price cost: each one's price for the time that it was there"),
    "cost.perHourEnd": ("usd", "lower", "what the nodes that are there at the end cost for an hour"),
    "cost.perHourPeak": ("usd", "lower", "the most that the nodes cost for an hour at one time"),
    "cost.perGpuHour": ("usd", "lower", "the cost over the GPU-hours that pods had"),
    "cost.wasted": ("usd", "lower", "the part of the cost for which nothing ran: each node's, by its idle share"),
    "cost.wastedShare": ("share", "lower", "that part of the cost, as a share"),
    "cost.unpricedNodes": ("count", "lower", "the most nodes at one time whose price is not known; they cost nothing"),
    "policy.failed": ("count", "lower", "how often the policy raised, took too long or answered nonsense"),
    "policy.allocated": (
        "share",
        "higher",
        "the share of all GPUs, parts of them included, given when as much was asked for",
    ),
    "policy.fragmented": ("share", "lower", "the share of all GPUs that no typical pod could use at that time"),
    "policy.split": (
        "count",
        "lower",
        "pods on nodes where no GPU has enough free for them, without a policy to count GPU by GPU",
    ),
    "events.written": ("count", "lower", "events that the API server wrote, new or recurring, by its counter"),
    "bindings.counted": ("count", "", "bindings by the API server's own counter"),
    "bindings.difference": ("share", "lower", "how far the API server's binding rate is from the one measured"),
}

_SPREAD: dict[str, tuple[Unit, str]] = {
    "timeToSchedule": ("s", "from a pod's creation to its binding"),
    "timeToRun": ("s", "from a pod's creation to its running"),
    "jobTimeToSchedule": (
        "s",
        "from the first pod's creation to the last one's binding, which may be in place of one that was lost, of jobs "
        "that were admitted",
    ),
    "groupTimeToPlacement": ("s", "from a PodGroup's creation until its condition says that all of it is placed"),
    "jobTimeToDispatch": ("s", "of a federation: from a Job's creation on the hub until a worker has admitted it"),
    "jobTimeToNodes": ("s", "of a federation: from a Job's creation on the hub until all of its pods have a node"),
    "jobTimeToRun": ("s", "of a federation: from a Job's creation on the hub until all of its pods run"),
    "slowdown": (
        "ratio",
        "of completed jobs, the time from the first pod's creation to the last one's end over the time that they take "
        "if they never wait, at least 1 s",
    ),
}

UNITS: Mapping[str, Unit] = MappingProxyType(
    {name: unit for name, (unit, _, _) in _SINGLE.items()}
    | {f"{name}.{part}": unit for name, (unit, _) in _SPREAD.items() for part in _PARTS}
)
"""Every measure's unit."""

BETTER: Mapping[str, Better] = MappingProxyType(
    {name: better for name, (_, better, _) in _SINGLE.items()}
    | {f"{name}.{part}": "lower" for name in _SPREAD for part in _PARTS}
)
"""Whether less or more of a measure is better; empty where neither is."""

MEANINGS: Mapping[str, str] = MappingProxyType(
    {name: meaning for name, (_, _, meaning) in _SINGLE.items()}
    | {f"{name}.{part}": f"{meaning}, {part}" for name, (_, meaning) in _SPREAD.items() for part in _PARTS}
)
"""What each measure is, in words."""


def instead(written: object) -> str:
    """What to write in place of what is no measure."""
    near = nearest(written, UNITS, likeness=0.5) if isinstance(written, str) else []
    return " or ".join(near) or "a measure of docs/experiments.md"
