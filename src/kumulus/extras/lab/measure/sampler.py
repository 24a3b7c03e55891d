"""Take a sample of everything each second."""

from __future__ import annotations

import asyncio
import re
import resource
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from kumulus.extras.lab.cluster.components import SCHEDULER, Components, ComponentUsage
from kumulus.extras.lab.measure.records import ExperimentRecords
from kumulus.kube import ApiError, Unreachable

if TYPE_CHECKING:
    from kumulus.kube import Client

# How a run went over time: a sample each second, fewer if it lasts long.
MOST_SAMPLES = 1200
# The API server's metrics are long: asking each second would cost it more than some of what is measured.
_COUNT_EVERY = 5.0
# During a measurement, a sample must not wait long for the metrics.
_PATIENCE = 2.0
# Only with the gate of topology-aware scheduling, 1.37: pkg/scheduler/metrics of k8s.io/kubernetes.
_PLACEMENTS = re.compile(r"^scheduler_placement_evaluations_total\{[^}]*\} (\S+)$", re.MULTILINE)
_BINDINGS = re.compile(
    r'^apiserver_request_total\{code="2\d\d",[^}]*resource="pods",[^}]*subresource="binding",[^}]*\} (\S+)$',
    re.MULTILINE,
)
# A scheduler creates events and patches them when they recur; KWOK applies them.
_EVENTS = re.compile(
    r'^apiserver_request_total\{code="2\d\d",[^}]*resource="events",[^}]*verb="(?:POST|PUT|PATCH|APPLY)"[^}]*\} (\S+)$',
    re.MULTILINE,
)


@dataclass
class Series:
    """Samples by column, all columns of one length."""

    columns: dict[str, list[float]] = field(default_factory=dict)
    """The samples; `t` are seconds from the start."""
    every: float = 1.0
    """Seconds between two samples."""

    def __len__(self) -> int:
        return len(self.columns.get("t", ()))

    def add(self, sample: dict[str, float]) -> None:
        """Add a sample; a new column was 0 before, a missing one keeps its last value."""
        before = len(self)
        for name, value in sample.items():
            self.columns.setdefault(name, [0.0] * before).append(round(value, 4))
        for values in self.columns.values():
            if len(values) == before:
                values.append(values[-1] if values else 0.0)
        if len(self) > MOST_SAMPLES:
            self._thin()

    def _thin(self) -> None:
        """Keep every other sample: a run of hours would make a report of megabytes."""
        self.columns = {name: values[::2] for name, values in self.columns.items()}
        self.every *= 2


@dataclass
class BindingCounts:
    """The API server's count of bindings and ours at one time: seconds, its count, ours; and its count of events."""

    at: float
    counted: int
    seen: int
    events: int = 0


@dataclass
class Sampler:
    """Samples records and processes until cancelled.

    Attributes:
        used: CPU seconds of each component from the start to the last sample.
        placements: how many placements of groups kube-scheduler had evaluated at the start, and at the end.
    """

    records: ExperimentRecords
    components: Components
    client: Client | None
    """Asks for the API server's counter; None if that counts something else."""
    now: Callable[[], float]
    scheduler: str = SCHEDULER
    on_sample: Callable[[], None] = lambda: None
    more: Callable[[], Mapping[str, float]] = dict
    """Further values to sample, by column."""
    series: Series = field(default_factory=Series)
    counted: list[BindingCounts] = field(default_factory=list)
    began: dict[str, ComponentUsage] = field(default_factory=dict)
    used: dict[str, float] = field(default_factory=dict)
    peaks: dict[str, int] = field(default_factory=dict)
    placements: list[int] = field(default_factory=list)
    _own: float = 0.0
    _bound: int = 0

    async def start(self) -> None:
        """Note the usage and the API server's count just before the clock starts."""
        self.began = self.components.usage()
        self._own = time.process_time()
        await self.count()
        self.counted = [replace(each, at=0.0) for each in self.counted]
        await self.count_placements()

    async def run(self) -> None:
        """Sample until cancelled."""
        counted = self.now()
        while True:
            self.sample()
            if self.now() - counted >= _COUNT_EVERY and self.records.counts["bound"] > self._bound:
                counted = self.now()
                await self.count(_PATIENCE)
            await asyncio.sleep(max(0.05, self.series.every - self.now() % self.series.every))

    async def count(self, patience: float | None = None) -> None:
        """Ask the API server how many bindings and written events it has counted, if it gives us its metrics.

        Args:
            patience: seconds to wait for its answer; the client's own when None.
        """
        if self.client is None:
            return
        with suppress(ApiError, Unreachable):
            metrics = await self.client.get("/metrics", patience=patience)
            self._bound = self.records.counts["bound"]
            self.counted.append(BindingCounts(self.now(), bindings(metrics), self._bound, events(metrics)))

    async def count_placements(self) -> None:
        """Ask the cluster's own kube-scheduler how many placements of groups it has evaluated."""
        metrics = await self.components.metrics(SCHEDULER) if self.scheduler == SCHEDULER else ""
        if metrics:
            self.placements.append(_sum(_PLACEMENTS, metrics))

    def sample(self) -> None:
        """Take one sample."""
        records, allocation = self.records, self.records.allocation
        counts = records.counts
        found: dict[str, float] = {
            "t": self.now(),
            "created": counts["created"],
            "bound": counts["bound"],
            "running": records.running,
            "succeeded": counts["succeeded"],
            "failed": counts["failed"],
            "pending": records.pending,
            "jobs partly admitted": records.partly,
            "fragmentation": allocation.fragmentation,
            "gpus": allocation.gpus,
            "gpu capacity": allocation.capacity.gpus,
        }
        # What there has been once has a value in every sample, also when it is 0: one without keeps its last.
        known = self.series.columns
        if (hourly := allocation.meter.hourly) or "cost per hour" in known:
            found["cost per hour"] = hourly
        found |= {f"nodes {kind or 'of no type'}": count for kind, count in allocation.kinds.items()}
        for (product, zone), share in sorted(allocation.cells.items()):
            if share.capacity or f"gpus {product} {zone}" in known:
                found[f"gpus {product} {zone}"] = share.allocated
        found |= self.more()
        found |= self._usage()
        self.series.add(found)
        self.on_sample()

    def own_cpu(self) -> float:
        """CPU seconds of this process since the start."""
        return time.process_time() - self._own

    def own_memory(self) -> int:
        """The greatest resident memory of this process, in bytes."""
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    def _usage(self) -> dict[str, float]:
        usage = self.components.usage()
        if not usage:
            return {}
        total = sum(each.memory for each in usage.values())
        mine = usage.get(self.scheduler, ComponentUsage(0.0, 0))
        self.peaks["controlPlane"] = max(self.peaks.get("controlPlane", 0), total)
        self.peaks["scheduler"] = max(self.peaks.get("scheduler", 0), mine.memory)
        self.used = {name: each.cpu - self.began.get(name, ComponentUsage(0.0, 0)).cpu for name, each in usage.items()}
        return {
            **{f"cpu {name}": seconds for name, seconds in self.used.items()},
            "cpu client": self.own_cpu(),
            "memory MB": total / 1e6,
            "memory scheduler MB": mine.memory / 1e6,
        }


def bindings(metrics: str) -> int:
    """How many pods were bound since the API server's start, according to its metrics."""
    return _sum(_BINDINGS, metrics)


def events(metrics: str) -> int:
    """How many events it has written since then, as new ones or once more."""
    return _sum(_EVENTS, metrics)


def _sum(series: re.Pattern[str], metrics: str) -> int:
    return round(sum(float(count) for count in series.findall(metrics)))
