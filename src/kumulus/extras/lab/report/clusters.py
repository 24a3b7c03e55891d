"""What the clusters of a federation did: for report.json, in a few lines, and in a comparison of runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from kumulus.extras.lab.federation.dispatching import Dispatching
from kumulus.extras.lab.file.amount import shown
from kumulus.extras.lab.file.measures import Unit
from kumulus.extras.lab.measure.allocation import Part
from kumulus.extras.lab.measure.statistics import Measured
from kumulus.extras.lab.report.model import ByCluster, OfWorker, Report
from kumulus.extras.lab.run.bench import Outcome

_MOST = 20
_RESOURCES = {"cpu": "CPU", "gpus": "GPUs", "memory": "memory"}


def by_cluster(outcome: Outcome, dispatching: Dispatching) -> tuple[ByCluster, dict[str, Measured]]:
    """What each worker did, and the measures of all Jobs."""
    records = outcome.records
    pods = list(records.pods.values())
    lost = dispatching.lost(pods, outcome.lasted, outcome.away)
    where = {name: [cluster for cluster, _ in job.begun] for name, job in dispatching.jobs.items() if job.begun}
    workers = {}
    for name in dispatching.workers:
        part = records.allocation.parts.get(name, Part())
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


def lines(found: ByCluster | None) -> Iterator[str]:
    """A line for each worker, and the Jobs that were lost or run twice."""
    if found is None:
        return
    resources = [each for each in _RESOURCES if any(each in worker.peak for worker in found.workers.values())]
    heads = "".join(f" {_RESOURCES[each]:>7} {'peak':>7}" for each in resources)
    counts = f"{'jobs':>6} {'pods':>7} {'nodes':>6} {'dispatch p50':>13} {'p99':>9}"
    yield f"  {'worker of ' + found.hub:<20} {counts}{heads}"
    for name, worker in [*found.workers.items()][:_MOST]:
        times = worker.dispatched
        half, most = (shown("s", times[part]) if part in times else "-" for part in ("p50", "p99"))
        shares = "".join(
            f" {shown('share', worker.allocated.get(each, 0.0)):>7} {shown('share', worker.peak.get(each, 0.0)):>7}"
            for each in resources
        )
        yield f"  {name[:20]:<20} {worker.jobs:>6,} {worker.pods:>7,} {worker.nodes:>6,} {half:>13} {most:>9}{shares}"
    if len(found.workers) > _MOST:
        yield f"  and {len(found.workers) - _MOST:,} more in report.json"
    twice = {name: clusters for name, clusters in found.jobs.items() if len(clusters) > 1}
    for name, clusters in [*twice.items()][:_MOST]:
        yield f"  {name} has begun {len(clusters)} times: on {', '.join(clusters)}"
    for name in found.lost[:_MOST]:
        yield f"  {name} is lost"


def rows(reports: Sequence[Report], ranged: Callable[[Unit, Sequence[float]], str]) -> Iterator[list[str]]:
    """The Jobs and the allocation of each worker, a column for each run.

    Args:
        ranged: how the values of several repetitions are shown.
    """
    names = dict.fromkeys(name for report in reports for found in _of(report) for name in found.workers)
    parts: tuple[tuple[str, Unit, Callable[[OfWorker], float | None]], ...] = (
        ("jobs", "count", lambda worker: worker.jobs),
        ("dispatch p50", "s", lambda worker: worker.dispatched.get("p50")),
        ("CPU peak", "share", lambda worker: worker.peak.get("cpu")),
        ("GPU peak", "share", lambda worker: worker.peak.get("gpus")),
    )
    for name in [*names][:_MOST]:
        for what, unit, of in parts:
            there = [[found.workers[name] for found in _of(report) if name in found.workers] for report in reports]
            cells = [ranged(unit, [value for each in workers if (value := of(each)) is not None]) for workers in there]
            yield [f"{name}: {what}", *cells]


def _of(report: Report) -> list[ByCluster]:
    return [test.details.clusters for test in report.results.tests if test.details.clusters is not None]
