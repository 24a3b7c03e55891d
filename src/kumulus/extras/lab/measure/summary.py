"""Computes the measures of a repetition from its records, by the names of `kumulus.extras.lab.file.measures`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from kumulus.extras.lab.file.measures import UNITS
from kumulus.extras.lab.measure.records import JobRecord, Records
from kumulus.extras.lab.measure.sampler import Counted, Sampler
from kumulus.extras.lab.measure.statistics import most_in_a_second, spread


def measures(records: Records, sampler: Sampler, created_in: float, lasted: float) -> dict[str, float]:
    """The measures of a repetition; those that could not be taken are left out.

    Args:
        records: what became of its pods and jobs.
        sampler: what was sampled.
        created_in: seconds until all workloads had been created.
        lasted: seconds until the measurement ended.
    """
    found = {
        **_pods(records),
        **_jobs(records),
        **_scheduling(records),
        **_allocation(records),
        "creation.duration": created_in,
        "duration": lasted,
        **_usage(sampler),
        **_counter(sampler.counted),
    }
    ended = [record.ended for record in records.pods.values() if record.ended is not None]
    if ended and records.live == 0:
        found["makespan"] = max(ended)
    unnamed = found.keys() - UNITS.keys()
    assert not unnamed, f"kumulus/extras/lab/file/measures.py does not name {', '.join(sorted(unnamed))}"
    # A run of a minute costs thousandths of a dollar.
    return {name: round(value, 9 if UNITS[name] == "usd" else 6) for name, value in found.items()}


def _pods(records: Records) -> dict[str, float]:
    counts = records.counts
    return {
        "pods.created": counts["created"],
        "pods.scheduled": counts["bound"],
        "pods.pending": records.pending,
        "pods.ran": counts["ran"],
        "pods.succeeded": counts["succeeded"],
        "pods.failed": counts["failed"],
        "pods.preempted": counts["preempted"],
        "pods.disrupted": counts["disrupted"],
    }


def _jobs(records: Records) -> dict[str, float]:
    jobs = records.jobs.values()
    admitted = [job for job in jobs if job.last is not None]
    return {
        "jobs.total": len(records.jobs),
        "jobs.admitted": len(admitted),
        "jobs.partlyAdmitted": sum(job.partly for job in jobs),
        "jobs.partlyAdmittedPeak": records.partly_peak,
        "jobs.pending": sum(not job.placed and not job.succeeded for job in jobs),
        **_named("jobTimeToSchedule", spread(map(_waited, admitted))),
    }


def _waited(job: JobRecord) -> float:
    return (job.last or 0.0) - (job.first or 0.0)


def _scheduling(records: Records) -> dict[str, float]:
    pods = records.pods.values()
    bound = sorted(record.bound for record in pods if record.bound is not None)
    found = {
        **_named("timeToSchedule", spread(r.bound - r.created for r in pods if r.bound is not None)),
        **_named("timeToRun", spread(r.running - r.created for r in pods if r.running is not None)),
    }
    if len(bound) > 1:
        lasted = bound[-1] - bound[0]
        found["scheduling.duration"] = lasted
        found["scheduling.ratePeak"] = most_in_a_second(bound)
        if lasted > 0:
            found["scheduling.rate"] = (len(bound) - 1) / lasted
    return found


def _allocation(records: Records) -> dict[str, float]:
    allocation, hours = records.allocation, records.allocation.hours.measures()
    found = {f"allocation.{what}": allocation.peak[what] for what in ("cpu", "memory")}
    found |= {f"allocation.{what}End": allocation.share(what) for what in ("cpu", "memory")}
    found |= {"nodes.end": allocation.nodes, "nodes.peak": allocation.nodes_peak}
    found |= {"nodes.came": allocation.nodes_came, "nodes.gone": allocation.nodes_gone}
    found |= allocation.meter.measures() | hours
    if not allocation.most.gpus:
        return found
    used, idle = (hours.get(f"gpuHours.{part}", 0.0) for part in ("used", "idle"))
    wanted = any(record.pending and (record.wants.gpus or record.share) for record in records.pods.values())
    return found | {
        "gpus.capacity": allocation.gpus_begun,
        "gpus.allocated": allocation.gpus,
        "gpus.freeWhilePending": allocation.free_gpus if wanted else 0.0,
        "allocation.gpu": allocation.peak["gpus"],
        "allocation.gpuEnd": allocation.share(),
        "allocation.gpuMean": used / (used + idle) if used else 0.0,
        "fragmentation.end": allocation.fragmentation,
        "fragmentation.peak": allocation.fragmentation_peak,
    }


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


def _counter(counted: Sequence[Counted]) -> dict[str, float]:
    """The API server's count over the whole measurement, and how much ours differs from it.

    Nothing if the API server was restarted, since it counts from its start.
    """
    if len(counted) < 2 or any(after.counted < before.counted for before, after in pairwise(counted)):
        return {}
    bindings, seen = counted[-1].counted - counted[0].counted, counted[-1].seen - counted[0].seen
    found: dict[str, float] = {"bindings.counted": bindings}
    if bindings:
        found["bindings.difference"] = abs(bindings - seen) / bindings
    return found


def _named(name: str, parts: dict[str, float]) -> dict[str, float]:
    return {f"{name}.{part}": value for part, value in parts.items()}
