"""A report in a few lines, for the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from kumulus.lab.file.measures import UNITS
from kumulus.lab.file.units import shown
from kumulus.lab.report import replayed
from kumulus.lab.report.model import PolicyUsed, Report, Test

_MOST_REASONS = 5
_ALWAYS = (
    "jobs.admitted",
    "jobs.partlyAdmitted",
    "allocation.gpuEnd",
    "timeToSchedule.p50",
    "timeToSchedule.p99",
    "scheduling.rate",
    "makespan",
    "cpu.scheduler",
    "cpu.controlPlane",
    "cpu.client",
    "memory.client",
    "cost.total",
    "cost.perHourEnd",
    "cost.perGpuHour",
    "cost.wastedShare",
    "cost.unpricedNodes",
)


_SHOWN = (50, 90, 95, 100, 110, 120, 130)


def lines(report: Report) -> Iterator[str]:
    """The report of every repetition, and the run's status."""
    for test in report.results.tests:
        yield from _test(test)
    if report.results.error:
        yield f"error: {report.results.error}"


def value(test: Test, measure: str) -> str:
    """A measure of a repetition as people read it; a dash when it was not taken."""
    found = test.details.measures.get(measure)
    return "-" if found is None else shown(UNITS[measure], found)


def _test(test: Test) -> Iterator[str]:
    details = test.details
    yield f"{test.test_name}: {test.status}; {details.ended}"
    scheduled, created, pending, lasted = (
        value(test, name) for name in ("pods.scheduled", "pods.created", "pods.pending", "duration")
    )
    yield f"  pods scheduled      {scheduled} of {created}, {pending} pending, in {lasted}"
    for name in _ALWAYS:
        if name in details.measures:
            yield f"  {name:<19} {value(test, name)}"
    yield from _policy(details.policy)
    for reason, pods in list(details.pending_by_reason.items())[:_MOST_REASONS]:
        yield f"  pending {pods:>11,} {reason}"
    for found in details.replays.values():
        yield from replayed.lines(found)
    for each in test.thresholds:
        yield f"  {'reached' if each.holds else 'MISSED '} {each.expected}: {each.found}"


def _policy(used: PolicyUsed | None) -> Iterator[str]:
    if used is None:
        return
    took = ", ".join(f"{name} {1000 * used.seconds[name]:.1f} ms" for name in ("p50", "p99") if name in used.seconds)
    yield f"  policy {used.policy}, ties by {used.ties}: asked {used.asked:,} times, {took or 'never answered'}"
    for percent in map(str, _SHOWN):
        if percent in used.allocated_percent:
            yield (
                f"  at {percent:>3} % arrived    allocated {used.allocated_percent[percent]:.2f} %, "
                f"fragmented {used.fragmented_percent_of_all_gpus[percent]:.2f} % of all"
            )
    if used.failed:
        yield f"  the policy failed {used.failed:,} times, the first time so:"
        yield from (f"    {line}" for line in used.failure.splitlines())
