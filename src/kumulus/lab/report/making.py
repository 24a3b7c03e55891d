"""From what a run came to, to its report."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping

import psutil

from kumulus.host import memory
from kumulus.lab.file.model import Experiment
from kumulus.lab.measure.reasons import by_reason
from kumulus.lab.measure.records import Records
from kumulus.lab.measure.summary import measures
from kumulus.lab.measure.verdicts import verdicts
from kumulus.lab.plan.plan import Plan
from kumulus.lab.report.model import Details, Inputs, JobCount, Judged, Machine, Moment, PolicyUsed, Status, Test
from kumulus.lab.report.replayed import beside
from kumulus.lab.run.repetition import Outcome


def test_of(experiment: Experiment, outcome: Outcome, run: str, number: int, plan: Plan) -> Test:
    """The entry of a repetition.

    Args:
        experiment: what was run.
        outcome: what it came to.
        run: the run's id.
        number: which repetition, from 1.
        plan: what was to come.
    """
    records, sampler = outcome.records, outcome.sampler
    measured = measures(records, sampler, outcome.created_in, outcome.lasted)
    if outcome.policy is not None:
        measured |= _of_policy(outcome.policy)
    judged = verdicts(experiment.expect, measured, records)
    status: Status = "partial" if outcome.partial else "success" if all(each.holds for each in judged) else "failure"
    first = sampler.counted[0].counted if sampler.counted else 0
    details = Details(
        ended=outcome.ended,
        measures=measured,
        allocation={" ".join(cell): share.allocated for cell, share in records.allocation.by_cell().items()},
        free_gpus={product: free for product, free in records.allocation.gpus_by_product().items() if free},
        jobs=_jobs(records),
        pending_by_reason=by_reason(records.pending_by_reason()),
        timeline=[Moment(at=round(each.at, 3), what=each.what) for each in outcome.happened],
        bindings=[[round(each.at, 3), each.counted - first, each.seen] for each in sampler.counted],
        watch_interruptions=outcome.interruptions,
        policy=outcome.policy,
        series=sampler.series.columns,
        replays={name: beside(each, name, outcome) for name, each in plan.replays.items()},
    )
    name = experiment.name if experiment.repetitions == 1 else f"{experiment.name} repetition {number}"
    return Test(
        id=f"{run}-{number}",
        test_name=name,
        status=status,
        thresholds=[Judged(expected=each.what, holds=each.holds, found=each.found) for each in judged],
        details=details,
    )


def _of_policy(used: PolicyUsed) -> dict[str, float]:
    found: dict[str, float] = {"policy.failed": used.failed}
    for name, curve in (
        ("policy.allocated", used.allocated_percent),
        ("policy.fragmented", used.fragmented_percent_of_all_gpus),
    ):
        if "100" in curve:
            found[name] = round(curve["100"] / 100, 6)
    return found


def _jobs(records: Records) -> dict[str, JobCount]:
    found: dict[str, JobCount] = {}
    for job in records.jobs.values():
        count = found.setdefault(job.workload, JobCount(jobs=0, admitted=0, partly=0, pending=0, workers=0, placed=0))
        count.jobs += 1
        count.admitted += job.last is not None
        count.partly += job.partly
        count.pending += not job.placed and not job.succeeded
        count.workers += job.wanted
        count.placed += job.placed + job.succeeded
    return found


def status_of(tests: list[Test], repetitions: int) -> Status:
    """The status of a run: partial when not all of it was run, failure when one repetition failed."""
    if len(tests) < repetitions or any(test.status == "partial" for test in tests):
        return "partial"
    return "failure" if any(test.status == "failure" for test in tests) else "success"


def inputs_of(files: Mapping[str, str], digest: str) -> Inputs:
    """What a run was made of.

    Args:
        files: the inputs' texts by name.
        digest: of the plan.
    """
    hashes = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in files.items()}
    return Inputs(files=hashes, workloads=digest)


def machine() -> Machine:
    """The machine this runs on."""
    return Machine(cores=psutil.cpu_count() or 1, memory_bytes=memory.total(), load=round(os.getloadavg()[0], 2))
