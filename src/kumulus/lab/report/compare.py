"""Runs side by side: every measure, its spread over repetitions, and what makes the comparison an unfair one."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from kumulus.lab.file.measures import UNITS
from kumulus.lab.file.units import shown
from kumulus.lab.report.model import Metadata, Report

_FEW = (
    "pods.created", "pods.scheduled", "pods.pending", "pods.preempted", "jobs.admitted", "jobs.partlyAdmitted",
    "jobs.pending", "gpus.freeWhilePending", "allocation.gpu", "allocation.gpuEnd", "fragmentation.end",
    "timeToSchedule.p50", "timeToSchedule.p99", "jobTimeToSchedule.p50", "scheduling.duration", "scheduling.rate",
    "scheduling.ratePeak", "makespan", "cpu.scheduler", "cpu.controlPlane", "memory.scheduler",
    "cost.total", "cost.perGpuHour", "cost.wastedShare",
)  # fmt: skip


def table(reports: Sequence[Report], everything: bool = False) -> list[list[str]]:
    """The comparison as rows of cells, the heading first.

    Args:
        reports: the runs.
        everything: whether every measure is shown, or only the main ones.
    """
    rows = [["", *(f"{each.metadata.run_id}" for each in reports)]]
    rows.append(["experiment", *(each.metadata.experiment for each in reports)])
    rows.append(["scheduler", *(each.metadata.scheduler.name for each in reports)])
    rows.append(["status", *(each.results.status for each in reports)])
    rows.append(["repetitions", *(str(len(each.results.tests)) for each in reports)])
    for name in UNITS if everything else _FEW:
        cells = [spread(report, name) for report in reports]
        if any(cell != "-" for cell in cells):
            rows.append([name, *cells])
    return rows


def spread(report: Report, measure: str) -> str:
    """A measure of a run: its median, and smallest and largest where repetitions differ."""
    values = [test.details.measures[measure] for test in report.results.tests if measure in test.details.measures]
    if not values:
        return "-"
    unit = UNITS[measure]
    middle, least, most = (shown(unit, of(values)) for of in (statistics.median, min, max))
    return middle if least == most else f"{middle} ({least} … {most})"


def unfair(reports: Sequence[Report]) -> Iterator[str]:
    """What differs between runs beside the scheduler, so that their figures are not only its own."""
    first = reports[0].metadata
    for other in (each.metadata for each in reports[1:]):
        for what, one, two in _circumstances(first, other):
            if one != two:
                yield f"{what} differ: {one or 'none'} in {first.run_id}, {two or 'none'} in {other.run_id}"
    for each in reports:
        if each.results.status == "partial":
            yield f"{each.metadata.run_id} did not come to its end: {each.results.error}"


def same_settings(one: Metadata, other: Metadata) -> bool:
    """Whether two runs differ in nothing that their figures depend on, the scheduler included."""
    same = one.scheduler == other.scheduler
    return same and all(mine == theirs for _, mine, theirs in _circumstances(one, other))


def _circumstances(one: Metadata, other: Metadata) -> Iterator[tuple[str, str, str]]:
    def described(metadata: Metadata) -> dict[str, str]:
        cluster, limits = metadata.cluster, metadata.client_settings
        return {
            "nodes": f"{cluster.nodes:,}",
            "GPUs": ", ".join(f"{name} {count:,.0f}" for name, count in sorted(cluster.gpus.items())),
            "Kubernetes versions": cluster.version,
            "experiments": metadata.experiment,
            "seeds": str(metadata.seed),
            "cores": str(metadata.machine.cores),
            "limits of the control plane's requests": "; ".join(
                f"{name} {value}" for name, value in sorted(limits.items()) if name != "kube-scheduler"
            ),
            "limits of the scheduler's requests": _limits(metadata),
        }

    mine, theirs = described(one), described(other)
    for what in mine:
        yield what, mine[what], theirs[what]


def _limits(metadata: Metadata) -> str:
    """A scheduler's greatest rate and burst of requests, whatever its flags and settings are called."""
    found = {}
    for key, value in metadata.scheduler.settings.items():
        for limit in ("qps", "burst"):
            if key.lower().endswith(limit):
                found[limit] = f"{float(value):g}" if value.replace(".", "", 1).isdigit() else value
    return ", ".join(f"{limit} {value}" for limit, value in sorted(found.items(), reverse=True))


def as_text(rows: Sequence[Sequence[str]]) -> str:
    """Rows as a table for the terminal."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
