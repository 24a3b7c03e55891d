"""The fragmentation of a run's cluster over time, from the events of its report, without a cluster.

A history counts whole GPUs, so this is for pods that ask for whole ones; fragmentation of GPU shares is measured during
a run (``policy.fragmented`` of its report).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from kumulus.extras.lab.offline.measuring import ByArrival, Curves
from kumulus.extras.lab.offline.placing import EmptyNode, empty
from kumulus.extras.lab.policies import Pod
from kumulus.extras.lab.policies.fragmentation import Fragmentation, typical_kinds
from kumulus.extras.lab.policies.nodes import WHOLE_GPU
from kumulus.extras.watch.history.document import HOLDING, EventKind, History, HistoryEvent

_MIB = 2**20
# The product of a pod that may go to no node: no product has this name, and an empty set would mean any product.
_NO_PRODUCT = "\0"


@dataclass(frozen=True)
class FragmentationState:
    """The state from a moment on."""

    at: int
    """Milliseconds from the run's beginning."""
    gpus: int
    arrived: int
    """How many GPUs the run's pods so far ask for, including those that have ended."""
    allocated: int
    """How many GPUs pods have, including pods that are not the run's."""
    fragmented: float
    """How many free GPUs the typical pods cannot use, as a mean over them."""


@dataclass(frozen=True)
class RunFragmentation:
    """The fragmentation of a run."""

    moments: Sequence[FragmentationState]
    """One for each moment at which something changed."""
    end: int
    """Of the run, in milliseconds."""
    kinds: int
    curves: Curves
    """By the demand that had arrived, as a share of the most GPUs that there were."""

    def at(self, moment: int) -> FragmentationState:
        """The state at a moment, in milliseconds."""
        return next((each for each in reversed(self.moments) if each.at <= moment), self.moments[0])

    @property
    def mean(self) -> float:
        """The fragmented GPUs as a share of all, over the time of the run; 0 to 1."""
        ends = [*(each.at for each in self.moments[1:]), self.end]
        spans = [(end - each.at, each) for each, end in zip(self.moments, ends, strict=True) if each.gpus]
        whole = sum(span for span, _ in spans)
        return sum(span * each.fragmented / each.gpus for span, each in spans) / whole if whole else 0.0

    @property
    def peak(self) -> FragmentationState:
        """The moment with the greatest share of fragmented GPUs."""
        return max(self.moments, key=lambda each: each.fragmented / each.gpus if each.gpus else 0.0)


def fragmentation(history: History) -> RunFragmentation | None:
    """Measure a run against its own typical pods; None where its pods ask for no GPU, or no node has one."""
    cluster = _Cluster(history)
    if not cluster.most_gpus or not any(pod.gpus for pod in cluster.own.values()):
        return None
    by_arrival = ByArrival(cluster.most_gpus * WHOLE_GPU)
    moments = []
    for moment in cluster.moments():
        moments.append(moment)
        by_arrival.note(moment.arrived * WHOLE_GPU, moment.allocated * WHOLE_GPU, moment.fragmented * WHOLE_GPU)
    return RunFragmentation(moments, history.end, cluster.kinds, by_arrival.curves())


class _Cluster:
    """The nodes of a run, according to its events.

    Attributes:
        own: the pods of the run by their numbers.
        kinds: how many typical kinds of them there are.
        most_gpus: the most that all nodes had together.
    """

    def __init__(self, history: History) -> None:
        self._history = history
        products = {row[3] for row in history.nodes}
        allowed = _products(history, products)
        self._pods = {
            number: Pod(name, cpu, memory // _MIB, gpus, WHOLE_GPU if gpus else 0, allowed[rule])
            for number, (name, _, request) in enumerate(history.pods)
            # Histories of version 1 have no rules.
            for gpus, cpu, memory, rule in [[*history.requests[request], 0][:4]]
        }
        inside = f"{history.about.get('namespace', '')}/"
        self.own = {number: pod for number, pod in self._pods.items() if pod.name.startswith(inside)}
        typical = typical_kinds(self.own.values())
        self.kinds = len(typical)
        # The arrays have room for the most GPUs that a node ever has.
        most = [0] * len(history.nodes)
        self.most_gpus = now = 0
        has: dict[int, int] = {}
        for event in history:
            if event.kind == EventKind.NODE:
                gpus = int(history.conditions[event.one][2]) if event.one >= 0 else 0
                now += gpus - has.get(event.what, 0)
                has[event.what] = gpus
                most[event.what] = max(most[event.what], gpus)
                self.most_gpus = max(self.most_gpus, now)
        machines = [EmptyNode(row[0], 0, 0, most[number], row[3]) for number, row in enumerate(history.nodes)]
        self._nodes = empty(machines)
        self._nodes.gpu_free[:] = 0
        self._measure = Fragmentation.of(typical, self._nodes.models)
        self._has: dict[int, tuple[int, int]] = {}
        self._used = [[0, 0] for _ in machines]
        self._fragmented = [0.0] * len(machines)

    def moments(self) -> Iterator[FragmentationState]:
        """The state after the events of each moment; only nodes that have changed are measured again."""
        where: dict[int, int] = {}
        seen: set[int] = set()
        arrived = allocated = gpus = 0
        fragmented = 0.0
        for at, events in groupby(self._history, key=lambda event: event.at):
            changed: set[int] = set()
            before_them = arrived
            for event in events:
                if event.kind == EventKind.NODE:
                    before = self._has.get(event.what, (0, 0))
                    self._node(event)
                    gpus += self._has.get(event.what, (0, 0))[0] - before[0]
                    changed.add(event.what)
                elif event.kind == EventKind.POD:
                    pod = self._pods[event.what]
                    if event.what in self.own and event.what not in seen:
                        seen.add(event.what)
                        arrived += pod.gpus
                    node = event.other if event.one in HOLDING else -1
                    if (had := where.pop(event.what, -1)) >= 0:
                        self._take(had, pod, -1)
                        allocated -= pod.gpus
                    if node >= 0:
                        where[event.what] = node
                        self._take(node, pod, 1)
                        allocated += pod.gpus
                    if had != node:
                        changed |= {had, node} - {-1}
            for node in changed:
                now = self._of(node)
                fragmented += now - self._fragmented[node]
                self._fragmented[node] = now
            if changed or arrived != before_them:
                yield FragmentationState(at, gpus, arrived, allocated, fragmented / WHOLE_GPU)

    def _node(self, event: HistoryEvent) -> None:
        if event.one < 0:
            self._has.pop(event.what, None)
        else:
            _, _, gpus, cpu, *_ = self._history.conditions[event.one]
            self._has[event.what] = int(gpus), int(cpu)

    def _take(self, node: int, pod: Pod, times: int) -> None:
        used = self._used[node]
        used[0] += times * pod.gpus
        used[1] += times * pod.cpu

    def _of(self, node: int) -> float:
        gpus, cpu = self._has.get(node, (0, 0))
        # More GPUs may be in use than there are, after a fault has removed some.
        free = max(0, gpus - self._used[node][0])
        self._nodes.gpu_free[node, :] = 0
        self._nodes.gpu_free[node, :free] = WHOLE_GPU
        self._nodes.cpu_free[node] = cpu - self._used[node][1]
        return float(self._measure(self._nodes.some(slice(node, node + 1)))[0])


def _products(history: History, products: set[str]) -> list[frozenset[str]]:
    """For each rule, the products of the nodes that it allows a pod; empty if it allows all products."""
    nature = {event.what: event.other for event in history if event.kind == EventKind.NODE and event.one >= 0}
    natures: dict[int, list[int]] = {}
    for number, other in nature.items():
        natures.setdefault(other, []).append(number)
    fits: dict[int, set[int]] = {}
    for of_pods, of_nodes in history.fits:
        fits.setdefault(of_pods, set()).add(of_nodes)
    found = []
    for alternatives, *_ in history.rules:
        reached: set[str] = set()
        for of_pods, only, without in alternatives:
            for other in fits.get(of_pods, ()):
                rows = [history.nodes[number] for number in natures.get(other, ())]
                reached |= {row[3] for row in rows if (only is None or row[0] in only) and row[0] not in without}
        found.append(frozenset() if reached == products else frozenset(reached or {_NO_PRODUCT}))
    return found or [frozenset()]
