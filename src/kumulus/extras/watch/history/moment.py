"""The state at a moment of a history: a pure function, which tests compare with the page's own."""

from collections import Counter
from dataclasses import dataclass, field

from kumulus.extras.watch.history.document import HOLDING, EventKind, History, HistoryEvent, Status
from kumulus.extras.watch.live.amounts import NOTHING, Amounts

OVER = frozenset({"Complete", "Completed", "Failed", "Finished"})
"""What the objects of a finished job say."""


@dataclass
class NodeThen:
    """A node.

    Attributes:
        state, why: its state and the reason for it.
        allocatable, taken: what pods could have of it, and what they had.
    """

    state: str
    why: str
    allocatable: Amounts
    taken: Amounts = NOTHING


@dataclass
class JobThen:
    """A job.

    Attributes:
        kind: what it was, such as ``Job``.
        size: how many pods it wanted, if its objects say so; else 0.
        queue, priority: as its objects say.
        waiting, held: pods that waited for a scheduler; pods that had a node and had not ended.
        succeeded: pods that had succeeded.
        lost: pods that had failed or were gone for another reason.
        state: ``waiting``, ``partly``, ``placed``, ``running`` or ``ended``.
        first: when it or its first pod was first seen, in milliseconds.
        whole: when all the pods that it wanted first had nodes; -1 if that has not happened.
        reasons: why pods waited, each with the number of pods.
        nodes: where it was.
    """

    kind: str = ""
    size: int = 0
    queue: str = ""
    priority: int = 0
    waiting: int = 0
    held: int = 0
    running: int = 0
    succeeded: int = 0
    lost: int = 0
    first: int = -1
    whole: int = -1
    says: str = ""
    there: bool = True
    reasons: Counter[str] = field(default_factory=Counter)
    nodes: Counter[str] = field(default_factory=Counter)

    @property
    def wanted(self) -> int:
        """How many pods it wanted or, where that is not known, how many it had."""
        return self.size or self.waiting + self.held + self.succeeded

    @property
    def _over(self) -> bool:
        """Whether no more of its pods are to come: lost pods are replaced if the job has a size."""
        if not self.there or self.says in OVER:
            return True
        return self.succeeded >= self.size if self.size and self.kind != "Pod" else bool(self.succeeded + self.lost)

    @property
    def state(self) -> str:
        """How it was, in a word."""
        if not self.waiting and not self.held and self._over:
            return "ended"
        placed = self.held + self.succeeded
        if not self.held:
            return "waiting"
        if placed < self.wanted:
            return "partly"
        return "running" if self.running + self.succeeded >= self.wanted else "placed"


@dataclass
class HistoryMoment:
    """A moment.

    Attributes:
        nodes, jobs: by name; a job's is ``namespace/kind/name`` or, in an experiment, ``workload/kind/name``.
        queues: by ``kind/name``: quota, use, waiting jobs, admitted jobs.
        pods: how many have each status.
        happened: the other events so far, with their times.
    """

    nodes: dict[str, NodeThen] = field(default_factory=dict)
    jobs: dict[str, JobThen] = field(default_factory=dict)
    queues: dict[str, list[object]] = field(default_factory=dict)
    pods: Counter[Status] = field(default_factory=Counter)
    happened: list[tuple[int, str]] = field(default_factory=list)

    @property
    def states(self) -> Counter[str]:
        """Nodes by their state."""
        return Counter(node.state for node in self.nodes.values())

    @property
    def allocatable(self) -> Amounts:
        """What pods could have of all nodes."""
        return _sum([node.allocatable for node in self.nodes.values()])

    @property
    def taken(self) -> Amounts:
        """What pods had of all nodes."""
        return _sum([node.taken for node in self.nodes.values()])


def moment(history: History, at: int) -> HistoryMoment:
    """The state at a time in milliseconds, events of that very millisecond included."""
    found = _Replay(history)
    for event in history:
        if event.at > at:
            break
        found.take(event)
    return found.moment()


def holding(history: History) -> list[tuple[int, int]]:
    """How many pods had a node over time: milliseconds and a number, from each change on."""
    found: list[tuple[int, int]] = []
    there: set[int] = set()
    for event in history:
        if event.kind == EventKind.POD:
            (there.add if event.one in HOLDING else there.discard)(event.what)
            if found and found[-1][0] == event.at:
                found.pop()
            found.append((event.at, len(there)))
    return found


def fullest(history: History) -> int:
    """The last moment at which the most pods had a node, in milliseconds; the end if none ever had one."""
    held = holding(history)
    most = max((number for _, number in held), default=0)
    last = max((index for index, (_, number) in enumerate(held) if number == most), default=-1)
    return held[last + 1][0] - 1 if most and last + 1 < len(held) else history.end


class _Replay:
    """Replays events, one after the other."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.conditions: dict[int, int] = {}
        self.pods: dict[int, tuple[int, int]] = {}
        self.queues: dict[int, int] = {}
        self.jobs: dict[int, JobThen] = {}
        self.happened: list[tuple[int, str]] = []

    def take(self, event: HistoryEvent) -> None:
        if event.kind == EventKind.POD:
            self._pod(event)
        elif event.kind == EventKind.NODE:
            _put(self.conditions, event)
        elif event.kind == EventKind.QUEUE:
            _put(self.queues, event)
        elif event.kind == EventKind.JOB:
            job = self._job(event.what, event.at)
            job.there = event.one >= 0
            facts = self.history.facts[event.one] if job.there else (0, "", 0, "")
            job.size, job.queue, job.priority, job.says = facts[:4]
        else:
            self.happened.append((event.at, self.history.texts[event.what]))

    def _job(self, number: int, at: int) -> JobThen:
        job = self.jobs.setdefault(number, JobThen(self.history.jobs[number][1]))
        if job.first < 0:
            job.first = at
        return job

    def _pod(self, event: HistoryEvent) -> None:
        job = self._job(self.history.pods[event.what][1], event.at)
        if before := self.pods.get(event.what):
            _count(job, before[0], -1)
        self.pods[event.what] = event.one, event.other
        _count(job, event.one, 1)
        if job.whole < 0 and job.held and job.held + job.succeeded >= job.wanted:
            job.whole = event.at

    def moment(self) -> HistoryMoment:
        history = self.history
        found = HistoryMoment(happened=self.happened)
        for number, condition in self.conditions.items():
            state, why, gpus, cpu, memory, pods = history.conditions[condition]
            found.nodes[history.nodes[number][0]] = NodeThen(state, why, Amounts(cpu, memory, gpus, pods))
        for number, job in self.jobs.items():
            name, kind, of = history.jobs[number]
            found.jobs[f"{of}/{kind}/{name}"] = job
        for number, (status, other) in self.pods.items():
            self._place(found, number, Status(status), other)
        for number, figures in self.queues.items():
            name, kind = history.queues[number]
            found.queues[f"{kind}/{name}"] = history.figures[figures]
        return found

    def _place(self, found: HistoryMoment, number: int, status: Status, other: int) -> None:
        _, of, asked = self.history.pods[number]
        found.pods[status] += 1
        job = self.jobs[of]
        if status == Status.WAITING:
            job.reasons.update(self.history.texts[other].split("\n"))
        elif status in HOLDING:
            node = self.history.nodes[other][0]
            job.nodes[node] += 1
            if node in found.nodes:
                gpus, cpu, memory = self.history.requests[asked][:3]
                there = found.nodes[node]
                there.taken = there.taken.plus(Amounts(cpu, memory, gpus, 1))


def _put(rows: dict[int, int], event: HistoryEvent) -> None:
    if event.one < 0:
        rows.pop(event.what, None)
    else:
        rows[event.what] = event.one


def _count(job: JobThen, status: int, sign: int) -> None:
    job.waiting += sign * (status == Status.WAITING)
    job.held += sign * (status in HOLDING)
    job.running += sign * (status == Status.RUNNING)
    job.succeeded += sign * (status == Status.SUCCEEDED)
    job.lost += sign * (status in (Status.FAILED, Status.GONE))


def _sum(amounts: list[Amounts]) -> Amounts:
    return Amounts(*map(sum, zip(*amounts, strict=True))) if amounts else NOTHING
