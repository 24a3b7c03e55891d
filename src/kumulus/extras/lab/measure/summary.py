"""Computes the measures of a repetition from its records, by the names of `kumulus.extras.lab.file.measures`."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

from kumulus.extras.lab.file.measures import UNITS
from kumulus.extras.lab.measure.by_user import waited
from kumulus.extras.lab.measure.records import ExperimentRecords
from kumulus.extras.lab.measure.sampler import BindingCounts, Sampler
from kumulus.extras.lab.measure.states import CAUSES, PodRecord, most_in_any_second, span
from kumulus.extras.lab.measure.statistics import RESOLUTION, Between, Measured, Times, known, known_time, rate

# kube-scheduler's texts about pods, and about groups in topologies. Checked against Kubernetes 1.35 to 1.37.
_AVAILABLE = re.compile(r"\d+/\d+ (?:nodes are available: |placements are available, first placement status: )")
_PREEMPTION = re.compile(r"[.,]? *(?:pod group )?preemption: .*", re.DOTALL)
# Dynamic resource allocation adds this to the message, whether a pod has claims or not.
_CLAIMS = re.compile(r"\.? *no new claims to deallocate,?")
_COUNT = re.compile(r"\b\d+ (?=(?:node\(s\)|Insufficient|Preemption|No preemption))")
_NUMBER = re.compile(r"\b\d+\b")
_LONGEST = 200


def measures(records: ExperimentRecords, sampler: Sampler, created_in: float, lasted: float) -> dict[str, Measured]:
    """The measures of a repetition; those that could not be taken are left out.

    Args:
        created_in: seconds until all workloads had been created.
        lasted: seconds until the measurement ended.
    """
    found: dict[str, Measured] = {
        **_pods(records),
        **_jobs(records),
        **_scheduling(records),
        **_allocation(records, lasted),
        **_lost(records, lasted),
        **records.faulted.measures(records.pods.values()),
        **_groups(records, sampler),
        "creation.duration": created_in,
        "duration": lasted,
        **_usage(sampler),
        **_counter(sampler.counted),
    }
    unnamed = found.keys() - UNITS.keys()
    assert not unnamed, f"kumulus/extras/lab/file/measures.py does not name {', '.join(sorted(unnamed))}"
    return found


def _pods(records: ExperimentRecords) -> dict[str, Measured]:
    counts = records.counts
    return {
        "pods.created": counts["created"],
        "pods.scheduled": counts["bound"],
        "pods.pending": records.pending,
        "pods.ran": counts["ran"],
        "pods.succeeded": counts["succeeded"],
        "pods.failed": counts["failed"],
        "pods.assumed": counts["assumed"],
        "pods.preempted": counts["preempted"],
        "pods.disrupted": counts["disrupted"],
        "pods.untimed": sum(bool(record.since) for record in records.pods.values()),
    }


def _jobs(records: ExperimentRecords) -> dict[str, Measured]:
    jobs = records.jobs.values()
    waits = Times()
    for job in jobs:
        if job.workload not in records.unmeasured:
            waits.add(waited(job))
    return {
        "jobs.total": len(records.jobs),
        "jobs.admitted": sum(job.admitted for job in jobs),
        "jobs.partlyAdmitted": sum(job.partly for job in jobs),
        "jobs.partlyAdmittedPeak": records.partly_peak,
        "jobs.pending": sum(not job.placed and not job.succeeded for job in jobs),
        **waits.measures("jobTimeToSchedule"),
    }


def _scheduling(records: ExperimentRecords) -> dict[str, Measured]:
    pods = [each for each in records.pods.values() if each.workload not in records.unmeasured]
    to_schedule, to_run = Times(), Times()
    for record in pods:
        to_schedule.add(record.between("created", "bound"))
        to_run.add(record.between("created", "running"))
    found = {**to_schedule.measures("timeToSchedule"), **to_run.measures("timeToRun")}
    bound, lasted = sum(each.bound is not None for each in pods), known_time(span(pods, "bound", "bound"))
    if bound > 1 and lasted is not None:
        found["scheduling.duration"] = lasted
        found["scheduling.ratePeak"] = most_in_any_second(pods, "bound")
        if (found_rate := rate(bound - 1, lasted)) is not None:
            found["scheduling.rate"] = found_rate
    ended = [when for record in records.pods.values() if (when := record.when("ended")) is not None]
    if ended and records.live == 0:
        latest = Between(*map(max, zip(*ended, strict=True)))
        found["makespan"] = known(latest.most, latest, RESOLUTION)
    return found


def _allocation(records: ExperimentRecords, lasted: float) -> dict[str, Measured]:
    allocation, hours = records.allocation, records.allocation.hours.measures()
    found: dict[str, Measured] = {f"allocation.{what}": allocation.peak[what] for what in ("cpu", "memory")}
    found |= {f"allocation.{what}End": allocation.share(what) for what in ("cpu", "memory")}
    found |= {"nodes.end": allocation.nodes, "nodes.peak": allocation.nodes_peak}
    found |= {"nodes.came": allocation.nodes_came, "nodes.gone": allocation.nodes_gone}
    found |= allocation.meter.measures() | hours
    if not allocation.most.gpus:
        return found
    used, idle = (hours.get(f"gpuHours.{part}", 0.0) for part in ("used", "idle"))
    wanted = any(record.pending and (record.wants.gpus or record.share) for record in records.pods.values())
    found |= {
        "gpus.capacity": allocation.gpus_begun,
        "gpus.allocated": allocation.gpus,
        "gpus.freeWhilePending": allocation.free_gpus if wanted else 0.0,
        "allocation.gpu": allocation.peak["gpus"],
        "allocation.gpuEnd": allocation.share(),
        "allocation.gpuMean": used / (used + idle) if used else 0.0,
    }
    # Where no pod got a node, a scheduler has left nothing in pieces, and deserves no praise for it.
    if records.counts["bound"] or not records.pods:
        found |= {"fragmentation.end": allocation.fragmentation, "fragmentation.peak": allocation.fragmentation_peak}
    unsure = math.fsum(_unsure(record, lasted) for record in records.pods.values())
    return found | _unheard(found, used, idle, unsure)


def _unsure(record: PodRecord, lasted: float) -> float:
    """How many GPU-hours a pod may have had more, or fewer."""
    held = record.held(lasted)
    return record.gpus * (held.most - held.least) / 3600


def _unheard(found: Mapping[str, Measured], used: float, idle: float, unsure: float) -> dict[str, Measured]:
    """Bounds of what is summed up over time, where pods may have had so many GPU-hours more, or fewer."""
    whole, bounds = used + idle, Between(max(0.0, used - unsure), min(used + unsure, used + idle))
    if not whole or not isinstance(known(used, bounds), Between):
        return {}
    sums: dict[str, Measured | None] = {
        "gpuHours.used": bounds,
        "gpuHours.idle": Between(whole - bounds.most, whole - bounds.least),
        "gpuHours.stranded": Between(0.0, whole - bounds.least),
        "allocation.gpuMean": Between(bounds.least / whole, bounds.most / whole),
        "cost.wastedShare": Between(0.0, 1.0),
    }
    if (cost := found.get("cost.total")) is not None and not isinstance(cost, Between):
        sums |= {"cost.wasted": Between(0.0, cost), "cost.perGpuHour": rate(cost, bounds)}
    return {name: each for name, each in sums.items() if name in found and each is not None}


def _lost(records: ExperimentRecords, lasted: float) -> dict[str, Measured]:
    """GPU-seconds of pods that ended without success, in all and by cause; nothing if no pod wants a GPU."""
    if not any(record.gpus for record in records.pods.values()):
        return {}
    of: dict[str, list[Between]] = {name: [Between(0.0, 0.0)] for name in ("", *CAUSES)}
    for record in records.pods.values():
        if (cause := record.cause) is not None:
            time = record.held(lasted)
            for name in ("", cause):
                of[name].append(Between(record.gpus * time.least, record.gpus * time.most))
    sums = {name: Between(*map(math.fsum, zip(*each, strict=True))) for name, each in of.items()}
    return {f"work.lost{name}": known(each.most, each) for name, each in sums.items()}


def _groups(records: ExperimentRecords, sampler: Sampler) -> dict[str, Measured]:
    found = records.groups.measures(records.pods.values())
    # A scheduler that was restarted counts from its start.
    if found and len(sampler.placements) == 2 and sampler.placements[0] <= sampler.placements[1]:
        found["placements.evaluated"] = sampler.placements[1] - sampler.placements[0]
    return found


def _usage(sampler: Sampler) -> dict[str, float]:
    own = sampler.own_cpu()
    found: dict[str, float] = {"cpu.client": own, "memory.client": sampler.own_memory()}
    if not sampler.components.local:
        return found
    # Not what undoing the timeline costs afterwards.
    used, total = sampler.used, sum(sampler.used.values())
    found |= {
        "cpu.scheduler": used.get(sampler.scheduler, 0.0),
        "cpu.controlPlane": total,
        "memory.scheduler": sampler.peaks.get("scheduler", 0),
        "memory.controlPlane": sampler.peaks.get("controlPlane", 0),
    }
    if total > 0:
        found["cpu.clientShare"] = own / total
    return found


def _counter(counted: Sequence[BindingCounts]) -> dict[str, float]:
    """The API server's counts over the whole measurement, and how much our count of bindings differs from its own.

    Nothing if the API server was restarted, since it counts from its start.
    """
    if len(counted) < 2 or any(_anew(*each) for each in pairwise(counted)):
        return {}
    bindings, seen = counted[-1].counted - counted[0].counted, counted[-1].seen - counted[0].seen
    found: dict[str, float] = {"bindings.counted": bindings, "events.written": counted[-1].events - counted[0].events}
    if bindings:
        found["bindings.difference"] = abs(bindings - seen) / bindings
    return found


def _anew(before: BindingCounts, after: BindingCounts) -> bool:
    return after.counted < before.counted or after.events < before.events


def plain(waits: str) -> str:
    """One reason: `Unschedulable: 0/9 nodes are available: 3 Insufficient cpu, 6 node(s) …` without its counts.

    Args:
        waits: reason and message of a pod's condition PodScheduled.
    """
    text = _CLAIMS.sub("", _PREEMPTION.sub("", _AVAILABLE.sub("", waits)))
    text = _NUMBER.sub("n", _COUNT.sub("", text))
    head, colon, rest = text.partition(": ")
    parts = sorted({part.strip(" .") for part in rest.split(", ")} - {""})
    return (head + colon + ", ".join(parts))[:_LONGEST].strip(": ")


def by_reason(waiting: Mapping[str, int]) -> dict[str, int]:
    """Pods by their plain reasons, the most frequent first."""
    found: Counter[str] = Counter()
    for waits, pods in waiting.items():
        found[plain(waits)] += pods
    return dict(found.most_common())
