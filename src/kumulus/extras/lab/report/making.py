"""Makes the report of a run from its outcome."""

import hashlib
import math
import os
from collections.abc import Mapping

import psutil

from kumulus.extras.lab.federation.dispatching import Dispatching
from kumulus.extras.lab.file.measures import UNITS
from kumulus.extras.lab.file.model import ExperimentSpec
from kumulus.extras.lab.measure.allocation import ClusterPart
from kumulus.extras.lab.measure.by_user import Users, users_of
from kumulus.extras.lab.measure.records import ExperimentRecords, victims
from kumulus.extras.lab.measure.statistics import Between, Measured, only_known
from kumulus.extras.lab.measure.summary import by_reason, measures
from kumulus.extras.lab.measure.verdicts import verdicts
from kumulus.extras.lab.plan.asked import users_planned
from kumulus.extras.lab.plan.plan import RepetitionPlan
from kumulus.extras.lab.report.fidelity import speeds
from kumulus.extras.lab.report.model import (
    ByCluster,
    ByUser,
    Details,
    Inputs,
    JobCount,
    Judged,
    Machine,
    Moment,
    OfUser,
    OfWorker,
    PolicyUsed,
    Status,
    Test,
)
from kumulus.extras.lab.report.replayed import compared
from kumulus.extras.lab.report.text import busy
from kumulus.extras.lab.run.bench import RepetitionOutcome
from kumulus.host.machine import memory_bytes

_RESOURCES = ("cpu", "gpus", "memory")


def test_of(
    experiment: ExperimentSpec, outcome: RepetitionOutcome, run: str, number: int, plan: RepetitionPlan
) -> Test:
    """The entry of a repetition.

    Args:
        number: which repetition, from 1.
    """
    records, sampler = outcome.records, outcome.sampler
    measured = measures(records, sampler, outcome.created_in, outcome.lasted)
    measured |= {"client.stall": outcome.stall, "client.interruptions": outcome.interruptions}
    users = users_of(records, users_planned(plan, experiment), outcome.lasted)
    measured |= users.measures()
    if outcome.policy is not None:
        measured |= _of_policy(outcome.policy, sum(sampler.used.values()))
    clusters = None
    if outcome.dispatching is not None:
        clusters, of_jobs = by_cluster(outcome, outcome.dispatching)
        measured |= of_jobs
    judged = [*verdicts(experiment.expect, measured, records), *outcome.commands]
    status: Status = "partial" if outcome.partial else "success" if all(each.holds for each in judged) else "failure"
    first = sampler.counted[0].counted if sampler.counted else 0
    details = Details(
        ended=outcome.ended,
        speed=speed_of(experiment),
        measures={name: _rounded(name, value) for name, value in only_known(measured).items()},
        not_measured={
            name: (_rounded(name, each.least), None if math.isinf(each.most) else _rounded(name, each.most))
            for name, each in measured.items()
            if isinstance(each, Between)
        },
        allocation={" ".join(cell): share.allocated for cell, share in records.allocation.by_cell().items()},
        free_gpus={product: free for product, free in records.allocation.gpus_by_product().items() if free},
        jobs=_jobs(records),
        pending_by_reason=by_reason(records.pending_by_reason()),
        victims=victims(records.pods.values()),
        timeline=[Moment(at=round(each.at, 3), what=each.what) for each in outcome.happened],
        bindings=[[round(each.at, 3), each.counted - first, each.seen] for each in sampler.counted],
        policy=outcome.policy,
        series=sampler.series.columns,
        users=_by_user(users),
        clusters=clusters,
        replays={name: compared(each, name, outcome) for name, each in plan.replays.items()},
    )
    name = experiment.name if experiment.repetitions == 1 else f"{experiment.name} repetition {number}"
    return Test(
        id=f"{run}-{number}",
        test_name=name,
        status=status,
        thresholds=[Judged(expected=each.what, holds=each.holds, found=each.found) for each in judged],
        details=details,
    )


def speed_of(experiment: ExperimentSpec) -> float:
    """How many times faster than recorded its traces and recordings are played; 1 if not all alike."""
    found = speeds(experiment)
    return found.pop() if len(found) == 1 else 1.0


def _rounded(name: str, value: float) -> float:
    # A run of a minute costs thousandths of a dollar.
    return round(value, 9 if UNITS[name] == "usd" else 6)


def _by_user(users: Users) -> ByUser | None:
    named = {name: user for name, user in sorted(users.by_name.items()) if name}
    if not named:
        return None
    total = sum(user.had for user in named.values())
    return ByUser(
        of=users.of,
        users={
            name: OfUser(
                pods=user.pods,
                scheduled=user.scheduled,
                waited={part: round(value, 4) for part, value in only_known(user.waited.spread()).items()},
                slowdown={part: round(value, 4) for part, value in only_known(user.slowdown.spread()).items()},
                hours=round(user.had / 3600, 6),
                part=round(user.had / user.asked, 6) if user.asked else 1.0,
                share=round(user.had / total, 6) if total else 0.0,
            )
            for name, user in named.items()
        },
        shares=users.shares(),
    )


def _of_policy(used: PolicyUsed, control_plane: float) -> dict[str, Measured]:
    found: dict[str, Measured] = {"policy.failed": used.failed} if used.policy else {"policy.split": used.split}
    if used.allocated_percent:
        found["cpu.fragmentation"] = used.cpu
        if control_plane:
            found["cpu.fragmentationShare"] = used.cpu / control_plane
    for name, curve in (
        ("policy.allocated", used.allocated_percent),
        ("policy.fragmented", used.fragmented_percent_of_all_gpus),
    ):
        if "100" in curve:
            found[name] = curve["100"] / 100
    return found


def _jobs(records: ExperimentRecords) -> dict[str, JobCount]:
    found: dict[str, JobCount] = {}
    for job in records.jobs.values():
        count = found.setdefault(job.workload, JobCount(jobs=0, admitted=0, partly=0, pending=0, workers=0, placed=0))
        count.jobs += 1
        count.admitted += job.admitted
        count.partly += job.partly
        count.pending += not job.placed and not job.succeeded
        count.workers += job.wanted
        count.placed += job.placed + job.succeeded
    return found


def by_cluster(outcome: RepetitionOutcome, dispatching: Dispatching) -> tuple[ByCluster, dict[str, Measured]]:
    """What each worker did, and the measures of all Jobs."""
    records = outcome.records
    pods = list(records.pods.values())
    lost = dispatching.lost(pods, outcome.lasted, outcome.away)
    where = {name: [cluster for cluster, _ in job.begun] for name, job in dispatching.jobs.items() if job.begun}
    workers = {}
    for name in dispatching.workers:
        part = records.allocation.parts.get(name, ClusterPart())
        there = [resource for resource in _RESOURCES if getattr(part.most, resource)]
        workers[name] = OfWorker(
            jobs=sum(name in clusters for clusters in where.values()),
            completed=sum(name in job.ended for job in dispatching.jobs.values()),
            pods=sum(each.cluster == name for each in pods),
            scheduled=sum(each.cluster == name and each.bound is not None for each in pods),
            nodes=part.nodes,
            allocated={resource: round(part.share(resource), 6) for resource in there},
            peak={resource: round(part.peak.get(resource, 0.0), 6) for resource in there},
            dispatched={key: round(value, 4) for key, value in dispatching.to_dispatch(name).items()},
        )
    found = ByCluster(hub=dispatching.hub, workers=workers, jobs=where, lost=lost)
    return found, dispatching.measures(pods, len(lost))


def status_of(tests: list[Test], repetitions: int) -> Status:
    """The status of a run: partial if it is not complete, failure if one repetition failed."""
    if len(tests) < repetitions or any(test.status == "partial" for test in tests):
        return "partial"
    return "failure" if any(test.status == "failure" for test in tests) else "success"


def inputs_of(files: Mapping[str, str], digest: str) -> Inputs:
    """What a run was made of."""
    hashes = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in files.items()}
    return Inputs(files=hashes, workloads=digest)


def machine() -> Machine:
    """The machine this runs on."""
    return Machine(cores=psutil.cpu_count() or 1, memory_bytes=memory_bytes(), load=round(os.getloadavg()[0], 2))


def delayed(error: Exception) -> str:
    """That this machine is busy, if that may be why a cluster gave no answer in time; else empty."""
    return busy(machine()) if isinstance(error.__cause__, TimeoutError) else ""
