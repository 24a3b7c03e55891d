"""What an import prints: machines, tasks, their demand by resource, and what could not be represented."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from kumulus.extras.lab.offline.fleet import Machine
from kumulus.extras.lab.policies.pod import WHOLE_GPU
from kumulus.extras.lab.traces.reading import Notes
from kumulus.extras.lab.traces.task import Task

_MOST_LINES = 12
_DAY = 86_400.0


@dataclass
class Sums:
    """Sums over a trace's tasks, added up one by one.

    Args:
        tasks: how many.
        pods: how many pods they are.
        gangs: tasks of more than one pod.
        with_gpus: tasks that ask for GPUs.
        shares: tasks that ask for a part of one.
        cpu: milli-CPU that all pods ask for.
        memory: MiB, likewise.
        gpu: milli-GPU, likewise.
        first: arrival of the first, in seconds of the trace's epoch.
        last: arrival of the last.
        unknown: tasks whose duration is not known.
        models: tasks that ask for certain GPU models, by these models.
    """

    tasks: int = 0
    pods: int = 0
    gangs: int = 0
    with_gpus: int = 0
    shares: int = 0
    cpu: int = 0
    memory: int = 0
    gpu: int = 0
    first: float = float("inf")
    last: float = float("-inf")
    unknown: int = 0
    models: Counter[tuple[str, ...]] = field(default_factory=Counter)

    def add(self, task: Task) -> None:
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
        if task.models:
            self.models[task.models] += 1


def summary(machines: Sequence[Machine], sums: Sums, notes: Notes) -> Iterator[str]:
    """The lines to print."""
    gpus = sum(machine.gpus for machine in machines)
    models = Counter({model: 0 for machine in machines if (model := machine.model)})
    for machine in machines:
        models[machine.model] += machine.gpus
    yield f"machines   {len(machines):,} with {gpus:,} GPUs{_listed(models)}"
    yield f"tasks      {sums.tasks:,}, {sums.pods:,} pods"
    yield f"           {sums.with_gpus:,} ask for GPUs, {sums.shares:,} of them for a part of one"
    if sums.gangs:
        yield f"gangs      {sums.gangs:,} tasks of more than one pod"
    if sums.tasks:
        yield f"arrivals   over {(sums.last - sums.first) / _DAY:,.1f} days"
    for name, unit, asked, there in (
        ("CPU", "CPUs", sums.cpu / 1000, sum(machine.cpu for machine in machines) / 1000),
        ("memory", "GiB", sums.memory / 1024, sum(machine.memory for machine in machines) / 1024),
        ("GPU", "GPUs", sums.gpu / WHOLE_GPU, float(gpus)),
    ):
        of = f", {100 * asked / there:,.1f} % of what is there" if there else ""
        yield f"{name:<10} {asked:,.1f} {unit} asked for by all tasks together{of}"
    if notes.left_out:
        yield "not represented:"
        yield from _lines((f"{why}", count) for why, count in notes.left_out.most_common())
    yield f"rows       {notes.rows:,} read, {notes.bad:,} of them bad"


def _listed(models: Counter[str]) -> str:
    named = [f"{count:,} {model}" for model, count in models.most_common(_MOST_LINES) if model and count]
    return f" ({', '.join(named)})" if named else ""


def _lines(items: Iterable[tuple[str, int]]) -> Iterator[str]:
    for why, count in items:
        yield f"  {count:>9,}  {why}"
