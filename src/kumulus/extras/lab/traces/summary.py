"""What an import prints: machines, tasks, their demand by resource, and what could not be represented."""

import heapq
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from kumulus.extras.lab.offline.placing import EmptyNode
from kumulus.extras.lab.policies.nodes import WHOLE_GPU
from kumulus.extras.lab.traces.reading import TraceNotes
from kumulus.extras.lab.traces.task import TraceTask

Amounts = tuple[float, float, float]
"""Milli-CPU, MiB and milli-GPU."""
_NOTHING = (0.0, 0.0, 0.0)
_MOST_LINES = 12
_LEAST_MEMORY = 16
_DAYS = 48  # hours, from which on they are said in days


class TraceDemand:
    """Follows the tasks in the order of their arrival, as if each got what it asks for at once.

    It holds only the tasks that run, so that a long trace needs no more memory than a short one. A task of unknown
    duration runs to the end.

    Attributes:
        peak: the most of each resource that was asked for at one time.
        ordered: whether all arrivals were in order; otherwise neither peak nor mean is known.
    """

    def __init__(self) -> None:
        self.peak: Amounts = _NOTHING
        self.ordered = True
        self._now: Amounts = _NOTHING
        self._area: Amounts = _NOTHING
        self._first: float | None = None
        self._at = 0.0
        self._ends: list[tuple[float, Amounts]] = []

    def add(self, task: TraceTask) -> None:
        """Add the next task."""
        if self._first is None:
            self._first = self._at = task.arrival
        if task.arrival < self._at:
            self.ordered = False
        if not self.ordered:
            return
        self._pass(task.arrival)
        workers = task.workers
        asked = (workers * task.cpu, workers * task.memory, workers * task.gpus * task.gpu_milli)
        self._now = _sum(self._now, asked, 1.0)
        self.peak = (max(self.peak[0], self._now[0]), max(self.peak[1], self._now[1]), max(self.peak[2], self._now[2]))
        if task.duration is not None:
            heapq.heappush(self._ends, (task.arrival + task.duration, asked))

    def mean(self) -> Amounts:
        """The mean from the first arrival to the last known end; nothing may be added afterwards."""
        last = max((end for end, _ in self._ends), default=self._at)
        self._pass(last)
        lasted = last - (self._first or 0.0)
        return _sum(_NOTHING, self._area, 1 / lasted) if lasted > 0 else self._now

    def _pass(self, until: float) -> None:
        while self._ends and self._ends[0][0] <= until:
            end, asked = heapq.heappop(self._ends)
            self._advance(end)
            self._now = _sum(self._now, asked, -1.0)
        self._advance(until)

    def _advance(self, to: float) -> None:
        self._area = _sum(self._area, self._now, to - self._at)
        self._at = to


def _sum(one: Amounts, other: Amounts, times: float) -> Amounts:
    return one[0] + times * other[0], one[1] + times * other[1], one[2] + times * other[2]


@dataclass
class Sums:
    """Sums over a trace's tasks, added up one by one."""

    tasks: int = 0
    pods: int = 0
    gangs: int = 0
    """Tasks of more than one pod."""
    with_gpus: int = 0
    shares: int = 0
    cpu: int = 0
    """Milli-CPU that all pods ask for."""
    memory: int = 0
    """MiB, likewise."""
    gpu: int = 0
    """Milli-GPU, likewise."""
    first: float = float("inf")
    """Arrival of the first, in seconds of the trace's epoch."""
    last: float = float("-inf")
    unknown: int = 0
    models: Counter[tuple[str, ...]] = field(default_factory=Counter)
    """Tasks that ask for certain GPU models, by these models."""
    most_memory: int = 0
    """MiB that the largest pod asks for."""
    demand: TraceDemand = field(default_factory=TraceDemand)

    def add(self, task: TraceTask) -> None:
        """Add a task."""
        self.tasks += 1
        self.pods += task.workers
        self.gangs += task.workers > 1
        self.with_gpus += task.gpus > 0
        self.shares += 0 < task.gpu_milli < WHOLE_GPU
        self.cpu += task.workers * task.cpu
        self.memory += task.workers * task.memory
        self.gpu += task.workers * task.gpus * task.gpu_milli
        self.first = min(self.first, task.arrival)
        self.last = max(self.last, task.arrival)
        self.unknown += task.duration is None
        self.most_memory = max(self.most_memory, task.memory)
        self.demand.add(task)
        if task.models:
            self.models[task.models] += 1


def summary(machines: Sequence[EmptyNode], sums: Sums, notes: TraceNotes, *, stay: bool = False) -> Iterator[str]:
    """The lines to print.

    Args:
        stay: whether no task ends, so that all of them are there at one time.
    """
    gpus = sum(machine.gpus for machine in machines)
    models = Counter({model: 0 for machine in machines if (model := machine.model)})
    for machine in machines:
        models[machine.model] += machine.gpus
    yield f"machines   {len(machines):,} with {gpus:,} GPUs{_listed(models)}"
    yield f"tasks      {sums.tasks:,}, {sums.pods:,} pods"
    yield f"           {sums.with_gpus:,} ask for GPUs, {sums.shares:,} of them for a part of one"
    if sums.gangs:
        yield f"gangs      {sums.gangs:,} {'task' if sums.gangs == 1 else 'tasks'} of more than one pod"
    if sums.tasks:
        hours = (sums.last - sums.first) / 3600
        yield f"arrivals   over {f'{hours / 24:,.1f} days' if hours >= _DAYS else f'{hours:,.2f} hours'}"
    demand = sums.demand if sums.demand.ordered and sums.unknown < sums.tasks and not stay else None
    peaks, means = (demand.peak, demand.mean()) if demand else (None, None)
    amounts = (
        ("CPU", "CPUs", 1000, sums.cpu, sum(machine.cpu for machine in machines)),
        ("memory", "GiB", 1024, sums.memory, sum(machine.memory for machine in machines)),
        ("GPU", "GPUs", WHOLE_GPU, sums.gpu, gpus * WHOLE_GPU),
    )
    for index, (name, unit, size, asked, there) in enumerate(amounts):
        of = f", {100 * asked / there:,.1f} % of what is there" if there else ""
        yield f"{name:<10} {asked / size:,.1f} {unit} asked for by all tasks together{of}"
        if peaks and means and asked:
            peak, mean = (_share(each[index], size, there) for each in (peaks, means))
            yield f"           at one time {peak} at most, {mean} on average"
    if sums.tasks and not sums.demand.ordered:
        yield "           arrivals are not in order, so what is asked for at one time is not known"
    yield from _warnings(machines, sums)
    if notes.unused:
        yield f"not used   {', '.join(notes.unused)}; to use a column, name it with --columns KEY=HEADING"
    if notes.left_out:
        yield "not represented:"
        yield from (f"  {count:>9,}  {why}" for why, count in notes.left_out.most_common())
    yield f"rows       {notes.rows:,} read, {notes.bad:,} of them bad"


def _share(amount: float, size: int, there: float) -> str:
    return f"{amount / size:,.1f}" + (f" ({100 * amount / there:,.1f} %)" if there else "")


def _warnings(machines: Sequence[EmptyNode], sums: Sums) -> Iterator[str]:
    """Memory that no pod of a real cluster asks for: the column has another unit than it was read in."""
    remedy = "if the column is in another unit, write it: --columns memory=HEADING:Gi"
    if 0 < sums.most_memory < _LEAST_MEMORY:
        yield f"warning: no pod asks for more than {sums.most_memory:,} MiB of memory; {remedy}"
    largest = max((machine.memory for machine in machines), default=0)
    if sums.most_memory and largest * sums.pods < sums.memory:
        yield f"warning: the pods ask for more memory on average than any machine has, {largest:,} MiB; {remedy}"


def _listed(models: Counter[str]) -> str:
    named = [f"{count:,} {model}" for model, count in models.most_common(_MOST_LINES) if model and count]
    return f" ({', '.join(named)})" if named else ""
