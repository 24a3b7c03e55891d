"""An offline run: pods arrive one after the other, and measures are noted by how much demand has arrived."""

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from kumulus.extras.lab.offline.placing import EmptyNode, Placer, PodPlacement, Ties, empty, gpus_for, in_order, place
from kumulus.extras.lab.plan.stream import drawn
from kumulus.extras.lab.policies import Nodes, Pod, Study
from kumulus.extras.lab.policies.fragmentation import Fragmentation, typical_kinds
from kumulus.extras.lab.policies.load import Policy, PolicyFailed
from kumulus.extras.lab.policies.nodes import WHOLE_GPU

MEASURES = ("allocated_percent", "fragmented_percent_of_all_gpus", "fragmented_percent_of_idle_gpus")

Curves = dict[str, dict[str, float]]


class ByArrival:
    """Collects the measures after each pod.

    Args:
        gpu_milli: milli-GPU of all GPUs together.
    """

    def __init__(self, gpu_milli: int) -> None:
        self._all = gpu_milli
        self._noted: dict[int, list[tuple[float, ...]]] = defaultdict(list)

    def note(self, arrived: int, allocated: int, fragmented: float) -> None:
        """Record the state after a pod has arrived, placed or not.

        Args:
            arrived: milli-GPU that the pods so far ask for.
            allocated: milli-GPU that is given to pods.
            fragmented: milli-GPU that is free and fragmented.
        """
        if not self._all:
            # A cluster without GPUs has no share of them to measure.
            return
        idle = self._all - allocated
        of_idle = 100 * fragmented / idle if idle else 0.0
        measures = (100 * allocated / self._all, 100 * fragmented / self._all, of_idle)
        self._noted[round(100 * arrived / self._all)].append(measures)

    def curves(self) -> Curves:
        """Each measure by whole per cents of demand arrived, from 1 on.

        A per cent has the mean over the pods after which the rounded demand was that much. If there is none, because
        one pod was larger than a per cent, it has the mean of its neighbours.
        """
        last = max(self._noted, default=0)
        found: Curves = {name: {} for name in MEASURES}
        for percent in range(1, last + 1):
            rows = self._noted.get(percent) or [*self._noted.get(percent - 1, []), *self._noted.get(percent + 1, [])]
            for index, name in enumerate(MEASURES):
                if rows:
                    found[name][str(percent)] = round(sum(row[index] for row in rows) / len(rows), 4)
        return found


class Measuring:
    """Takes pods as they arrive, placed or not, and notes the measures after each.

    Args:
        nodes: of the cluster, empty at first; what pods get is subtracted from them.
    """

    def __init__(self, nodes: Nodes, fragmentation: Fragmentation) -> None:
        self._nodes, self._fragmentation = nodes, fragmentation
        self._noted = ByArrival(WHOLE_GPU * int(nodes.gpus.sum()))
        self._by_node = fragmentation(nodes)
        self._fragmented = float(self._by_node.sum())
        self._arrived = self._allocated = 0
        self.pods = self.placed = self.split = 0

    def arrive(self, pod: Pod, where: PodPlacement | None) -> None:
        """Add a pod that has arrived, placed or not."""
        if where is not None:
            place(self._nodes, pod, where)
        self._arrived_on(pod, None if where is None else where.node)

    def arrive_on(self, pod: Pod, node: int | None) -> None:
        """Add a pod that has arrived, with or without a node from a scheduler that does not count each GPU.

        It gets the tightest GPU of the node, or the first that are free. If there are none, it gets parts of several,
        the fullest first, and counts as split.
        """
        if node is not None:
            alone = self._nodes.some(slice(node, node + 1))
            gpus = gpus_for(pod, alone, int(alone.tightest_gpu(pod)[0]))
            if all(alone.gpu_free[0, gpu] >= pod.gpu_milli for gpu in gpus) and len(gpus) == pod.gpus:
                place(self._nodes, pod, PodPlacement(node, gpus))
            else:
                self.split += 1
                self._nodes.cpu_free[node] -= pod.cpu
                self._nodes.memory_free[node] -= pod.memory
                self._take_of_several(node, pod.total_gpu_milli)
        self._arrived_on(pod, node)

    def arrive_with(self, pod: Pod, node: int, gpus: Mapping[int, int]) -> None:
        """Add a pod that has arrived and got a node and, by its claim, thousandths of its GPUs by their numbers."""
        self._nodes.cpu_free[node] -= pod.cpu
        self._nodes.memory_free[node] -= pod.memory
        for gpu, milli in gpus.items():
            self._nodes.gpu_free[node, gpu] -= milli
        if pod.gpus:
            self._nodes.running[node, 0 if pod.shares_gpu else pod.gpus] += 1
        self._arrived_on(pod, node)

    def _take_of_several(self, node: int, milli: int) -> None:
        free = self._nodes.gpu_free[node]
        for gpu in free.argsort(kind="stable"):
            taken = min(int(free[gpu]), milli)
            free[gpu] -= taken
            milli -= taken

    def _arrived_on(self, pod: Pod, node: int | None) -> None:
        self.pods += 1
        self._arrived += pod.total_gpu_milli
        if node is not None:
            self.placed += 1
            self._allocated += pod.total_gpu_milli
            # Only this node has changed.
            now = float(self._fragmentation(self._nodes.some(slice(node, node + 1)))[0])
            self._fragmented += now - self._by_node[node]
            self._by_node[node] = now
        self._noted.note(self._arrived, self._allocated, self._fragmented)

    def curves(self) -> Curves:
        """The measures by whole per cents of demand arrived."""
        return self._noted.curves()


@dataclass(frozen=True)
class OfflineOutcome:
    """The outcome of a run."""

    seed: int
    pods: int
    placed: int
    failed: int
    failure: str
    """The message for the first of them; empty where there are none."""
    curves: Curves
    """Measures by whole per cents of demand arrived."""


def run(
    machines: Sequence[EmptyNode],
    pods: Sequence[Pod],
    policy: Policy,
    *,
    seed: int,
    ties: Ties = "name",
    inflate: float | None = None,
    shuffle: bool = True,
    skip_failures: bool = False,
) -> OfflineOutcome:
    """Place a trace whose pods stay.

    Args:
        pods: the trace's, in the order of their arrival.
        seed: of the order of pods and nodes, and of what the policy draws.
        inflate: the demand to arrive, as a share of all GPUs; None for every pod once.
        shuffle: whether the seed decides the order of pods.
        skip_failures: whether a pod that the policy fails on counts as not placed, instead of ending the run.
    """
    source = random.Random(seed)
    total = WHOLE_GPU * sum(machine.gpus for machine in machines)
    stream = list(pods)
    if shuffle or inflate is not None:
        stream = drawn(pods, attrgetter("total_gpu_milli"), total, inflate, source)
    # The published simulator numbers nodes from 0 for each seed, and breaks ties by the smallest of these names.
    shuffled = in_order(machines)
    source.shuffle(shuffled)
    nodes = empty(shuffled)
    study = Study(Fragmentation.of(typical_kinds(pods), nodes.models), source)
    placer, measuring = Placer(policy, nodes, study, ties), Measuring(nodes, study.fragmentation)
    failures: list[str] = []
    for pod in stream:
        where = None
        try:
            where = placer.place(pod)
        except PolicyFailed as error:
            if not skip_failures:
                raise
            failures.append(str(error) if not failures else "")
        measuring.arrive(pod, where)
        if where is not None:
            placer.changed(where.node)
    failure = failures[0] if failures else ""
    return OfflineOutcome(seed, measuring.pods, measuring.placed, len(failures), failure, measuring.curves())
