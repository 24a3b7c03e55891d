"""A policy beside a kube-scheduler that is started for the run: serving it, and measuring what it did."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kumulus.extras.lab.cluster.components import Components
from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.extender.column import kept
from kumulus.extras.lab.extender.configuration import KUBE_SCHEDULER, extended, served, written
from kumulus.extras.lab.extender.extender import Extender
from kumulus.extras.lab.extender.reading import machines_of
from kumulus.extras.lab.file.load import Loaded
from kumulus.extras.lab.file.model import OWN
from kumulus.extras.lab.file.model import Scheduler as Wanted
from kumulus.extras.lab.measure.clock import Clock
from kumulus.extras.lab.measure.views import PodView
from kumulus.extras.lab.offline.measuring import Measuring
from kumulus.extras.lab.offline.placing import Placement, empty
from kumulus.extras.lab.plan.asked import pods_planned, pods_typical
from kumulus.extras.lab.plan.plan import Plan
from kumulus.extras.lab.policies import Pod
from kumulus.extras.lab.policies.load import policy
from kumulus.extras.lab.report.model import PolicyUsed
from kumulus.extras.lab.run.arriving import OnClaim, came, nothing_ends
from kumulus.extras.lab.run.second import SecondSwitch, started
from kumulus.extras.schedulers import registry
from kumulus.extras.schedulers.launch.plan import Switches

if TYPE_CHECKING:
    from kumulus.kube import Client


def with_scheduler(loaded: Loaded) -> Loaded:
    """Have the run start a kube-scheduler for an experiment with `policy` or `why`, if it names none."""
    experiment = loaded.experiment
    if not (experiment.policy or experiment.why) or experiment.scheduler.name == KUBE_SCHEDULER:
        return loaded
    if experiment.scheduler.name != OWN:
        if not experiment.policy:
            return _saying_why(loaded)
        raise LabError(
            f"policy: {experiment.policy} cannot be beside scheduler: {experiment.scheduler.name}, which asks no "
            "extender\n  Leave one of them out; the policy is asked by kube-scheduler"
        )
    # Not the cluster's own: only the cluster itself asks that one.
    changed = experiment.model_copy(update={"scheduler": Wanted(name=KUBE_SCHEDULER)})
    return replace(loaded, experiment=changed)


def _saying_why(loaded: Loaded) -> Loaded:
    name = loaded.experiment.scheduler.name
    if loaded.experiment.whyPolicy:
        raise LabError(
            f"whyPolicy: {loaded.experiment.whyPolicy} cannot be beside scheduler: {name}\n"
            "  Leave one of them out; the policy looks at what kube-scheduler does"
        )
    if not registry.get(name).decisions:
        able = " and ".join(each.name for each in registry.every() if each.decisions)
        raise LabError(
            f"why: true cannot be beside scheduler: {name}, which does not log its scores\n"
            f"  Leave one of them out; {able} do"
        )
    return loaded


class Policies:
    """The policy of a run, which accounts for the pods of each repetition."""

    in_order = True

    def __init__(self, extender: Extender, loaded: Loaded, client: Client) -> None:
        self._extender, self._loaded, self._client = extender, loaded, client
        self.claims: OnClaim | None = None
        self._product_label = loaded.experiment.productLabel
        self._planned: list[Pod] = []
        self._wants: dict[str, Pod] = {}
        self._seen: set[str] = set()

    async def begin(self, plan: Plan) -> None:
        """Begin a repetition."""
        self._planned, self._seen = pods_planned(plan, self._product_label), set()
        self._wants = {pod.name: pod for pod in self._planned}
        source = random.Random()
        source.setstate(plan.drawn)
        machines = await machines_of(self._client, self._product_label)
        self._extender.begin(machines, pods_typical(self._loaded, plan), source)

    def seen(self, pod: PodView, over: bool) -> None:
        """Take what the cluster reports of a pod of the experiment."""
        self._seen.add(pod.job)

        def wants() -> Pod:
            return self._wants.get(pod.job) or Pod(pod.job, pod.wants.cpu, pod.wants.memory >> 20)

        self._extender.seen(pod.uid, pod.job, pod.node, over, wants)

    @property
    def leaves(self) -> bool:
        """Whether the policy leaves the choice to kube-scheduler's own scores."""
        return self._extender.leaves

    @property
    def ended(self) -> str:
        """Why the policy ends the run; empty while it does not."""
        return self._extender.ended

    async def used(self, complete: bool) -> PolicyUsed:
        """See :meth:`kumulus.extras.lab.run.arriving.Arriving.used`; also says what the policy did."""
        await self._extender.settle()
        done = self._extender.done
        machines = self._extender.machines
        numbers = {machine.name: number for number, machine in enumerate(machines)}
        measuring = Measuring(empty(machines), self._extender.fragmentation)
        places = {name: list(there) for name, there in done.places.items()}
        for pod in came(self._planned, self._seen, complete) if nothing_ends(self._loaded.experiment) else ():
            placed = places.get(pod.name)
            where = placed.pop(0) if placed else None
            measuring.arrive(pod, Placement(numbers[where[0]], where[1]) if where else None)
        return PolicyUsed(
            policy=self._loaded.experiment.policy,
            ties="random" if self._extender.leaves else self._loaded.experiment.policyTies,
            asked=done.asked,
            failed=done.failed,
            failure=done.failure,
            elsewhere=done.elsewhere,
            seconds=done.took(),
            **measuring.curves(),
        )


@asynccontextmanager
async def extending(loaded: Loaded, client: Client, directory: Path) -> AsyncIterator[tuple[Policies, str]]:
    """Serve an experiment's policy.

    Args:
        directory: of the scheduler, where the policy's scores are kept if the experiment is to say why.

    Yields:
        the policy, and the address at which kube-scheduler asks it.
    """
    experiment = loaded.experiment

    async def refresh() -> list[Any]:
        return await machines_of(client, experiment.productLabel)

    with kept(directory) if experiment.why else nullcontext() as columns:
        extender = Extender(
            policy(experiment.policy, loaded.directory, experiment.policyTimeout),
            ties=experiment.policyTies,
            on_failure=experiment.onPolicyError,
            limit=experiment.policyTimeout,
            product_label=experiment.productLabel,
            refresh=refresh,
            now=Clock(),
            keep=columns.keep if columns is not None else None,
        )
        try:
            async with served(extender.filter) as url:
                yield Policies(extender, loaded, client), url
        finally:
            extender.close()


async def started_with(
    policies: Policies,
    url: str,
    loaded: Loaded,
    kubeconfig: Path,
    directory: Path,
    components: Components,
    run: str,
) -> SecondSwitch:
    """Start the kube-scheduler that asks the policy; a failed policy ends it, too."""
    experiment = loaded.experiment
    wanted = experiment.scheduler
    own = loaded.directory / wanted.config if wanted.config else None
    once = nothing_ends(experiment)
    document = extended(own, url, experiment.policyTimeout, once=once, scoring=policies.leaves)
    file = written(directory, "with-policy.yaml", document)
    asking = wanted.model_copy(update={"config": str(file)})
    switches = Switches(decisions=experiment.why)
    second = await started(asking, kubeconfig, directory, loaded.directory, components, run, switches=switches)
    second.ended_otherwise = lambda: policies.ended
    return second
