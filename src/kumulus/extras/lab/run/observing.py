"""A policy that only observes: its scores of the nodes that kube-scheduler chose, for `experiment why`."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.extender.column import kept
from kumulus.extras.lab.extender.configuration import served, watched, written
from kumulus.extras.lab.extender.observed_policy import ObservedPolicy
from kumulus.extras.lab.extender.reading import machines_of
from kumulus.extras.lab.file.load import Loaded
from kumulus.extras.lab.file.model import Scheduler
from kumulus.extras.lab.measure.views import PodView
from kumulus.extras.lab.plan.asked import pods_planned, pods_typical
from kumulus.extras.lab.plan.plan import Plan
from kumulus.extras.lab.policies import Pod
from kumulus.extras.lab.policies.load import policy
from kumulus.extras.lab.report.model import PolicyUsed
from kumulus.extras.lab.run.arriving import Arriving

if TYPE_CHECKING:
    from kumulus.kube import Client


class LookingOn:
    """Passes what happens to pods to the policy, and to the run's own account of pods, if any.

    Args:
        other: the run's own account of pods; None if there is none.
    """

    def __init__(self, observed: ObservedPolicy, loaded: Loaded, client: Client, other: Arriving | None) -> None:
        self._observed, self._loaded, self._client, self._other = observed, loaded, client, other
        self._product_label = loaded.experiment.productLabel
        self._wants: dict[str, Pod] = {}
        self.in_order = other is not None and other.in_order
        self.claims = other.claims if other is not None else None

    async def begin(self, plan: Plan) -> None:
        """See :meth:`kumulus.extras.lab.run.arriving.Arriving.begin`."""
        self._wants = {pod.name: pod for pod in pods_planned(plan, self._product_label)}
        source = random.Random()
        source.setstate(plan.drawn)
        machines = await machines_of(self._client, self._product_label)
        self._observed.begin(machines, pods_typical(self._loaded, plan), source)
        if self._other is not None:
            await self._other.begin(plan)

    def seen(self, pod: PodView, over: bool) -> None:
        """See :meth:`kumulus.extras.lab.run.arriving.Arriving.seen`."""

        def wants() -> Pod:
            return self._wants.get(pod.job) or Pod(pod.job, pod.wants.cpu, pod.wants.memory >> 20)

        self._observed.seen(pod.uid, pod.node, over, wants)
        if self._other is not None:
            self._other.seen(pod, over)

    async def used(self, complete: bool) -> PolicyUsed | None:
        """See :meth:`kumulus.extras.lab.run.arriving.Arriving.used`."""
        await self._observed.settle()
        return await self._other.used(complete) if self._other is not None else None


@asynccontextmanager
async def looking_on(
    loaded: Loaded, client: Client, directory: Path, other: Arriving | None
) -> AsyncIterator[tuple[LookingOn, Scheduler]]:
    """Serve the observing policy.

    Args:
        directory: of the scheduler, where the policy's scores are kept.
        other: the run's own account of pods, if any.

    Yields:
        the policy, and the scheduler that is to be started.
    """
    experiment = loaded.experiment
    chosen = policy(experiment.whyPolicy, loaded.directory, experiment.policyTimeout)
    if chosen.leaves:
        raise LabError(
            f"whyPolicy: {experiment.whyPolicy} has no scores of its own\n  Write another one, or leave it out"
        )

    async def refresh() -> list[Any]:
        return await machines_of(client, experiment.productLabel)

    with kept(directory) as columns:
        observed = ObservedPolicy(
            chosen,
            limit=experiment.policyTimeout,
            product_label=experiment.productLabel,
            refresh=refresh,
            keep=columns.keep,
        )
        try:
            async with served(observed.filter) as url:
                own = loaded.directory / experiment.scheduler.config if experiment.scheduler.config else None
                file = written(directory, "with-why-policy.yaml", watched(own, url))
                scheduler = experiment.scheduler.model_copy(update={"config": str(file)})
                yield LookingOn(observed, loaded, client, other), scheduler
        finally:
            await observed.close()
