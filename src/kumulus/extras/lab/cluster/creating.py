"""Create a namespace, and in it what is planned: each job when it is due, as fast as the API server accepts them.

What a repetition creates is in its namespace and is deleted with it: a run leaves the cluster as it found it. The next
command removes what a killed run left behind, by its journal; see :mod:`kumulus.extras.journal`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kumulus.extras.journal import undo
from kumulus.extras.journal.book import Journal
from kumulus.extras.journal.namespace import EXPERIMENT_LABEL, PROCESS
from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.plan.pods import Object, PlannedJob
from kumulus.extras.schedulers import registry
from kumulus.host import lifetime
from kumulus.kube import ApiError
from kumulus.kube.bulk import for_each
from kumulus.kube.namespaces import NAMESPACES
from kumulus.kube.objects import inside, root, wait_for_account
from kumulus.model.identity import NOBODY, RUN_LABEL, Owner

if TYPE_CHECKING:
    from kumulus.kube import Client

# Jobs that are due within this many seconds are created together.
_TOGETHER = 0.02
_LOOK_EVERY = 0.1


# A controller manager whose watch was cut off, as by a restart of the API server, restarts it within half a minute.
_ACCOUNT_WITHIN = 90.0


class Creator:
    """Creates objects in a namespace.

    Args:
        kinds: where the API serves each kind.
        journal: lists objects outside the namespace before they are created.
        namespace: where namespaced objects go.
        stop: when set, nothing more is created.
        tell: takes each job that was created.

    Attributes:
        done_at: when all jobs were created.
        placed_at: when all pods of the jobs that wait for no others had a node; set from outside.
    """

    def __init__(
        self,
        client: Client,
        kinds: Kinds,
        journal: Journal,
        namespace: str,
        now: Callable[[], float],
        stop: asyncio.Event,
        tell: Callable[[PlannedJob], None] = lambda _: None,
    ) -> None:
        self._tell = tell
        self._client = client
        self._kinds = kinds
        self._journal = journal
        self._namespace = namespace
        self._now = now
        self._stop = stop
        self.collections: dict[str, None] = {}
        self._outside: dict[tuple[str, str], str] = {}
        self._cancelled: set[str] = set()
        self.done_at: float | None = None
        self.placed_at: float | None = None

    def cancel(self, job: PlannedJob) -> None:
        """Do not create a job, if that has not happened yet."""
        self._cancelled.add(job.name)

    async def resolve(self, objects: Sequence[Object]) -> None:
        """Check that the cluster knows every kind, and list objects outside the namespace in the journal."""
        for version, kind in dict.fromkeys((each["apiVersion"], each["kind"]) for each in objects):
            path = await self._kinds.path(version, kind, self._namespace)
            if await self._kinds.namespaced(version, kind):
                self.collections[path] = None
            else:
                self._outside[version, kind] = path
        paths = [
            f"{self._outside[kind]}/{each['metadata']['name']}"
            for each in objects
            if (kind := (each["apiVersion"], each["kind"])) in self._outside and each["metadata"].get("name")
        ]
        if paths:
            self._journal.add(outside=paths)

    async def one(self, each: Object) -> None:
        """Create one object; an existing one outside the namespace is left as it is, and stays."""
        path = await self._kinds.path(each["apiVersion"], each["kind"], self._namespace)
        name = each["metadata"].get("name", "")
        if not await self._kinds.namespaced(each["apiVersion"], each["kind"]):
            labels = {**each["metadata"].get("labels", {}), RUN_LABEL: self._journal.changes.run}
            each = {**each, "metadata": {**each["metadata"], "labels": labels}}
        try:
            await self._client.write("POST", path, json.dumps(each, separators=(",", ":")).encode())
        except ApiError as error:
            if error.status == 409 and error.reason == "AlreadyExists":
                return
            raise LabError(f"{each['kind']} {name} is refused: {error.message}") from None

    async def jobs(self, jobs: Sequence[PlannedJob], at_once: int) -> None:
        """Create jobs, each when it is due.

        Args:
            jobs: in the order of their times.
            at_once: how many at once; with 1 they are created one after the other.
        """
        due = list(jobs)
        while due and not self._stop.is_set():
            once = due[0].once
            if once and self.placed_at is None:
                await _sleep(_LOOK_EVERY, self._stop)
                continue
            since = self.placed_at or 0.0 if once else 0.0
            wait = since + due[0].at - self._now()
            if wait > 0:
                await _sleep(wait, self._stop)
                continue
            latest = self._now() - since + _TOGETHER
            count = next((n for n, job in enumerate(due) if job.once != once or job.at > latest), len(due))
            now, due = due[:count], due[count:]
            outcome = await for_each(now, self._job, workers=at_once, stop=self._stop, lanes=self._client.lanes)
            if outcome.failed and not self._stop.is_set():
                raise outcome.failed[0][1]
        self.done_at = self._now()

    async def _job(self, job: PlannedJob) -> None:
        if job.name in self._cancelled:
            return
        for each in job.objects:
            await self.one(each)
        self._tell(job)

    async def remove_outside(self) -> None:
        """Delete what the run created outside the namespace, last first; older objects stay."""
        changes = self._journal.changes
        await undo.remove_marked(self._client, changes.run, reversed(changes.outside), one_by_one=True)
        self._journal.drop(outside=changes.outside)


async def _sleep(seconds: float, stop: asyncio.Event) -> None:
    try:
        await asyncio.wait_for(stop.wait(), seconds)
    except TimeoutError:
        return


class Kinds:
    """The kinds that a cluster knows."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[str, dict[str, tuple[str, bool]]] = {}

    async def path(self, version: str, kind: str, namespace: str) -> str:
        """The path of a kind's collection, in a namespace if the kind is namespaced."""
        plural, namespaced = await self._resource(version, kind)
        where = inside(namespace if namespaced else "")
        return f"{root(version)}{where}/{plural}"

    async def namespaced(self, version: str, kind: str) -> bool:
        """Whether objects of the kind are in a namespace; raises the same errors as :meth:`path`."""
        return (await self._resource(version, kind))[1]

    async def _resource(self, version: str, kind: str) -> tuple[str, bool]:
        if version not in self._known:
            self._known[version] = await self._ask(version)
        try:
            return self._known[version][kind]
        except KeyError:
            remedy = _remedy(version.partition("/")[0])
            raise LabError(f"the cluster knows no {kind} of {version}; {remedy}") from None

    async def _ask(self, version: str) -> dict[str, tuple[str, bool]]:
        try:
            found = await self._client.get(root(version))
        except ApiError as error:
            if error.status != 404:
                raise
            return {}
        return {
            each["kind"]: (each["name"], bool(each["namespaced"]))
            for each in found["resources"]
            if "/" not in each["name"]
        }


def _remedy(group: str) -> str:
    if group == "jobset.x-k8s.io":
        return "its controller has to be in the cluster, by its chart for example: `kumulus docs pods`"
    if group == "scheduling.k8s.io":
        return "write kwok: {workloads: native} in the stack file"
    for scheduler in registry.every():
        if group in scheduler.api_groups:
            return f"write scheduler: {{name: {scheduler.name}}}"
    return "check apiVersion and kind, or install what defines it"


async def make_namespace(client: Client, name: str, experiment: str, run: str, owner: Owner = NOBODY) -> None:
    """Create a namespace and wait until pods can be created in it."""
    labels = {EXPERIMENT_LABEL: experiment, RUN_LABEL: run, **owner.labels}
    metadata = {"name": name, "labels": labels, "annotations": {PROCESS: lifetime.own(), **owner.annotations}}
    await client.create(NAMESPACES, {"metadata": metadata})
    if not await wait_for_account(client, name, _ACCOUNT_WITHIN):
        raise LabError(f"the namespace {name} gets no ServiceAccount; does the controller manager run?")
