"""A report in a few lines, for the terminal."""

from collections.abc import Iterator, Sequence

from kumulus.extras.lab.file.amount import NOT_MEASURED, between, shown
from kumulus.extras.lab.file.measures import UNITS
from kumulus.extras.lab.measure.statistics import RESOLUTION
from kumulus.extras.lab.report.model import (
    ByCluster,
    ByUser,
    Judged,
    Machine,
    PolicyUsed,
    ReplayComparison,
    Report,
    Test,
)
from kumulus.model.words import counted

_MOST_REASONS = 5
_MOST_USERS = 8
_MOST_CLUSTERS = 20
_RESOURCES = {"cpu": "CPU", "gpus": "GPUs", "memory": "memory"}
_ALWAYS = (
    "jobs.admitted", "jobs.partlyAdmitted", "groups.admitted", "groups.partlyPlaced", "groupTimeToPlacement.p50",
    "placements.evaluated", "jobs.dispatched", "jobs.completed", "jobs.requeued", "jobs.lost", "jobs.runTwice",
    "dispatch.rate", "jobTimeToDispatch.p50", "jobTimeToDispatch.p99", "jobTimeToRun.p50",
    "jobTimeToRun.p99", "allocation.gpuEnd", "timeToSchedule.p50", "timeToSchedule.p99", "timeToEvacuate",
    "timeToRecover", "scheduling.rate", "makespan", "cpu.scheduler", "cpu.controlPlane", "cpu.client",
    "memory.client", "client.stall", "slowdown.p50", "work.lost", "fairness.jain", "gpuHours.used", "gpuHours.idle",
    "gpuHours.stranded", "cost.total", "cost.perHourEnd", "cost.perGpuHour", "cost.wastedShare",
    "cost.unpricedNodes",
)  # fmt: skip

_IF_ANY = ("work.lost",)
# What grows with the time that a run takes, and is said in a trace's own time, too.
_PLAYED = ("cost.total", "gpuHours.used", "timeToSchedule.p50", "timeToSchedule.p99")
_TRACE = "in the trace's time"
_SHOWN = (50, 90, 95, 100, 110, 120, 130)
_UNHEARD = ("client.stall", "client.interruptions", "pods.untimed")
MEASURES = (*_UNHEARD, "pods.assumed")
"""The measures of what was not heard, and of what is assumed."""


def lines(report: Report) -> Iterator[str]:
    """The report of every repetition, and the run's status."""
    for test in report.results.tests:
        yield from _test(test)
    missed = [each for test in report.results.tests for each in test.thresholds if not each.holds]
    if (why := busy(report.metadata.machine)) and any(map(_in_a_time, missed)):
        yield why
    yield from report.metadata.fidelity
    if report.results.error:
        yield f"error: {report.results.error}"


def busy(machine: Machine) -> str:
    """That a machine had more load than cores, as times then are the machine's; empty if it had not."""
    if machine.load <= machine.cores:
        return ""
    return f"this machine was busy: load {round(machine.load, 1):g} on {counted(machine.cores, 'core')}"


def _in_a_time(expectation: Judged) -> bool:
    words = expectation.expected.split()
    unit = UNITS.get("".join(words[:1]))
    return unit in ("s", "perSecond") or (unit is None and words[-2:-1] in (["within"], ["after"]))


def value(test: Test, measure: str) -> str:
    """A measure of a repetition as people read it; a dash when it was not taken."""
    unit, details = UNITS[measure], test.details
    if measure in details.not_measured:
        return f"{NOT_MEASURED}: {between(unit, *details.not_measured[measure])}"
    return shown(unit, details.measures[measure]) if measure in details.measures else "-"


def _test(test: Test) -> Iterator[str]:
    details = test.details
    yield f"{test.test_name}: {test.status}; {details.ended}"
    scheduled, created, pending, lasted = (
        value(test, name) for name in ("pods.scheduled", "pods.created", "pods.pending", "duration")
    )
    taken = {**details.not_measured, **details.measures}
    names = [name for name in _ALWAYS if name in taken and (name not in _IF_ANY or taken[name])]
    width = max(19, *map(len, names), 0)
    yield f"  {'pods scheduled':<{width}} {scheduled} of {created}, {pending} pending, in {lasted}"
    for name in names:
        yield f"  {name:<{width}} {value(test, name)}{_meanwhile(test, name)}"
    if played := [name for name in _PLAYED if name in details.measures and details.speed != 1]:
        long = [f"{name} {shown(UNITS[name], details.measures[name] * details.speed)}" for name in played]
        yield f"  {_TRACE:<{width}} × {details.speed:g}: about {', '.join(long)}"
    for what in unheard([test]):
        yield f"  {'not heard':<{width}} {what}"
    for what in assumed([test]):
        yield f"  {'assumed':<{width}} {what}"
    yield from _clusters(details.clusters)
    yield from _policy(details.policy)
    yield from _users(details.users)
    for reason, pods in list(details.pending_by_reason.items())[:_MOST_REASONS]:
        yield f"  pending {pods:>11,} {reason}"
    for group, pods in list(details.victims.items())[:_MOST_REASONS]:
        yield f"  preempted {pods:>9,} of PodGroup {group}"
    for found in details.replays.values():
        yield from of_replay(found)
    # What holds in a part of a run may not in the whole.
    held = "so far " if test.status == "partial" else "reached"
    for each in test.thresholds:
        yield f"  {held if each.holds else 'MISSED '} {each.expected}: {each.found}"


def _meanwhile(test: Test, name: str) -> str:
    """The most and the mean of a measure of the end that says something else: a run's end is often an empty cluster.

    Of groups, what they are, where they are not as many as the jobs.
    """
    total = test.details.measures.get("groups.total")
    if name == "groups.admitted" and total not in (None, test.details.measures.get("jobs.total")):
        return f" of {value(test, 'groups.total')}: a PodGroup for each gang, or each slice of one"
    most_and_mean = {"most": "allocation.gpu", "mean": "allocation.gpuMean"} if name == "allocation.gpuEnd" else {}
    found = {word: value(test, other) for word, other in most_and_mean.items() if other in test.details.measures}
    other = [f"{word} {read}" for word, read in found.items() if read != value(test, name)]
    return f" ({', '.join(other)})" if other else ""


def _clusters(found: ByCluster | None) -> Iterator[str]:
    """A line for each worker, and the Jobs that were lost or run twice."""
    if found is None:
        return
    resources = [each for each in _RESOURCES if any(each in worker.peak for worker in found.workers.values())]
    heads = "".join(f" {_RESOURCES[each]:>7} {'peak':>7}" for each in resources)
    counts = f"{'jobs':>6} {'pods':>7} {'nodes':>6} {'dispatch p50':>13} {'p99':>9}"
    yield f"  {'worker of ' + found.hub:<20} {counts}{heads}"
    for name, worker in [*found.workers.items()][:_MOST_CLUSTERS]:
        times = worker.dispatched
        half, most = (shown("s", times[part]) if part in times else "-" for part in ("p50", "p99"))
        shares = "".join(
            f" {shown('share', worker.allocated.get(each, 0.0)):>7} {shown('share', worker.peak.get(each, 0.0)):>7}"
            for each in resources
        )
        yield f"  {name[:20]:<20} {worker.jobs:>6,} {worker.pods:>7,} {worker.nodes:>6,} {half:>13} {most:>9}{shares}"
    if len(found.workers) > _MOST_CLUSTERS:
        yield f"  and {len(found.workers) - _MOST_CLUSTERS:,} more in report.json"
    twice = {name: clusters for name, clusters in found.jobs.items() if len(clusters) > 1}
    for name, clusters in [*twice.items()][:_MOST_CLUSTERS]:
        yield f"  {name} has begun {len(clusters)} times: on {', '.join(clusters)}"
    for name in found.lost[:_MOST_CLUSTERS]:
        yield f"  {name} is lost"


def _users(found: ByUser | None) -> Iterator[str]:
    if found is None:
        return
    hours = f"{found.of[:-1].upper()}-h"
    heads = f"{'pods':>7} {'waited p50':>11} {'p99':>9} {'slowdown p50':>13} {hours:>9} {'share':>7}"
    yield f"  {'user or queue':<20} {heads}"
    most = sorted(found.users.items(), key=lambda each: -each[1].hours)
    for name, user in most[:_MOST_USERS]:
        wait, last = (shown("s", user.waited[part]) if part in user.waited else "-" for part in ("p50", "p99"))
        slowed = f"{user.slowdown['p50']:.2f}" if "p50" in user.slowdown else "-"
        yield (
            f"  {name[:20]:<20} {user.pods:>7,} {wait:>11} {last:>9} {slowed:>13} {user.hours:>9,.2f} "
            f"{shown('share', user.share):>7}"
        )
    if len(most) > _MOST_USERS:
        yield f"  and {len(most) - _MOST_USERS:,} more in report.json"


def _policy(used: PolicyUsed | None) -> Iterator[str]:
    if used is None:
        return
    took = ", ".join(f"{name} {1000 * used.seconds[name]:.1f} ms" for name in ("p50", "p99") if name in used.seconds)
    if used.policy:
        yield f"  policy {used.policy}, ties by {used.ties}: asked {used.asked:,} times, {took or 'never answered'}"
    for percent in map(str, _SHOWN):
        if percent in used.allocated_percent:
            yield (
                f"  at {percent:>3} % arrived    allocated {used.allocated_percent[percent]:.2f} %, "
                f"fragmented {used.fragmented_percent_of_all_gpus[percent]:.2f} % of all"
            )
    if used.split:
        yield f"  {'policy.split':<18}  {used.split:,} pods are on nodes where no GPU has enough free for them"
    if used.failed:
        yield f"  the policy failed {used.failed:,} times, the first time so:"
        yield from (f"    {line}" for line in used.failure.splitlines())


def unheard(tests: Sequence[Test]) -> Iterator[str]:
    """What was not heard in some repetitions; nothing if all was."""
    measures = [test.details.measures for test in tests]
    stall, interruptions, pods = ([each.get(name, 0.0) for each in measures] for name in _UNHEARD)
    if max(stall, default=0.0) > RESOLUTION:
        yield f"the client stood still for {shown('s', max(stall))}"
    if sum(interruptions):
        yield f"its watches were interrupted {counted(round(sum(interruptions)), 'time')}"
    if sum(pods):
        yield f"a time is not known of {counted(round(sum(pods)), 'pod')}"


def assumed(tests: Sequence[Test]) -> Iterator[str]:
    """How many pods only seem to have succeeded; nothing if there are none."""
    if pods := sum(test.details.measures.get("pods.assumed", 0.0) for test in tests):
        yield (
            f"{counted(round(pods), 'pod')} of Jobs succeeded at once by assumption: nobody has declared how long they "
            "run and how they end (docs/pods.md)"
        )


def of_replay(found: ReplayComparison) -> Iterator[str]:
    """What was replayed, then and now."""
    everybody = [("all", found.all), *found.queues.items()]
    costs = any(each.then.cost is not None or each.now.cost is not None for _, each in everybody)
    cost = f" {'cost $':>17}" if costs else ""
    yield (
        f"  {'':<24} {'pods':>13} {'scheduled':>13} {'waited p50 s':>15} {'p99 s':>15} {'preempted':>11}{cost}"
        "  then → now"
    )
    for name, each in everybody:
        cells = [
            _pair(each.then.pods, each.now.pods, 13),
            _pair(each.then.scheduled, each.now.scheduled, 13),
            _pair(each.then.waited.get("p50"), each.now.waited.get("p50"), 15),
            _pair(each.then.waited.get("p99"), each.now.waited.get("p99"), 15),
            _pair(each.then.preempted, each.now.preempted, 11),
            *([_pair(each.then.cost, each.now.cost, 17)] if costs else []),
        ]
        yield f"  {name[:24]:<24} {' '.join(cells)}"
    both = found.all
    peaks = [
        f"{label} {_number(one)} → {_number(two)}"
        for label, one, two in (
            ("CPUs", both.then.cpu_peak, both.now.cpu_peak),
            ("GiB", both.then.memory_peak_gib, both.now.memory_peak_gib),
            ("GPUs", both.then.gpus_peak, both.now.gpus_peak),
        )
        if one or two
    ]
    yield f"  most at one time: {', '.join(peaks) or 'nothing'}"
    if found.late:
        yield f"  {found.sent:,} requests, {found.late['p99'] * 1000:.0f} ms behind their time at p99"
    for each_line in found.cannot:
        yield f"  not comparable: {each_line}"


def _pair(one: float | None, two: float | None, width: int) -> str:
    return f"{_number(one)} → {_number(two)}".rjust(width)


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"
