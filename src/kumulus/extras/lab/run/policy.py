"""A policy alongside a kube-scheduler that is started for the run: serves the policy, and measures what it does."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.extender.column import kept
from kumulus.extras.lab.extender.configuration import KUBE_SCHEDULER, extended, served, watched, written
from kumulus.extras.lab.extender.extender import Extender
from kumulus.extras.lab.extender.ledger import machines_of
from kumulus.extras.lab.extender.observed_policy import ObservedPolicy
from kumulus.extras.lab.file.load import LoadedExperiment
from kumulus.extras.lab.file.model import OWN, SchedulerSpec
from kumulus.extras.lab.measure.clock import Clock
from kumulus.extras.lab.measure.views import PodView
from kumulus.extras.lab.offline.measuring import Measuring
from kumulus.extras.lab.offline.placing import EmptyNode, PodPlacement, empty
from kumulus.extras.lab.plan.asked import pods_planned, pods_typical
from kumulus.extras.lab.plan.plan import RepetitionPlan
from kumulus.extras.lab.policies import Pod
from kumulus.extras.lab.policies.load import policy
from kumulus.extras.lab.report.model import PolicyUsed
from kumulus.extras.lab.run.arriving import Arriving, OnClaim, came, nothing_ends
from kumulus.extras.schedulers import registry

if TYPE_CHECKING:
    from kumulus.kube import Client


def with_scheduler(loaded: LoadedExperiment) -> LoadedExperiment:
    """Have the run start a kube-scheduler for an experiment with `policy` or `why`, if it names none."""
    experiment = loaded.experiment
    if not (experiment.policy or experiment.why) or experiment.scheduler.name == KUBE_SCHEDULER:
        return loaded
    if experiment.scheduler.name != OWN:
        if not experiment.policy:
            return _saying_why(loaded)
        raise LabError(
            f"policy: {experiment.policy} cannot be combined with scheduler: {experiment.scheduler.name}, which asks "
            "no extender\n  Leave one of them out; the policy is asked by kube-scheduler"
        )
    # Not the cluster's own: only the cluster itself asks that one.
    changed = experiment.model_copy(update={"scheduler": SchedulerSpec(name=KUBE_SCHEDULER)})
    return replace(loaded, experiment=changed)


def _saying_why(loaded: LoadedExperiment) -> LoadedExperiment:
    name = loaded.experiment.scheduler.name
    if loaded.experiment.whyPolicy:
        raise LabError(
            f"whyPolicy: {loaded.experiment.whyPolicy} cannot be combined with scheduler: {name}\n"
            "  Leave one of them out; the policy looks at what kube-scheduler does"
        )
    if not registry.get(name).decisions:
        able = " and ".join(each.name for each in registry.every() if each.decisions)
        raise LabError(
            f"why: true cannot be combined with scheduler: {name}, which does not log its scores\n"
            f"  Leave one of them out; {able} do"
        )
    return loaded


class _OfPolicy:
    """What a policy that decides and one that looks on have in common: the pods as planned, the nodes as they are."""

    def __init__(self, loaded: LoadedExperiment, client: Client) -> None:
        self._loaded, self._client = loaded, client
        self._planned: list[Pod] = []

    async def _begun(self, plan: RepetitionPlan) -> tuple[list[EmptyNode], list[Pod], random.Random]:
        """The nodes, the typical pods, and the source of random numbers as it is after the pods were drawn."""
        label = self._loaded.experiment.productLabel
        self._planned = pods_planned(plan, label)
        self._wants = {pod.name: pod for pod in self._planned}
        source = random.Random()
        source.setstate(plan.drawn)
        return await machines_of(self._client, label), pods_typical(self._loaded, plan), source

    def _asks(self, pod: PodView) -> Pod:
        return self._wants.get(pod.job) or Pod(pod.job, pod.wants.cpu, pod.wants.memory >> 20)


class Policies(_OfPolicy):
    """The policy of a run, which accounts for the pods of each repetition."""

    in_order = True
    claims: OnClaim | None = None

    def __init__(self, extender: Extender, loaded: LoadedExperiment, client: Client) -> None:
        super().__init__(loaded, client)
        self._extender = extender
        self._seen: set[str] = set()

    async def begin(self, plan: RepetitionPlan) -> None:
        """Begin a repetition."""
        self._seen = set()
        self._extender.begin(*await self._begun(plan))

    def seen(self, pod: PodView, over: bool) -> None:
        """Take what the cluster reports of a pod of the experiment."""
        self._seen.add(pod.job)
        self._extender.seen(pod.uid, pod.job, pod.node, over, lambda: self._asks(pod))

    def ended(self) -> str:
        """Why the policy ends the run; empty while it does not."""
        return self._extender.ended

    async def used(self, complete: bool) -> PolicyUsed:
        """See :meth:`.Arriving.used`; also says what the policy did."""
        await self._extender.settle()
        done = self._extender.done
        machines = self._extender.ledger.machines
        numbers = {machine.name: number for number, machine in enumerate(machines)}
        measuring = Measuring(empty(machines), self._extender.study.fragmentation)
        places = {name: list(there) for name, there in done.places.items()}
        for pod in came(self._planned, self._seen, complete) if nothing_ends(self._loaded.experiment) else ():
            placed = places.get(pod.name)
            where = placed.pop(0) if placed else None
            measuring.arrive(pod, PodPlacement(numbers[where[0]], where[1]) if where else None)
        return PolicyUsed(
            policy=self._loaded.experiment.policy,
            ties="random" if self._extender.policy.leaves else self._loaded.experiment.policyTies,
            asked=done.asked,
            failed=done.failed,
            failure=done.failure,
            elsewhere=done.elsewhere,
            seconds=done.took(),
            **measuring.curves(),
        )


@asynccontextmanager
async def deciding(
    loaded: LoadedExperiment, client: Client, directory: Path
) -> AsyncIterator[tuple[Policies, SchedulerSpec]]:
    """Serve an experiment's policy.

    Args:
        directory: of the scheduler, where the policy's scores are kept if the experiment is to say why.

    Yields:
        the policy, and the scheduler that is to be started, which asks it.
    """
    experiment = loaded.experiment
    limit = experiment.policyTimeout
    with kept(directory) if experiment.why else nullcontext() as columns:
        extender = Extender(
            policy(experiment.policy, loaded.directory, limit),
            ties=experiment.policyTies,
            on_failure=experiment.onPolicyError,
            limit=limit,
            product_label=experiment.productLabel,
            refresh=lambda: machines_of(client, experiment.productLabel),
            now=Clock(),
            keep=columns.keep if columns is not None else None,
        )
        try:
            async with served(extender.filter) as url:
                once = nothing_ends(experiment)
                document = extended(_own(loaded), url, limit, once=once, scoring=extender.policy.leaves)
                yield Policies(extender, loaded, client), _asking(loaded, directory, "with-policy.yaml", document)
        finally:
            extender.close()


class LookingOn(_OfPolicy):
    """Passes what happens to pods to the policy, and to the run's own account of pods, if any.

    Args:
        other: the run's own account of pods; None if there is none.
    """

    def __init__(
        self, observed: ObservedPolicy, loaded: LoadedExperiment, client: Client, other: Arriving | None
    ) -> None:
        super().__init__(loaded, client)
        self._observed, self._other = observed, other
        self.in_order = other is not None and other.in_order
        self.claims = other.claims if other is not None else None

    async def begin(self, plan: RepetitionPlan) -> None:
        """See :meth:`.Arriving.begin`."""
        self._observed.begin(*await self._begun(plan))
        if self._other is not None:
            await self._other.begin(plan)

    def seen(self, pod: PodView, over: bool) -> None:
        """See :meth:`.Arriving.seen`."""
        self._observed.seen(pod.uid, pod.node, over, lambda: self._asks(pod))
        if self._other is not None:
            self._other.seen(pod, over)

    async def used(self, complete: bool) -> PolicyUsed | None:
        """See :meth:`.Arriving.used`."""
        await self._observed.settle()
        return await self._other.used(complete) if self._other is not None else None


@asynccontextmanager
async def looking_on(
    loaded: LoadedExperiment, client: Client, directory: Path, other: Arriving | None
) -> AsyncIterator[tuple[LookingOn, SchedulerSpec]]:
    """Serve the policy that looks on; the rest as of :func:`deciding`.

    Args:
        other: the run's own account of pods, if any.
    """
    experiment = loaded.experiment
    chosen = policy(experiment.whyPolicy, loaded.directory, experiment.policyTimeout)
    if chosen.leaves:
        raise LabError(
            f"whyPolicy: {experiment.whyPolicy} has no scores of its own\n  Write another one, or leave it out"
        )
    with kept(directory) as columns:
        observed = ObservedPolicy(
            chosen,
            limit=experiment.policyTimeout,
            product_label=experiment.productLabel,
            refresh=lambda: machines_of(client, experiment.productLabel),
            keep=columns.keep,
        )
        try:
            async with served(observed.filter) as url:
                asking = _asking(loaded, directory, "with-why-policy.yaml", watched(_own(loaded), url))
                yield LookingOn(observed, loaded, client, other), asking
        finally:
            await observed.close()


def _own(loaded: LoadedExperiment) -> Path | None:
    config = loaded.experiment.scheduler.config
    return loaded.directory / config if config else None


def _asking(loaded: LoadedExperiment, directory: Path, name: str, document: dict[str, Any]) -> SchedulerSpec:
    """The experiment's scheduler, with a configuration that has it ask a policy."""
    return loaded.experiment.scheduler.model_copy(update={"config": str(written(directory, name, document))})
