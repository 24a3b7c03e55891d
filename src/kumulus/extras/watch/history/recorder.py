"""Record what happens: values of the live views go in, events come out, one for each visible change."""

import json
from array import array
from collections.abc import Hashable
from typing import Any, NamedTuple

from kumulus.extras.watch.history.document import EventKind, History, Sort, Status
from kumulus.extras.watch.live.admission import AdmissionRule, AdmissionShape, Nature
from kumulus.extras.watch.live.node import ClusterNode
from kumulus.extras.watch.live.pod import ClusterPod

PREEMPTED = "PreemptionByScheduler"
_FINAL = {"Succeeded": Status.SUCCEEDED, "Failed": Status.FAILED}
_LONGEST = 1000


class JobKey(NamedTuple):
    """Which job a pod belongs to.

    Attributes:
        name, kind: such as ``train-1`` and ``Job``.
        of: its namespace or, for an experiment's job, its workload.
    """

    name: str
    kind: str
    of: str


class Facts(NamedTuple):
    """What is known about a job apart from its pods."""

    size: int = 0
    """How many pods it wants; 0 if that is not known."""
    queue: str = ""
    priority: int = 0
    """A number; a greater one goes first."""
    says: str = ""
    """What its own objects say, such as ``Suspended``."""
    since: int | None = None
    """When it was created, in milliseconds, if that is known and was before the history began; else None."""


class Figures(NamedTuple):
    """What a queue has.

    Attributes:
        quota, used: amounts as Kubernetes writes them, by resource.
        waiting, admitted: jobs, as the queue itself says.
    """

    quota: dict[str, str]
    used: dict[str, str]
    waiting: int
    admitted: int


def _key(row: Any) -> Hashable:
    """A row as a key: the rows of figures contain maps."""
    if isinstance(row, str):
        return row
    return tuple(tuple(sorted(each.items())) if isinstance(each, dict) else each for each in row)


class _Table:
    """Rows without duplicates."""

    def __init__(self, rows: list[Any]) -> None:
        self.rows = rows
        self.numbers: dict[Hashable, int] = {_key(row): number for number, row in enumerate(rows)}

    def number(self, key: Hashable, row: Any = None) -> int:
        found = self.numbers.get(key)
        if found is None:
            found = self.numbers[key] = len(self.rows)
            self.rows.append((list(key) if isinstance(key, tuple) else key) if row is None else row)
        return found


class Recorder:
    """Records a :class:`History`; all times are milliseconds from its beginning and never decrease."""

    def __init__(self, about: dict[str, Any] | None = None) -> None:
        self._admitting = Admitting()
        self._bind(History(dict(about or {}), events=array("q")))

    def _bind(self, found: History) -> None:
        self.history = found
        self._nodes, self._conditions = _Table(found.nodes), _Table(found.conditions)
        self._jobs, self._facts = _Table(found.jobs), _Table(found.facts)
        self._queues, self._figures = _Table(found.queues), _Table(found.figures)
        self._requests, self._texts = _Table(found.requests), _Table(found.texts)
        self._pods = _Table(found.pods)
        self._admitting.bind(found)
        self._last: dict[tuple[int, int], tuple[int, int]] = {}
        # By name, as names are reused: a node may come back in another rack, a pod under another job.
        self._node_numbers: dict[str, int] = {}
        self._pod_numbers: dict[str, int] = {}

    def go_on(self, history: History) -> None:
        """Continue with another history of the same objects, such as one whose beginning was dropped."""
        self._bind(history)
        for event in history:
            if event.kind == EventKind.HAPPENED:
                continue
            gone = event.one == Status.GONE if event.kind == EventKind.POD else event.one < 0
            if gone:
                self._last.pop((event.kind, event.what), None)
            else:
                self._last[event.kind, event.what] = event.one, event.other
        for kind, number in self._last:
            if kind == EventKind.NODE:
                self._node_numbers[history.nodes[number][0]] = number
            elif kind == EventKind.POD:
                self._pod_numbers[history.pods[number][0]] = number

    def node(self, name: str, node: ClusterNode | None, at: int) -> None:
        """Record a node's current state; None if it is gone."""
        before = self._node_numbers.get(name)
        if node is None:
            if before is not None:
                self._note(at, EventKind.NODE, before, -1, 0)
            return
        place = (node.name, node.zone, node.group, node.product, node.block, node.rack)
        number = self._node_numbers[name] = self._nodes.number(place)
        if before not in (None, number):
            self._note(at, EventKind.NODE, before, -1, 0)
        has = node.allocatable
        why = ", ".join((*node.faults, *node.conditions))[:_LONGEST]
        condition = (node.state, why, has.gpus, has.cpu, has.memory, has.pods)
        self._note(at, EventKind.NODE, number, self._conditions.number(condition), self._admitting.nature(node.nature))

    def pod(self, key: str, pod: ClusterPod | None, job: JobKey, at: int) -> None:
        """Record the current state of a job's pod; None if it is gone."""
        before = self._pod_numbers.get(key)
        if pod is None:
            if before is not None:
                self._pod_gone(key, before, at)
            return
        rule = self._admitting.rule(pod.rule)
        asked = (pod.requests.gpus, pod.requests.cpu, pod.requests.memory, rule)
        number = self._pods.number((key, self._jobs.number(job), self._requests.number(asked)))
        if before not in (None, number):
            self._pod_gone(key, before, at)
        self._pod_numbers[key] = number
        self._note(at, EventKind.POD, number, *self._status(pod))

    def _pod_gone(self, key: str, number: int, at: int) -> None:
        del self._pod_numbers[key]
        status, _ = self._last.pop((EventKind.POD, number))
        # If it has ended, its outcome is recorded already, and says more than that it is gone.
        if status < Status.SUCCEEDED:
            self._append(at, EventKind.POD, number, Status.GONE, -1)

    def _status(self, pod: ClusterPod) -> tuple[int, int]:
        node = self._node_number(pod.node) if pod.node else -1
        if pod.phase == "Failed" and pod.ending:
            # Its kubelet has ended it because it was deleted.
            return Status.GONE, -1
        if pod.phase in _FINAL:
            return _FINAL[pod.phase], node
        if not pod.node:
            return Status.WAITING, self._texts.number("\n".join(pod.reasons)[:_LONGEST])
        if pod.disrupted:
            return Status.PREEMPTED if pod.disrupted == PREEMPTED else Status.EVICTED, node
        return Status.RUNNING if pod.phase == "Running" else Status.BOUND, node

    def _node_number(self, name: str) -> int:
        """A node's number, even if the node is not known yet: its pods may be seen first."""
        found = self._node_numbers.get(name)
        if found is None:
            found = self._node_numbers[name] = self._nodes.number((name, "", "", "", "", ""))
        return found

    def job(self, job: JobKey, facts: Facts | None, at: int) -> None:
        """Record what is known about a job now; None if it is gone."""
        row = -1 if facts is None else self._facts.number(facts)
        self._note(at, EventKind.JOB, self._jobs.number(job), row, 0)

    def queue(self, name: str, kind: str, figures: Figures | None, at: int) -> None:
        """Record a queue's current state; None if it is gone."""
        row = -1
        if figures is not None:
            row = self._figures.number(_key(figures), list(figures))
        self._note(at, EventKind.QUEUE, self._queues.number((name, kind)), row, 0)

    def happened(self, what: str, sort: Sort, at: int) -> None:
        """Record another event."""
        self._append(at, EventKind.HAPPENED, self._texts.number(what[:_LONGEST]), sort, 0)

    def _note(self, at: int, kind: EventKind, what: int, one: int, other: int) -> None:
        if one < 0:
            if self._last.pop((kind, what), None) is None:
                return
        elif self._last.get((kind, what)) == (one, other):
            return
        else:
            self._last[kind, what] = one, other
        self._append(at, kind, what, one, other)

    def _append(self, at: int, kind: EventKind, what: int, one: int, other: int) -> None:
        found = self.history
        # What is seen late gets the current time, so that readers never have to look back.
        found.end = max(found.end, at)
        found.events.extend((found.end, kind, what, one, other))


# Which nodes pods may go to, as a history records it: kinds of pods, kinds of nodes, and which fit each other.
#
# Written once for each pair of kinds, not for each pod and node: 10,000 of either have few kinds. Only the recorder
# knows what a kind is; a reader needs just the numbers.


class Admitting:
    """Numbers the kinds, and adds to a history which of them fit each other."""

    def __init__(self) -> None:
        self._natures: dict[Nature, int] = {}
        self._shapes: dict[AdmissionShape, int] = {}
        self._rules: dict[AdmissionRule, int] = {}
        self._rows: dict[str, int] = {}

    def bind(self, history: History) -> None:
        """Add to this history from now on; it already has which of the known kinds fit each other."""
        self._history = history
        self._rules = {}
        self._rows = {json.dumps(row): number for number, row in enumerate(history.rules)}

    def nature(self, nature: Nature) -> int:
        """The number of a kind of nodes."""
        found = self._natures.get(nature)
        if found is None:
            found = self._natures[nature] = len(self._natures)
            fits = ([number, found] for shape, number in self._shapes.items() if shape.admits(nature))
            self._history.fits.extend(fits)
        return found

    def rule(self, rule: AdmissionRule) -> int:
        """The number of a rule that says where pods may go."""
        found = self._rules.get(rule)
        if found is None:
            ways = [
                [self._shape(way.shape), None if way.only is None else list(way.only), list(way.never)]
                for way in rule.ways
            ]
            row: list[Any] = [ways, list(rule.apart)]
            found = self._rows.setdefault(json.dumps(row), len(self._history.rules))
            if found == len(self._history.rules):
                self._history.rules.append(row)
            self._rules[rule] = found
        return found

    def _shape(self, shape: AdmissionShape) -> int:
        found = self._shapes.get(shape)
        if found is None:
            found = self._shapes[shape] = len(self._shapes)
            fits = ([found, number] for nature, number in self._natures.items() if shape.admits(nature))
            self._history.fits.extend(fits)
        return found
