"""Runs side by side: every measure, its spread over repetitions, and what makes the comparison unfair."""

import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple, TypeVar

from kumulus.extras.lab.file import KEPT_AS
from kumulus.extras.lab.file.amount import NOT_MEASURED, shown
from kumulus.extras.lab.file.measures import BETTER, PERCENTILES, UNITS, Unit
from kumulus.extras.lab.report.model import ByCluster, Metadata, OfUser, OfWorker, Report, Test
from kumulus.extras.lab.report.text import unheard

INCOMPLETE = "incomplete"
"""What is said of a figure of a run that was cut off: it is neither better nor worse than another's."""

_MOST_USERS = 8
_MOST_CLUSTERS = 20
MAIN = (
    "pods.created", "pods.scheduled", "pods.pending", "pods.preempted", "jobs.admitted", "jobs.partlyAdmitted",
    "groups.admitted", "groups.partlyPlaced", "groups.preempted", "groupTimeToPlacement.p50", "placements.evaluated",
    "jobs.pending", "gpus.freeWhilePending", "allocation.gpu", "allocation.gpuEnd", "fragmentation.end",
    "timeToSchedule.p50", "timeToSchedule.p99", "jobTimeToSchedule.p50", "scheduling.duration", "scheduling.rate",
    "scheduling.ratePeak", "makespan", "cpu.scheduler", "cpu.controlPlane", "memory.scheduler", "events.written",
    "slowdown.p50", "slowdown.p99", "fairness.jain", "fairness.jainShare", "gpuHours.used", "gpuHours.idle",
    "gpuHours.stranded", "cost.total", "cost.perGpuHour", "cost.wastedShare",
    "timeToEvacuate", "timeToRecover",
    "pods.disrupted", "work.lost", "nodes.came", "nodes.gone", "policy.allocated", "policy.fragmented", "policy.split",
    "jobs.dispatched", "jobs.completed", "jobs.requeued", "jobs.lost", "jobs.runTwice", "dispatch.rate",
    "dispatch.ratePeak", "jobTimeToDispatch.p50", "jobTimeToDispatch.p99", "jobTimeToNodes.p50", "jobTimeToRun.p50",
    "jobTimeToRun.p99", "allocation.cpu", "client.stall",
)  # fmt: skip
"""What a comparison shows unless everything is asked for."""
# What a run was compared with, and the file that may have another seed, make no other figures.
_OTHERS = ("experiment.yaml", KEPT_AS)
DIGITS = 8
"""How much of a SHA-256 is shown."""
_Pairs = tuple[tuple[str, str], ...]
T = TypeVar("T")


def labels(reports: Sequence[Report]) -> list[str]:
    """What to call runs: by labels, configurations, schedulers or policies where those tell them apart, else by ids."""
    for called in (
        [each.metadata.label for each in reports],
        _configurations(reports),
        [each.metadata.scheduler.name for each in reports],
        [_policy(each) for each in reports],
    ):
        if all(called) and len(set(called)) == len(reports):
            return called
    return [each.metadata.run_id for each in reports]


def table(reports: Sequence[Report], everything: bool = False) -> list[list[str]]:
    """The comparison as rows of cells, the heading first.

    Args:
        everything: whether every measure is shown, or only the main ones.
    """
    rows = [["", *(each.metadata.called for each in reports)]]
    rows.append(["experiment", *(each.metadata.experiment for each in reports)])
    rows.append(["scheduler", *(each.metadata.scheduler.name for each in reports)])
    if any(configurations := _configurations(reports)):
        rows.append(["configuration", *(each or "-" for each in configurations)])
    policies = [_policy(each) for each in reports]
    if any(policies):
        rows.append(["policy", *(each or "-" for each in policies)])
    rows.append(["status", *(each.results.status for each in reports)])
    rows.append(["repetitions", *(str(len(each.results.tests)) for each in reports)])
    measures = ([name, *(spread(report, name) for report in reports)] for name in (UNITS if everything else MAIN))
    for name, *cells in chain(measures, _by_cluster(reports), _by_user(reports)):
        if any(cell != "-" for cell in cells):
            rows.append([name, *(_of_whole(report, name, cell) for report, cell in zip(reports, cells, strict=True))])
    return rows


def _of_whole(report: Report, name: str, cell: str) -> str:
    """A figure of a run; of one that was cut off, only those of which neither less nor more is better."""
    cut_off = report.results.status == "partial" and BETTER.get(name, "lower")
    return INCOMPLETE if cut_off and cell != "-" else cell


def _configurations(reports: Sequence[Report]) -> list[str]:
    """The names of the schedulers' own configurations, with a digest where other ones have the same name."""
    found = [
        (each.metadata.scheduler.config, each.metadata.inputs.files.get(each.metadata.scheduler.config, ""))
        for each in reports
    ]
    alike = len({name for name, _ in found}) < len(set(found))
    return [f"{name} {digest[:DIGITS]}" if name and alike else name for name, digest in found]


def _policy(report: Report) -> str:
    return next((test.details.policy.policy for test in report.results.tests if test.details.policy), "")


def _by_cluster(reports: Sequence[Report]) -> Iterator[list[str]]:
    names = dict.fromkeys(name for report in reports for found in _clusters(report) for name in found.workers)
    parts: tuple[tuple[str, Unit, Callable[[OfWorker], float | None]], ...] = (
        ("jobs", "count", lambda worker: worker.jobs),
        ("dispatch p50", "s", lambda worker: worker.dispatched.get("p50")),
        ("CPU peak", "share", lambda worker: worker.peak.get("cpu")),
        ("GPU peak", "share", lambda worker: worker.peak.get("gpus")),
    )
    for name in [*names][:_MOST_CLUSTERS]:
        there = [[found.workers[name] for found in _clusters(report) if name in found.workers] for report in reports]
        yield from _rows_of(name, parts, there)


def _clusters(report: Report) -> list[ByCluster]:
    return [test.details.clusters for test in report.results.tests if test.details.clusters is not None]


def _by_user(reports: Sequence[Report]) -> Iterator[list[str]]:
    """The waits, slowdowns and shares of users, those who had most in any run first."""
    hours: dict[str, float] = {}
    for report in reports:
        for test in report.results.tests:
            for name, user in test.details.users.users.items() if test.details.users else ():
                hours[name] = max(hours.get(name, 0.0), user.hours)
    parts: tuple[tuple[str, Unit, Callable[[OfUser], float | None]], ...] = (
        *((f"wait p{part}", "s", lambda user, part=part: user.waited.get(f"p{part}")) for part in PERCENTILES),
        ("slowdown p50", "ratio", lambda user: user.slowdown.get("p50")),
        ("share", "share", lambda user: user.share),
    )
    for name in sorted(hours, key=lambda name: (-hours[name], name))[:_MOST_USERS]:
        yield from _rows_of(name, parts, [_everywhere(report, name) for report in reports])


def _everywhere(report: Report, name: str) -> list[OfUser]:
    found = [test.details.users for test in report.results.tests]
    return [each.users[name] for each in found if each is not None and name in each.users]


def _rows_of(
    name: str, parts: Iterable[tuple[str, Unit, Callable[[T], float | None]]], there: Sequence[Sequence[T]]
) -> Iterator[list[str]]:
    """A row for each part of a worker or a user.

    Args:
        there: what each run has of it, once for each repetition.
    """
    for what, unit, of in parts:
        values = ([value for each in repetitions if (value := of(each)) is not None] for repetitions in there)
        yield [f"{name}: {what}", *(_range(unit, each) for each in values)]


def spread(report: Report, measure: str) -> str:
    """A measure of a run: its median, smallest and largest where repetitions differ, and how many lack it."""
    details = [test.details for test in report.results.tests]
    values = [each.measures[measure] for each in details if measure in each.measures]
    if not values and any(measure in each.not_measured for each in details):
        return NOT_MEASURED
    found, unknown = _range(UNITS[measure], values), len(details) - len(values)
    return f"{found}, {unknown} {NOT_MEASURED}" if values and unknown else found


def _range(unit: Unit, values: Sequence[float]) -> str:
    if not values:
        return "-"
    middle, least, most = (shown(unit, of(values)) for of in (statistics.median, min, max))
    return middle if least == most else f"{middle} ({least} … {most})"


def unfair(reports: Sequence[Report]) -> Iterator[str]:
    """What differs between runs besides the scheduler, and so may affect their figures as well."""
    first, *others = (each.metadata for each in reports)
    found: dict[str, dict[str, list[str]]] = {}
    differing = set()
    for other in others:
        one, two = first.machine.load, other.machine.load
        pairs = [(what, mine, theirs, mine != theirs) for what, mine, theirs in _circumstances(first, other)]
        pairs.append(("loads before", f"{one:.1f}", f"{two:.1f}", abs(one - two) > max(1.0, first.machine.cores / 2)))
        for what, mine, theirs, differ in pairs:
            found.setdefault(what, {mine: [first.called]}).setdefault(theirs, []).append(other.called)
            differing |= {what} if differ else set()
    for what, by_value in found.items():
        if what in differing:
            values = (f"{value or 'none'} in {' and '.join(names)}" for value, names in by_value.items())
            yield f"{what} differ: {', '.join(values)}"
    for each in reports:
        if each.results.status == "partial":
            yield f"{each.metadata.called} did not come to its end: {each.results.error}"
        if said := list(unheard(each.results.tests)):
            yield f"not all was heard of {each.metadata.called}: {'; '.join(said)}"


def same_settings(one: Report, other: Report) -> bool:
    """Whether two runs agree in everything that their figures depend on, including scheduler and policy."""
    first, second = (line_of(each, next(iter(each.results.tests), None), _policy(each)) for each in (one, other))
    return first == second and all(mine == theirs for _, mine, theirs in _circumstances(one.metadata, other.metadata))


def _circumstances(one: Metadata, other: Metadata) -> Iterator[tuple[str, str, str]]:
    def described(metadata: Metadata) -> dict[str, str]:
        cluster, limits = metadata.cluster, metadata.client_settings
        return {
            "nodes": f"{cluster.nodes:,}",
            "Kubernetes versions": cluster.version,
            "experiments": metadata.experiment,
            "seeds": str(metadata.seed),
            "cores": str(metadata.machine.cores),
            "limits of the control plane's requests": "; ".join(
                f"{name} {' '.join(_without_file(settings))}"
                for name, settings in sorted(limits.items())
                if name != "kube-scheduler"
            ),
            "limits of the scheduler's requests": _limits(metadata),
            "logs of how the scheduler decides, which change placements,": "--why" if metadata.scheduler.why else "",
        }

    mine, theirs = described(one), described(other)
    for what in mine:
        yield what, mine[what], theirs[what]
    for name in sorted({*one.cluster.gpus, *other.cluster.gpus}):
        counts = [f"{each.cluster.gpus[name]:,.0f}" if name in each.cluster.gpus else "" for each in (one, other)]
        yield f"GPUs of {name}", counts[0], counts[1]
    # Another experiment or seed has other workloads; each scheduler takes gangs and queues in a form of its own.
    if (one.experiment, one.seed, one.scheduler.name) == (other.experiment, other.seed, other.scheduler.name):
        yield "workloads", one.inputs.workloads[:DIGITS], other.inputs.workloads[:DIGITS]


def _without_file(settings: Mapping[str, str]) -> list[str]:
    return [f"{name} {value}" for name, value in sorted(settings.items()) if name != "config"]


def _limits(metadata: Metadata) -> str:
    """A scheduler's greatest rate and burst of requests, whatever its flags and settings are called."""
    found = {}
    for key, value in metadata.scheduler.settings.items():
        for limit in ("qps", "burst"):
            if key.lower().endswith(limit):
                found[limit] = f"{float(value):g}" if value.replace(".", "", 1).isdigit() else value
    return ", ".join(f"{limit} {value}" for limit, value in sorted(found.items(), reverse=True))


class RunConditions(NamedTuple):
    """Everything but the seed that the figures of a run depend on."""

    label: str
    details: _Pairs
    """Its stack, scheduler, ties and the scheduler's settings, each with what it is."""
    files: _Pairs
    """The SHA-256 of its inputs by name, without the experiment's own, which may have the seed."""


def line_of(report: Report, test: Test | None, label: str) -> RunConditions:
    """The line that a repetition belongs to.

    Args:
        test: the repetition; None of a run that has come to none.
    """
    metadata, used = report.metadata, test and test.details.policy
    # A cluster's own scheduler has a configuration file in a directory of its own, whatever is in it.
    settings = {key: value for key, value in metadata.scheduler.settings.items() if key != "config"}
    details = {"stack": metadata.stack, "scheduler": metadata.scheduler.name, "ties": used.ties if used else ""}
    files = {name: digest for name, digest in metadata.inputs.files.items() if name not in _OTHERS}
    return RunConditions(
        label, tuple({**details, **dict(sorted(settings.items()))}.items()), tuple(sorted(files.items()))
    )


def names(lines: Iterable[RunConditions]) -> dict[RunConditions, str]:
    """A name of its own for each line: its label, and after that what sets it apart from lines of the same label."""
    by_label: dict[str, list[RunConditions]] = {}
    for line in dict.fromkeys(lines):
        by_label.setdefault(line.label, []).append(line)
    return {line: _name(line, alike) for alike in by_label.values() for line in alike}


def _name(line: RunConditions, alike: list[RunConditions]) -> str:
    every = [dict(each.details) for each in alike]
    apart = [
        f"{what} {value or 'none'}"
        for what, value in line.details
        if any(each.get(what, "") != value for each in every)
    ]
    for name, digest in line.files:
        others = [dict(each.files).get(name) for each in alike]
        if any(other not in (None, digest) for other in others):
            apart.append(f"{name} {digest[:DIGITS]}")
        elif None in others:
            apart.append(name)
    return " · ".join([line.label, *([", ".join(apart)] if apart else [])])
