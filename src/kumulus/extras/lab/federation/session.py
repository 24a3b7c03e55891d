"""The hub and the workers of a federation for the time of a run: clients, journals, and a namespace in each of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kumulus.extras.federation.federation import in_namespace
from kumulus.extras.journal import recover, undo
from kumulus.extras.journal.book import Journal
from kumulus.extras.journal.errors import JournalError
from kumulus.extras.lab.cluster import namespace
from kumulus.extras.lab.cluster.creating import Creator
from kumulus.extras.lab.cluster.kinds import Kinds
from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.federation.members import Federation
from kumulus.extras.lab.plan.pods import Object
from kumulus.kube import ApiError, Client, Unreachable, load_kubeconfig
from kumulus.kube.paths import collection
from kumulus.model.identity import Owner
from kumulus.nodes.faults.new_pods import wait_until_all_are_managed

if TYPE_CHECKING:
    from kumulus.extras.federation.federation import Manifest

_CLASS = "PriorityClass"


@dataclass
class Member:
    """A worker."""

    name: str
    """What the stack file calls it."""
    client: Client
    """Of the worker."""
    journal: Journal
    """The run's on it."""
    creator: Creator | None = None
    """Creates a repetition's objects in it besides Jobs; None before the first repetition."""


class Session:
    """The workers that a run measures beside its hub."""

    def __init__(self, federation: Federation, members: Sequence[Member]) -> None:
        self.federation = federation
        self.members = tuple(members)

    async def begin(self, stop: asyncio.Event) -> None:
        """Wait until KWOK manages every worker's nodes: it may miss pods that are bound to a node before that."""

        async def managed(member: Member) -> None:
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
        member: Member,
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
        await namespace.make(member.client, name, experiment, member.journal.changes.run, owner)
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

        async def leave(member: Member) -> None:
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
    federation: Federation, run: str, experiment: str, patience: float, say: Callable[[str], None]
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
            members.append(Member(each.name, client, journal))
        yield Session(federation, members)
