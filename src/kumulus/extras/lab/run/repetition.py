"""One repetition: a namespace, its workloads, the measurement, and the removal of everything."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any

from kumulus.extras.journal import undo
from kumulus.extras.journal.errors import JournalError
from kumulus.extras.lab.cluster.creating import Creator, Kinds, make_namespace
from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.model import ExperimentSpec
from kumulus.extras.lab.measure.allocation import Allocation
from kumulus.extras.lab.measure.clock import Clock
from kumulus.extras.lab.measure.listening import Listener, occupy
from kumulus.extras.lab.measure.over_time import CostMeter, GpuHours
from kumulus.extras.lab.measure.placement import PlacementRecorder
from kumulus.extras.lab.measure.records import ExperimentRecords
from kumulus.extras.lab.measure.sampler import Sampler
from kumulus.extras.lab.plan.asked import claims_planned, pods_planned
from kumulus.extras.lab.plan.plan import RepetitionPlan
from kumulus.extras.lab.plan.pods import PlannedJob
from kumulus.extras.lab.plan.replayed import cordons
from kumulus.extras.lab.plan.scheduling import queue_of
from kumulus.extras.lab.run.bench import Bench, RepetitionOutcome
from kumulus.extras.lab.run.ending import Ending, nothing, refused, starting, unseen
from kumulus.extras.lab.run.federated import FederatedRepetition
from kumulus.extras.lab.run.replaying import Replayer, Within
from kumulus.extras.lab.run.timeline import Parties, Timeline
from kumulus.extras.lab.run.workloads import RepetitionWorkloads
from kumulus.extras.schedulers.descriptor import OF_THE_CLUSTER
from kumulus.extras.schedulers.manifests import pod_templates
from kumulus.extras.watch.history.document import Sort
from kumulus.kube import ApiError, Unreachable
from kumulus.kube.errors import tolerating
from kumulus.model.durations import timestamp

_LOOK_EVERY = 0.1


class Repetition:
    """Runs a plan once.

    Args:
        name: the namespace it gets.
    """

    def __init__(self, bench: Bench, plan: RepetitionPlan, name: str) -> None:
        self._bench = bench
        self._plan = plan
        self._name = name
        self._now = Clock()
        allocation = Allocation(CostMeter(time.monotonic), GpuHours(time.monotonic))
        allocation.hours.expect(pods_planned(plan, bench.experiment.productLabel))
        unmeasured = {each.name for each in bench.experiment.workloads if not each.measured}
        jobs = ((job.name, job.workload, job.workers) for job in plan.jobs)
        records = ExperimentRecords(allocation, jobs, unmeasured)
        # A hub's API server does not count the bindings of pods on workers.
        counting = None if bench.session else bench.client
        sampler = Sampler(records, bench.components, counting, self._now, bench.switch.component, self._sampled)
        placement = PlacementRecorder(_about(bench, name), bench.places, self._now, _queues(bench.experiment))
        self.outcome = RepetitionOutcome(records, sampler, placement)
        federated = (
            FederatedRepetition(bench, plan, name, self._now, self.outcome, self._note) if bench.session else None
        )
        self._federated = federated
        self._listener = federated.listeners if federated else self._only(placement)
        kinds = Kinds(bench.client)
        self._creator = Creator(bench.client, kinds, bench.journal, name, self._now, bench.options.stop, self._created)
        self._within = Within(name, sorted({each for replay in plan.replays.values() for each in replay.namespaces}))
        self._replayers = [
            Replayer(bench.client, replay, self._within, records, self._now, bench.options.stop, placement.job)
            for replay in plan.replays.values()
        ]
        self.outcome.replay_results = {
            workload: replayer.result for workload, replayer in zip(plan.replays, self._replayers, strict=True)
        }
        self._own_jobs = [job for job in plan.jobs if not job.recorded]
        self._first_pods = sum(job.workers for job in plan.jobs if not job.once)
        # The outcome depends on the order of the pods, which is the order of their creation.
        self._at_once = 1 if bench.arriving is not None and bench.arriving.in_order else bench.client.connections
        waits = federated.waits if federated else nothing
        self._ending = Ending(records, bench.experiment.until, bench.experiment.settle, plan.pods, waits, plan.later)
        outages = federated.outages if federated else None
        self._timeline = Timeline(
            bench.client,
            bench.journal,
            [*bench.experiment.timeline, *cordons(plan.replays.values())],
            bench.switch,
            self._now,
            RepetitionWorkloads(bench.client, name, plan, records, placement, self._ending, self._now, self._deleted),
            bench.owner,
            Parties(placement.happened, outages, bench.commands, records.faulted, self._listener.reprice),
        )

    def _sampled(self) -> None:
        self._bench.options.on_sample(self.outcome)

    def _note(self, what: str, sort: Sort) -> None:
        self._timeline.note(what, sort)

    def _only(self, placement: PlacementRecorder) -> Listener:
        on_pod = self._bench.arriving.seen if self._bench.arriving else None
        known = claims_planned(self._plan)
        return Listener(self._bench.client, self.outcome.records, self._now, placement, on_pod, known)

    def _created(self, job: PlannedJob) -> None:
        self.outcome.placement.job(job)
        if self.outcome.dispatching is not None:
            self.outcome.dispatching.created(job, self._now())

    def _deleted(self, job: PlannedJob) -> None:
        self._creator.cancel(job)
        if self.outcome.dispatching is not None:
            self.outcome.dispatching.deleted(job)

    async def run(self) -> RepetitionOutcome:
        """Run it; an error during the measurement ends it early and is in the outcome."""
        bench, plan = self._bench, self._plan
        await self._creator.resolve([*plan.setup, *(each for job in self._own_jobs for each in job.objects)])
        for replayer in self._replayers:
            await replayer.prepare()
        for name in (self._name, *self._within.others):
            bench.journal.add(namespaces=[name])
            await make_namespace(bench.client, name, bench.experiment.name, bench.journal.changes.run, bench.owner)
        try:
            for each in plan.setup:
                await self._creator.one(each)
            if bench.arriving is not None:
                await bench.arriving.begin(plan)
            if self._federated is not None:
                await self._federated.enter()
            else:
                await occupy(bench.client, self.outcome.records)
            await self._measured()
        finally:
            await self._undo()
        return self.outcome

    async def pods_left(self) -> int:
        """How many pods it still has in the cluster."""
        left = 0
        for each in (*self._within.others, self._name):
            with tolerating(404):
                page = await self._bench.client.get(f"/api/v1/namespaces/{each}/pods", {"limit": "1"})
                left += len(page["items"]) + int(page["metadata"].get("remainingItemCount") or 0)
        return left

    async def clean(self) -> None:
        """Remove everything that was created, in several goes where pods become fewer with each.

        Removing thousands of them can keep a small machine busy for longer than the client waits for an answer.

        Raises:
            Unreachable: nothing answers, or there are as many pods as after the go before.
        """
        left: int | None = None
        while True:
            try:
                return await self._remove()
            except Unreachable:
                before, left = left, await self.pods_left()
                if before is not None and left >= before:
                    raise

    async def _remove(self) -> None:
        journal = self._bench.journal
        collections = [*self._creator.collections, *(path for each in self._replayers for path in each.collections)]
        for each in (*self._within.others, self._name):
            there = [path for path in collections if f"/namespaces/{each}/" in path]
            await undo.remove_namespace(self._bench.client, journal.changes.run, each, there)
            journal.drop(namespaces=[each])
        if self._federated is not None:
            # After the hub's, so that the workers' Kueue sees the hub's deletions first.
            await self._federated.leave()
        await self._creator.remove_outside()

    async def _measured(self) -> None:
        listener, bench = self._listener, self._bench
        namespace = "" if self._replayers else self._name
        nodes = asyncio.Event()
        watches: list[Callable[[asyncio.Event], Coroutine[Any, Any, None]]] = [
            partial(listener.pods, namespace),
            listener.slices,
            partial(self._others, namespace, nodes),
        ]
        if isinstance(listener, Listener):
            watches.append(partial(listener.groups, namespace))
            if bench.arriving is not None and bench.arriving.claims is not None:
                watches.append(partial(listener.claims, self._name, bench.arriving.claims))
        synced = [nodes, *(asyncio.Event() for _ in watches)]
        listening = [
            asyncio.create_task(listener.nodes(bench.experiment.productLabel, bench.options.prices, nodes)),
            *(asyncio.create_task(watch(event)) for watch, event in zip(watches, synced[1:], strict=True)),
        ]
        queues = asyncio.create_task(listener.queues())
        try:
            await _all_set(synced, listening)
            allocation = self.outcome.records.allocation
            self.outcome.nodes = allocation.nodes
            self.outcome.gpus = {" ".join(cell): share.capacity for cell, share in allocation.by_cell().items()}
            await self._go(listening)
        finally:
            for task in (*listening, queues):
                task.cancel()
            await asyncio.gather(*listening, queues, return_exceptions=True)
            self.outcome.interruptions = self._listener.interruptions
            if self._bench.arriving is not None:
                created = self._creator.done_at is not None and not self._bench.options.stop.is_set()
                before = time.process_time()
                used = await self._bench.arriving.used(complete=created)
                if used is not None:
                    self.outcome.policy = used.model_copy(update={"cpu": time.process_time() - before})

    async def _others(self, namespace: str, nodes: asyncio.Event, synced: asyncio.Event) -> None:
        # A history has a pod's node without its place if the pod is heard of first.
        await nodes.wait()
        await self._listener.others(namespace, synced)

    async def _go(self, listening: Sequence[asyncio.Task[None]]) -> None:
        outcome, sampler = self.outcome, self.outcome.sampler
        try:
            await self._timeline.begin()
        except (LabError, JournalError, ApiError, Unreachable) as error:
            outcome.ended, outcome.partial = str(error), True
        # What the timeline does at 0 s is not measured.
        await sampler.start()
        if outcome.ended:
            return
        self._now.restart()
        self._listener.begin()
        if self._federated is not None:
            self._federated.begin()
        outcome.placement.begin()
        outcome.records.begin()
        tasks = {
            "watching itself": asyncio.create_task(self._now.watch_itself()),
            "creating": asyncio.create_task(self._create()),
            "timeline": asyncio.create_task(self._timeline.run()),
            "sampling": asyncio.create_task(sampler.run()),
        }
        try:
            await self._wait([*tasks.values(), *listening], tasks["creating"], tasks["timeline"])
        except (LabError, JournalError, ApiError, Unreachable) as error:
            outcome.ended, outcome.partial = str(error), True
        finally:
            for task in tasks.values():
                task.cancel()
            await asyncio.gather(*tasks.values(), return_exceptions=True)
            outcome.lasted, outcome.stall = self._now(), self._now.stall
            outcome.placement.end()
            outcome.records.allocation.end()
            outcome.records.faulted.lasted = outcome.lasted
            if self._federated is not None:
                self._federated.end()
            outcome.created_in = self._creator.done_at or outcome.lasted
            outcome.happened = self._timeline.happened
            sampler.sample()
            await sampler.count()
            await sampler.count_placements()

    async def _create(self) -> None:
        playing = [asyncio.create_task(each.run()) for each in self._replayers]
        try:
            await self._creator.jobs(self._own_jobs, self._at_once)
            await asyncio.gather(*playing)
        finally:
            for each in playing:
                each.cancel()
        self._creator.done_at = self._now()

    async def _wait(
        self, tasks: Sequence[asyncio.Task[None]], creating: asyncio.Task[None], timeline: asyncio.Task[None]
    ) -> None:
        experiment, outcome = self._bench.experiment, self.outcome
        faulted = outcome.records.faulted
        while not outcome.ended:
            await asyncio.sleep(_LOOK_EVERY)
            for task in tasks:
                if task.done() and (error := task.exception()) is not None:
                    raise error
            self._moments(creating.done())
            if self._bench.options.stop.is_set():
                outcome.ended, outcome.partial = "interrupted", True
            elif why := self._bench.switch.ended() or self._bench.commands.failed():
                outcome.ended, outcome.partial = why, True
            elif (silence := self._listener.silence())[0] > self._bench.client.patience:
                outcome.ended, outcome.partial = silence[1], True
            elif self._now() >= experiment.timeout:
                outcome.ended, outcome.partial = f"not over within its timeout, {experiment.timeout:g} s", True
            elif creating.done() and timeline.done() and self._now() >= faulted.decided_at(experiment.expect):
                outcome.ended = await self._ending.over(self._now, self._listener.ask)
                if outcome.ended and (why := self._unseen()):
                    outcome.ended, outcome.partial = why, True
                elif outcome.ended and self._ending.lacking and (why := await refused(self._bench.client, self._name)):
                    # Of a run without any pod, there is nothing to report.
                    outcome.ended, outcome.partial = f"{outcome.ended}: {why}", not outcome.records.pods
                elif outcome.ended and self._ending.lacking and starting(outcome.records, outcome.placement.admitted):
                    # A busy queue starts jobs, and a busy controller makes pods, long after the jobs are admitted.
                    outcome.ended, outcome.records.changed = "", self._now()

    def _unseen(self) -> str:
        objects = (each for job in self._plan.jobs for each in job.objects)
        specs = (template.get("spec") or {} for each in objects for template in pod_templates(each))
        names = {spec.get("schedulerName") or OF_THE_CLUSTER for spec in specs}
        return unseen(self.outcome.records, self._bench.experiment.scheduler.name, names)

    def _moments(self, created: bool) -> None:
        """Start what waits for pods: jobs, and the timeline after the creation of all pods, or their scheduling."""
        timeline, records, creator = self._timeline, self.outcome.records, self._creator
        if creator.placed_at is None and records.counts["bound"] >= self._first_pods and not records.pending:
            creator.placed_at = self._now()
        if not created or timeline.scheduled.is_set():
            return
        # A federation's Jobs get their pods when there is room for them, possibly much later.
        if not timeline.created.is_set() and (self._federated is not None or records.complete):
            timeline.created.set()
        # Looking at every job costs more, and comes last.
        if not records.pending and records.complete:
            timeline.scheduled.set()

    async def _undo(self) -> None:
        try:
            # First: an operator would go on changing what is undone.
            self.outcome.commands = await self._bench.commands.end()
            await self._timeline.undo()
        except (JournalError, ApiError, Unreachable) as error:
            self.outcome.ended += f"; what the timeline did is not all undone: {error}"
            self.outcome.partial = True


def _about(bench: Bench, name: str) -> dict[str, str]:
    experiment = bench.experiment
    about = {"title": experiment.name, "description": experiment.description, "namespace": name, "began": timestamp()}
    return {**about, "scheduler": experiment.scheduler.name}


def _queues(experiment: ExperimentSpec) -> dict[str, str]:
    return {each.name: queue for each in experiment.workloads if (queue := queue_of(experiment.scheduler.name, each))}


async def _all_set(events: Sequence[asyncio.Event], tasks: Sequence[asyncio.Task[None]]) -> None:
    """Wait until all events are set; if a task fails before that, its error is raised."""

    async def wait() -> None:
        for event in events:
            await event.wait()

    waiting = asyncio.create_task(wait())
    try:
        done, _ = await asyncio.wait([waiting, *tasks], return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        waiting.cancel()
