"""Accounts for a run's pods as they arrive, and says in the end how far they filled the cluster."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Sequence
from typing import TYPE_CHECKING, Protocol

from kumulus.extras.lab.extender.ledger import machines_of
from kumulus.extras.lab.file.load import LoadedExperiment
from kumulus.extras.lab.file.model import ExperimentSpec
from kumulus.extras.lab.measure.views import ClaimView, PodView
from kumulus.extras.lab.offline.measuring import Measuring
from kumulus.extras.lab.offline.placing import EmptyNode, empty
from kumulus.extras.lab.plan.asked import pods_planned, pods_typical
from kumulus.extras.lab.plan.plan import RepetitionPlan
from kumulus.extras.lab.policies import Pod
from kumulus.extras.lab.policies.fragmentation import Fragmentation, typical_kinds
from kumulus.extras.lab.report.model import PolicyUsed

if TYPE_CHECKING:
    from kumulus.kube import Client

OnClaim = Callable[[str, ClaimView | None], None]
"""Takes a claim's key and state; None: it is gone."""


class Arriving(Protocol):
    """Accounts for the pods of each repetition in turn.

    Attributes:
        in_order: whether pods have to be created one at a time, because their order matters.
        claims: takes what the cluster reports of each ResourceClaim, by its key; None if claims are not watched.
    """

    in_order: bool
    claims: OnClaim | None

    async def begin(self, plan: RepetitionPlan) -> None:
        """Begin a repetition."""

    def seen(self, pod: PodView, over: bool) -> None:
        """Take what the cluster reports of a pod of the experiment."""

    async def used(self, complete: bool) -> PolicyUsed | None:
        """How far the repetition filled the cluster; None where that cannot be said.

        Args:
            complete: whether everything was created; if not, the pods planned after the last one seen were not.
        """


class ByNode:
    """Records the node of each pod, which is all that a scheduler without GPU indices reports.

    A pod is assumed to have the GPUs of its node that are best for later pods: for a share, the tightest. If no GPU has
    room for it, but all together have, it gets parts of several. This is counted, since no real node could do it.
    """

    in_order = True

    def __init__(self, loaded: LoadedExperiment, client: Client) -> None:
        self._loaded, self._client = loaded, client
        self.claims: OnClaim | None = None
        self._plan: RepetitionPlan | None = None
        self._machines: list[EmptyNode] = []
        self._nodes: dict[str, tuple[str, str]] = {}
        self._seen: set[str] = set()

    async def begin(self, plan: RepetitionPlan) -> None:
        """See :meth:`Arriving.begin`."""
        self._plan, self._nodes, self._seen = plan, {}, set()
        self._machines = await machines_of(self._client, self._loaded.experiment.productLabel)

    def seen(self, pod: PodView, over: bool) -> None:
        """See :meth:`Arriving.seen`."""
        self._seen.add(pod.job)
        if over:
            self._nodes.pop(pod.uid, None)
        elif pod.node:
            self._nodes[pod.uid] = (pod.job, pod.node)

    async def used(self, complete: bool) -> PolicyUsed:
        """See :meth:`Arriving.used`."""
        plan = self._plan
        assert plan is not None
        numbers = {machine.name: number for number, machine in enumerate(self._machines)}
        places: dict[str, list[tuple[str, int]]] = defaultdict(list)
        for uid, (job, node) in self._nodes.items():
            # A node that was added since is not part of the measured cluster.
            if node in numbers:
                places[job].append((uid, numbers[node]))
        planned = pods_planned(plan, self._loaded.experiment.productLabel)
        nodes = empty(self._machines)
        typical = typical_kinds(pods_typical(self._loaded, plan))
        measuring = Measuring(nodes, Fragmentation.of(typical, nodes.models))
        for pod in came(planned, self._seen, complete):
            of_job = places[pod.name]
            if of_job:
                self._arrived(measuring, pod, *of_job.pop(0))
            else:
                measuring.arrive(pod, None)
        return PolicyUsed(split=measuring.split, **measuring.curves())

    def _arrived(self, measuring: Measuring, pod: Pod, uid: str, node: int) -> None:
        measuring.arrive_on(pod, node)


class ByClaim(ByNode):
    """Records each pod's share of each GPU, as the allocation of its claim says."""

    def __init__(self, loaded: LoadedExperiment, client: Client) -> None:
        super().__init__(loaded, client)
        self.claims = self._claim
        self._claims: dict[str, ClaimView] = {}
        self._had: dict[str, Counter[int]] = {}

    async def begin(self, plan: RepetitionPlan) -> None:
        """See :meth:`Arriving.begin`."""
        self._claims = {}
        await super().begin(plan)

    def _claim(self, key: str, found: ClaimView | None) -> None:
        if found is None:
            self._claims.pop(key, None)
        elif found.gpus:
            self._claims[key] = found

    async def used(self, complete: bool) -> PolicyUsed:
        """See :meth:`Arriving.used`."""
        self._had = defaultdict(Counter)
        for claim in self._claims.values():
            for uid in claim.pods:
                for _, gpu, milli in claim.gpus:
                    self._had[uid][gpu] += milli
        return await super().used(complete)

    def _arrived(self, measuring: Measuring, pod: Pod, uid: str, node: int) -> None:
        measuring.arrive_with(pod, node, self._had.get(uid, {}))


def by_node(loaded: LoadedExperiment, client: Client) -> ByNode | None:
    """An account of the pods of an experiment without a policy; None if measures by demand would mean nothing.

    They mean something if a trace's pods ask for GPUs and no pod ever ends.
    """
    recorded = (job.asked for jobs in loaded.traces.values() for job in jobs)
    if nothing_ends(loaded.experiment) and any(asked is not None and asked.gpus for asked in recorded):
        claimed = any(each.resourceClaims for each in loaded.experiment.workloads)
        return ByClaim(loaded, client) if claimed else ByNode(loaded, client)
    return None


def came(planned: Sequence[Pod], seen: Container[str], complete: bool) -> Sequence[Pod]:
    """The planned pods, in their order, that have been created.

    Args:
        planned: named as their jobs.
        seen: jobs with a pod; a job that waits in a queue has none.
        complete: whether all were created.
    """
    if complete:
        return planned
    last = max((number for number, pod in enumerate(planned, start=1) if pod.name in seen), default=0)
    return planned[:last]


def nothing_ends(experiment: ExperimentSpec) -> bool:
    """Whether all pods stay, so that a pod that fits nowhere never will."""
    traces = [workload.arrival.trace for workload in experiment.workloads]
    return not experiment.timeline and all(
        trace.stay if trace is not None else workload.duration is None
        for workload, trace in zip(experiment.workloads, traces, strict=True)
    )
