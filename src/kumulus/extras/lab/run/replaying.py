"""Play a recording in namespaces of the run: every step when it is due, the steps of one workload one at a time."""

from __future__ import annotations

import asyncio
import copy
import hashlib
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from kumulus.extras.lab.cluster.creating import Kinds
from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.measure.records import ExperimentRecords
from kumulus.extras.lab.plan.pods import JOB_LABEL, WORKLOAD_LABEL, Object, PlannedJob
from kumulus.extras.lab.plan.replayed import PlannedStep, Replayed
from kumulus.kube import ApiError
from kumulus.kube.codecs import JSON, JSON_PATCH
from kumulus.kube.pods import PODS
from kumulus.model.names import dns_safe

if TYPE_CHECKING:
    from kumulus.kube import Client

_MOST_REFUSED = 10
_LOOK_EVERY = 0.5


_LONGEST = 63


@dataclass
class ReplayResult:
    """The result of the replay of a recording."""

    sent: int = 0
    late: list[float] = field(default_factory=list)
    """By how many seconds each request was late when it was sent."""
    refused: list[str] = field(default_factory=list)
    """The first few requests that the cluster refused, with its messages."""
    refusals: int = 0
    unserved: Counter[str] = field(default_factory=Counter)
    """Kinds that the cluster does not know, with how many objects of each."""
    nowhere: int = 0
    """Evictions for which there was no pod."""
    bodies: dict[tuple[str, int], str] = field(default_factory=dict)
    """SHA-256 of each request, by its place in the recording; the same in every replay."""

    @property
    def digest(self) -> str:
        """SHA-256 of all requests, sorted by job; without evictions, whose pods are named by controllers."""
        return hashlib.sha256("".join(self.bodies[key] for key in sorted(self.bodies)).encode()).hexdigest()


class Replayer:
    """Plays a recording.

    Args:
        stop: when set, no further step is begun.
        tell: takes each job that was created.
    """

    def __init__(
        self,
        client: Client,
        replay: Replayed,
        within: Within,
        records: ExperimentRecords,
        now: Callable[[], float],
        stop: asyncio.Event,
        tell: Callable[[PlannedJob], None] = lambda _: None,
    ) -> None:
        self._client = client
        self._replay = replay
        self._within = within
        self._records = records
        self._now = now
        self._stop = stop
        self._tell = tell
        self._kinds = Kinds(client)
        self._jobs = {job.name: job for job in replay.jobs}
        self._last: dict[str, asyncio.Task[None]] = {}
        self._count: Counter[str] = Counter()
        self.collections: dict[str, None] = {}
        self.result = ReplayResult()

    async def prepare(self) -> None:
        """Ask where the cluster serves each kind; jobs of unknown kinds are left out, and counted."""
        missing: set[str] = set()
        for name, job in list(self._jobs.items()):
            for each in job.objects:
                kind = f"{each['kind']} of {each['apiVersion']}"
                if kind not in missing:
                    try:
                        path = await self._kinds.path(each["apiVersion"], each["kind"], self._within.of(each))
                        self.collections[path] = None
                    except LabError:
                        missing.add(kind)
                if kind in missing:
                    self.result.unserved[kind] += 1
                    self._jobs.pop(name, None)

    async def run(self) -> None:
        """Play all of it."""
        tasks = [asyncio.create_task(self._play())]
        if self._replay.ends:
            tasks.append(asyncio.create_task(self._end_pods()))
        try:
            # Ending pods does not come to an end by itself, only to an error.
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()

    async def _play(self) -> None:
        # The timeline cordons and uncordons nodes.
        steps = [each for each in self._replay.steps if each.do not in ("cordon", "uncordon")]
        due: list[PlannedJob | PlannedStep] = [*self._replay.jobs, *steps]
        begun: set[asyncio.Task[None]] = set()
        try:
            for each in sorted(due, key=lambda one: one.at):
                if not await self._until(each.at):
                    break
                key = each.name if isinstance(each, PlannedJob) else each.job
                task = asyncio.create_task(self._one(each, self._last.get(key)))
                self._last[key] = task
                begun.add(task)
                for done in [task for task in begun if task.done()]:
                    begun.discard(done)
                    done.result()
            await asyncio.gather(*begun)
            # Pods are still being ended until the part that is replayed is over.
            await self._until((self._replay.until - self._replay.since) / self._replay.speed)
        finally:
            for task in begun:
                task.cancel()

    async def _until(self, at: float) -> bool:
        wait = at - self._now()
        if wait > 0 and not self._stop.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), wait)
        return not self._stop.is_set()

    async def _one(self, each: PlannedJob | PlannedStep, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait([before])
        async with self._client.lanes:
            if isinstance(each, PlannedJob):
                if each.name in self._jobs:
                    for found in each.objects:
                        await self._create(each.name, found, each.at)
                    self._tell(each)
            elif each.do == "drain":
                await self._drain(each.job, each.at)
            elif each.job in self._jobs:
                await self._DOING[each.do](self, each, self._jobs[each.job].objects[-1], each.at)

    async def _create(self, job: str, found: Object, at: float) -> None:
        path = await self._kinds.path(found["apiVersion"], found["kind"], self._within.of(found))
        await self._send(job, at, "POST", path, self._within.translated(found), JSON, stable=found)

    async def _change(self, step: PlannedStep, found: Object, at: float) -> None:
        spec = copy.deepcopy(dict(step.spec))
        self._within.translate(spec)
        patch = [{"op": "add", "path": f"/spec/{key}", "value": value} for key, value in sorted(spec.items())]
        stable = sorted(step.spec.items())
        await self._send(step.job, at, "PATCH", await self._path(found), patch, JSON_PATCH, stable=stable)

    async def _delete(self, step: PlannedStep, found: Object, at: float) -> None:
        body = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
        await self._send(step.job, at, "DELETE", await self._path(found), body, JSON, stable=body)

    async def _evict(self, step: PlannedStep, found: Object, at: float) -> None:
        collection = f"/api/v1/namespaces/{self._within.of(found)}/pods"
        pods = await self._live(collection, {"labelSelector": f"{JOB_LABEL}={step.job}"})
        if not pods:
            self.result.nowhere += 1
            return
        await self._eviction(pods[0], at)

    async def _drain(self, node: str, at: float) -> None:
        """Evict all of the replay's pods from a node, as the recorded drain did."""
        where = {"labelSelector": WORKLOAD_LABEL, "fieldSelector": f"spec.nodeName={node}"}
        for pod in await self._live(PODS, where):
            if not any(each["kind"] == "DaemonSet" for each in pod["metadata"].get("ownerReferences", ())):
                await self._eviction(pod, at)

    async def _live(self, path: str, params: dict[str, str]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = [each async for page in self._client.pages(path, params) for each in page]
        live = [each for each in found if each["status"].get("phase") not in ("Succeeded", "Failed")]
        return sorted(
            (each for each in live if not each["metadata"].get("deletionTimestamp")),
            key=lambda each: (each["metadata"]["creationTimestamp"], each["metadata"]["name"]),
        )

    async def _eviction(self, pod: dict[str, Any], at: float) -> None:
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": namespace}}
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/eviction"
        await self._send(pod["metadata"]["labels"].get(JOB_LABEL, ""), at, "POST", path, body, JSON, stable=None)

    async def _path(self, found: Object) -> str:
        path = await self._kinds.path(found["apiVersion"], found["kind"], self._within.of(found))
        return f"{path}/{found['metadata']['name']}"

    async def _send(self, job: str, at: float, verb: str, path: str, body: Any, media: str, *, stable: Any) -> None:
        """Make a request; refusals are counted, as a clone may not accept everything that the original did."""
        if stable is not None:
            text = json.dumps([verb, job, stable], sort_keys=True)
            self._count[job] += 1
            self.result.bodies[job, self._count[job]] = hashlib.sha256(text.encode()).hexdigest()
        self.result.sent += 1
        self.result.late.append(max(0.0, self._now() - at))
        try:
            await self._client.write(verb, path, json.dumps(body, separators=(",", ":")).encode(), content_type=media)
        except ApiError as error:
            if verb == "DELETE" and error.status == 404:
                return
            self.result.refusals += 1
            if len(self.result.refused) < _MOST_REFUSED:
                self.result.refused.append(f"{verb} {path.rpartition('/')[2] or path}: {error.message}")

    async def _end_pods(self) -> None:
        """Delete pods that ended by themselves when recorded, and that no controller ends, after the same time."""
        ended: set[str] = set()
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            now = self._now()
            for record in list(self._records.pods.values()):
                lasts = self._replay.ends.get(record.job)
                if lasts is None or record.running is None or record.ended is not None or record.job in ended:
                    continue
                if now >= record.running + lasts:
                    ended.add(record.job)
                    step = PlannedStep(record.running + lasts, "delete", record.job)
                    await self._one(step, self._last.get(record.job))

    _DOING: ClassVar[dict[str, Callable[[Replayer, PlannedStep, Object, float], Awaitable[None]]]] = {
        "change": _change,
        "delete": _delete,
        "evict": _evict,
    }


class Within:
    """Says which namespace each object goes to.

    Args:
        own: the repetition's namespace, for objects that name none.
        recorded: namespaces that a recording names.
    """

    def __init__(self, own: str, recorded: Iterable[str] = ()) -> None:
        self.own = own
        self._of: dict[str, str] = {}
        for number, each in enumerate(recorded, start=1):
            name = dns_safe(f"{own}-{each}")
            self._of[each] = name if len(f"{own}-{each}") <= _LONGEST else f"{own[:50]}-{number}"

    @property
    def others(self) -> tuple[str, ...]:
        """Every namespace except its own."""
        return tuple(self._of.values())

    def of(self, each: Mapping[str, Any]) -> str:
        """The namespace of an object."""
        return self._of.get(str(each["metadata"].get("namespace") or ""), self.own)

    def translated(self, each: Object) -> Object:
        """A recorded object as it is sent, with the run's namespaces in place of the recorded ones."""
        found = copy.deepcopy(each)
        found["metadata"].pop("namespace", None)
        self.translate(found)
        return found

    def translate(self, value: Any) -> None:
        """Replace the namespaces in affinity terms, at any depth and in place."""
        if isinstance(value, dict):
            if "topologyKey" in value and isinstance(value.get("namespaces"), list):
                value["namespaces"] = [self._of.get(str(name), str(name)) for name in value["namespaces"]]
            for each in value.values():
                self.translate(each)
        elif isinstance(value, list):
            for each in value:
                self.translate(each)
