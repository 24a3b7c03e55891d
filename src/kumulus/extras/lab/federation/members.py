"""The members of a federation, which experiments can run on one, and what a run has in each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kumulus.extras.federation.federation import in_namespace
from kumulus.extras.journal import outages, recover, undo
from kumulus.extras.journal.book import Journal
from kumulus.extras.journal.errors import JournalError
from kumulus.extras.lab.cluster.creating import Creator, Kinds, make_namespace
from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.model import OWN, ExperimentSpec
from kumulus.extras.lab.file.timeline import OUTAGES
from kumulus.extras.lab.file.workload import NEVER
from kumulus.extras.lab.plan.pods import Object
from kumulus.kube import ApiError, Client, Unreachable, load_kubeconfig
from kumulus.kube.objects import collection
from kumulus.model.identity import Owner
from kumulus.model.names import nearest
from kumulus.nodes.faults.new_pods import wait_until_all_are_managed

if TYPE_CHECKING:
    from kumulus.extras.federation.federation import Manifest

_TIMELINE = (*OUTAGES, "delete")


_CLASS = "PriorityClass"


@dataclass(frozen=True)
class Worker:
    """A cluster that runs the hub's Jobs."""

    name: str
    kubeconfig: Path


@dataclass(frozen=True)
class RunningFederation:
    """Clusters that work as one by MultiKueue."""

    hub: str
    hub_kubeconfig: Path
    hub_name: str
    """Its own name, after which its account on workers is named."""
    workers: tuple[Worker, ...]
    queue: str
    """The LocalQueue, and the ClusterQueue behind it, on each of them."""
    namespace: str

    def worker(self, name: str) -> Worker:
        """The worker of that name.

        Raises:
            KeyError: there is none.
        """
        return {each.name: each for each in self.workers}[name]


def require_outside(experiment: ExperimentSpec, where: str) -> None:
    """Refuse an experiment that needs a federation but does not run on one.

    Args:
        where: what it runs on, such as a stack's name.
    """
    for index, event in enumerate(experiment.timeline):
        if event.action in OUTAGES:
            raise LabError(
                f"timeline[{index}].{event.action}: {where} is no hub of a federation, and has no worker "
                f"{getattr(event, event.action)}; leave it out, or run it on the hub of a stack with "
                "kumulus:federation (docs/many-clusters.md)"
            )


def require_inside(experiment: ExperimentSpec, federation: RunningFederation) -> None:
    """Refuse an experiment that cannot run on a federation, with every place and what to write there instead."""
    if problems := [*_whole(experiment), *_workloads(experiment, federation), *_timeline(experiment, federation)]:
        several = "a federation cannot run this:\n  " if len(problems) > 1 else ""
        raise LabError(several + "\n  ".join(problems))


def _whole(experiment: ExperimentSpec) -> Iterator[str]:
    if experiment.scheduler.name != OWN:
        yield (
            "scheduler: in a federation Kueue queues the Jobs and each worker's own scheduler places their pods; "
            "leave it out"
        )
    for key, setting in (
        ("policy", experiment.policy),
        ("autoscaler", experiment.autoscaler),
        ("from", experiment.from_),
        ("why", experiment.why),
    ):
        if setting:
            yield f"{key}: is of one cluster, and a federation has several; leave it out, or name one by --cluster"


def _workloads(experiment: ExperimentSpec, federation: RunningFederation) -> Iterator[str]:
    for index, each in enumerate(experiment.workloads):
        where = f"workloads[{index}]"
        if each.replay is not None:
            yield f"{where}.replay: a recorded day is played on one cluster; leave it out, or name one by --cluster"
        elif not each.manifest and each.kind != "Job":
            yield f"{where}.kind: a federation dispatches Jobs, and no {each.kind}; write kind: Job"
        for key, setting in (
            ("topology", each.topology.required),
            ("disruption", each.disruption),
            ("schedulerName", each.schedulerName),
            ("preemptionPolicy", each.preemptionPolicy == NEVER),
        ):
            if setting:
                yield f"{where}.{key}: has no effect in a federation; leave it out, or name one cluster by --cluster"
        if each.resourceClaims:
            yield f"{where}.resourceClaims: are allocated in one cluster; leave it out, or name one by --cluster"
        if each.arrival.trace is not None and each.arrival.trace.userQueues:
            yield f"{where}.arrival.trace.userQueues: a federation has one queue, {federation.queue}; leave it out"
        if each.queue not in ("", federation.queue):
            yield f"{where}.queue: the federation's queue is {federation.queue}; write that, or leave it out"


def _timeline(experiment: ExperimentSpec, federation: RunningFederation) -> Iterator[str]:
    names = [each.name for each in federation.workers]
    for index, event in enumerate(experiment.timeline):
        where = f"timeline[{index}].{event.action}"
        if event.action not in _TIMELINE:
            yield f"{where}: is of one cluster; in a federation write {', '.join(_TIMELINE[:-1])} or {_TIMELINE[-1]}"
            continue
        if event.action not in OUTAGES:
            continue
        name = str(getattr(event, event.action))
        if name not in names:
            near = nearest(name, names)
            there = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(names)}"
            what = f"{name} is the hub" if name == federation.hub else f"{name} is no worker of the federation"
            yield f"{where}: {what}; {there}"
        elif event.kill and not outages.can_be_killed(federation.worker(name).kubeconfig):
            yield (
                f"{where}: the control plane of {name} is not of the runtime kwok, and cannot be killed from here; "
                f"write partition: {name}"
            )
        elif event.partition and not outages.can_be_killed(federation.hub_kubeconfig):
            yield (
                f"{where}: the hub's Kueue is not on this machine, and cannot be led through a proxy on it; "
                f"write kill: {name}, or have a hub of the runtime kwok"
            )


@dataclass
class FederationMember:
    """A worker."""

    name: str
    client: Client
    journal: Journal
    creator: Creator | None = None
    """Creates a repetition's objects in it besides Jobs; None before the first repetition."""


class Session:
    """The workers that a run measures alongside its hub."""

    def __init__(self, federation: RunningFederation, members: Sequence[FederationMember]) -> None:
        self.federation = federation
        self.members = tuple(members)

    async def begin(self, stop: asyncio.Event) -> None:
        """Wait until KWOK manages every worker's nodes: it may miss pods that are bound to a node before that."""

        async def managed(member: FederationMember) -> None:
            # A user without the right to read leases does not wait.
            with suppress(ApiError):
                await wait_until_all_are_managed(member.client, stop)

        await asyncio.gather(*(managed(each) for each in self.members))

    async def enter(
        self,
        hub: Client,
        name: str,
        experiment: str,
        owner: Owner,
        setup: Sequence[Object],
        now: Callable[[], float],
        stop: asyncio.Event,
    ) -> None:
        """Create a repetition's namespace on each worker, and its queue there and on the hub.

        Args:
            setup: objects created before the first Job; workers get its PriorityClasses, which pods name.
        """
        classes = [each for each in setup if each["kind"] == _CLASS]
        queue = self.federation.queue
        await asyncio.gather(
            self._make(hub, in_namespace(queue, name), self.federation.hub),
            *(self._enter(each, name, experiment, owner, classes, now, stop) for each in self.members),
        )

    async def _enter(
        self,
        member: FederationMember,
        name: str,
        experiment: str,
        owner: Owner,
        classes: Sequence[Object],
        now: Callable[[], float],
        stop: asyncio.Event,
    ) -> None:
        member.creator = Creator(member.client, Kinds(member.client), member.journal, name, now, stop)
        await member.creator.resolve(classes)
        member.journal.add(namespaces=[name])
        await make_namespace(member.client, name, experiment, member.journal.changes.run, owner)
        for each in classes:
            await member.creator.one(each)
        of = self.federation
        await self._make(member.client, in_namespace(of.queue, name, hub=of.hub_name, kueue=of.namespace), member.name)

    async def _make(self, client: Client, wanted: Sequence[Manifest], where: str) -> None:
        for each in wanted:
            try:
                await client.create(collection(each), each)
            except ApiError as error:
                raise LabError(
                    f"{each['kind']} {each['metadata']['name']} is refused by {where}: {error.message}; "
                    "`pulumi up --refresh` puts a federation right"
                ) from None

    async def leave(self, name: str) -> None:
        """Remove a repetition's namespace from each worker, with everything in it."""

        async def leave(member: FederationMember) -> None:
            changes = member.journal.changes
            jobs = f"/apis/batch/v1/namespaces/{name}/jobs"
            await undo.remove_namespace(member.client, changes.run, name, [jobs])
            member.journal.drop(namespaces=[name])
            if member.creator is not None:
                await member.creator.remove_outside()

        done = await asyncio.gather(*(leave(each) for each in self.members), return_exceptions=True)
        # All workers are left as far as possible before the first error is raised.
        for each in done:
            if isinstance(each, BaseException):
                raise each


@asynccontextmanager
async def joined(
    federation: RunningFederation, run: str, experiment: str, patience: float, say: Callable[[str], None]
) -> AsyncIterator[Session]:
    """Begin a run on the workers: undo what earlier runs left, and open a journal on each.

    Raises:
        LabError: a worker is not up, or another run is under way on it.
    """
    async with AsyncExitStack() as around:
        members = []
        for each in federation.workers:
            if not each.kubeconfig.exists():
                raise LabError(f"the worker {each.name} is not up; `pulumi up --refresh` makes it")
            client = await around.enter_async_context(Client(load_kubeconfig(each.kubeconfig), patience=patience))
            try:
                journal, put_back = await recover.begin(client, run, experiment)
            except (ApiError, JournalError, Unreachable) as error:
                raise LabError(f"worker {each.name}: {error}") from None
            around.push_async_callback(recover.end, journal)
            for line in put_back:
                say(f"{each.name}: {line}")
            members.append(FederationMember(each.name, client, journal))
        yield Session(federation, members)
