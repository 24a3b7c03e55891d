"""A whole run: its repetitions, one after the other, and its report."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kumulus.extras.journal import recover
from kumulus.extras.journal.book import Journal
from kumulus.extras.journal.changes import SecondScheduler
from kumulus.extras.journal.errors import JournalError
from kumulus.extras.lab.cluster.claims import gates_for
from kumulus.extras.lab.cluster.components import Components
from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.federation.members import Session, joined, require_inside, require_outside
from kumulus.extras.lab.file.load import LoadedExperiment
from kumulus.extras.lab.plan.plan import RepetitionPlan
from kumulus.extras.lab.plan.scheduling import is_own, require_own
from kumulus.extras.lab.report.fidelity import concerning
from kumulus.extras.lab.report.files import RunDirectory
from kumulus.extras.lab.report.making import delayed, inputs_of, machine, status_of, test_of
from kumulus.extras.lab.report.model import Metadata, Report, ReportedCluster, Results, SchedulerUsed
from kumulus.extras.lab.run.arriving import Arriving, by_node
from kumulus.extras.lab.run.bench import Bench, RunOptions
from kumulus.extras.lab.run.commands import Commands
from kumulus.extras.lab.run.federated import HubSwitch
from kumulus.extras.lab.run.planning import places_of, planned
from kumulus.extras.lab.run.policy import Policies, deciding, looking_on, with_scheduler
from kumulus.extras.lab.run.preparing import autoscaled, begin_from, cordons_reported
from kumulus.extras.lab.run.repetition import Repetition
from kumulus.extras.lab.run.switch import OwnSwitch, SchedulerSwitch, require_built, started
from kumulus.extras.schedulers.launch.plan import Switches
from kumulus.extras.watch.live.node import NOWHERE
from kumulus.kube import ApiError, Client, Unreachable, load_kubeconfig
from kumulus.model.durations import timestamp
from kumulus.model.names import dns_safe
from kumulus.nodes.faults.new_pods import wait_until_all_are_managed
from kumulus.runtimes.directories import no_room
from kumulus.runtimes.place import cluster_owner

# Waits longer than this many seconds are reported.
_WORTH_A_LINE = 2.0
_TELL_EVERY = 10.0
PATIENCE = 10.0
"""Seconds that a silent API server is waited for."""


async def run(loaded: LoadedExperiment, options: RunOptions) -> tuple[Report, Path]:
    """Run an experiment on the cluster of a kubeconfig; returns the report, and the directory that it is in."""
    async with Client(load_kubeconfig(options.kubeconfig), patience=PATIENCE) as client:
        made = Run(client, loaded, options)
        return await made.run(), made.directory.path


class Run:
    """Runs an experiment."""

    def __init__(self, client: Client, loaded: LoadedExperiment, options: RunOptions) -> None:
        now = datetime.now(UTC)
        self._client = client
        self._loaded = loaded
        self._options = options
        self._timestamp = timestamp(now)
        self.id = recover.run_id(now)
        self.directory = RunDirectory(options.results, loaded.experiment.name, self.id)
        self._cleaning: list[Repetition] = []
        self._places = NOWHERE
        self._arriving: Arriving | None = None
        self._session: Session | None = None

    async def run(self) -> Report:
        """Run every repetition; the report is on the disk when this returns."""
        federation, experiment = self._options.federation, self._loaded.experiment
        if federation is None:
            require_outside(experiment, self._options.stack)
        else:
            require_inside(experiment, federation)
        # Before the journal: a run that is refused leaves nothing to put back.
        require_built(with_scheduler(self._loaded).experiment.scheduler, self._loaded.directory)
        journal, put_back = await recover.begin(self._client, self.id, experiment.name)
        for line in put_back:
            self._options.say(line)
        try:
            async with cordons_reported(self._client, self._options.say), AsyncExitStack() as around:
                if federation is not None:
                    joining = joined(federation, self.id, experiment.name, self._client.patience, self._options.say)
                    self._session = await around.enter_async_context(joining)
                return await self._journaled(journal)
        finally:
            await recover.end(journal)

    async def _journaled(self, journal: Journal) -> Report:
        options = self._options
        # Done first, as it may refuse the file: then no snapshot is restored.
        self._loaded = with_scheduler(self._loaded)
        experiment, components = self._loaded.experiment, self._components()
        await self._begin(journal)
        plan = await self._plan()
        self.directory.prepare(self._loaded.inputs)
        report: Report | None = None
        for number, numbers in enumerate(self._rounds()):
            if number:
                await self._begin(journal)
            async with (
                autoscaled(self._client, journal, experiment, options.say),
                self._scheduler(components, journal, number) as switch,
            ):
                if report is None:
                    report = Report(
                        metadata=await self._metadata(plan, components, switch),
                        results=Results(status="partial", error="has not come to its end", tests=[]),
                    )
                    self.directory.write(report, running=True)
                logs = self.directory.path / "commands"
                bench = Bench(
                    client=self._client,
                    options=options,
                    journal=journal,
                    experiment=experiment,
                    components=components,
                    switch=switch,
                    commands=Commands(journal, self._loaded.directory, logs, options.kubeconfig),
                    owner=cluster_owner(options.kubeconfig),
                    places=self._places,
                    arriving=self._arriving,
                    session=self._session,
                )
                try:
                    error = await self._repeat(bench, plan, report, numbers)
                    if error or numbers[-1] == experiment.repetitions:
                        self._conclude(report, error)
                        break
                finally:
                    await self._clean()
        assert report is not None
        return report

    def _components(self) -> Components:
        federation = self._options.federation
        workers = {each.name: each.kubeconfig.parent for each in federation.workers} if federation else {}
        return Components(self._options.kubeconfig.parent, workers)

    def _rounds(self) -> list[range]:
        """Which repetitions share a scheduler: all of them, or none where each begins from a snapshot."""
        last = self._loaded.experiment.repetitions
        if self._loaded.experiment.from_ is None:
            return [range(1, last + 1)]
        return [range(number, number + 1) for number in range(1, last + 1)]

    async def _begin(self, journal: Journal) -> None:
        """Restore the experiment's snapshot, before a scheduler is started, as the snapshot lacks its objects.

        Then wait until KWOK manages all nodes: it may miss pods that are bound to a node before that.
        """
        wanted, snapshots = self._loaded.experiment.from_, self._options.snapshots
        if wanted is not None:
            if snapshots is None:
                raise LabError("from: a snapshot is a stack's; run it on a stack, by -s STACK")
            stop, kubeconfig = self._options.stop, self._options.kubeconfig
            self._options.say(await begin_from(self._client, journal, wanted, snapshots, kubeconfig, stop))
        begun, taken = time.monotonic(), 0
        if self._session is not None:
            await self._session.begin(self._options.stop)
        # A user without the right to read leases does not wait.
        with suppress(ApiError):
            taken = await wait_until_all_are_managed(self._client, self._options.stop)
        if (waited := time.monotonic() - begun) > _WORTH_A_LINE and taken:
            self._options.say(f"waited {waited:.0f} s for KWOK to take {taken:,} new nodes")

    @asynccontextmanager
    async def _scheduler(self, components: Components, journal: Journal, number: int) -> AsyncIterator[SchedulerSwitch]:
        """The scheduler that the experiment names; one that is started for it is also ended."""
        kubeconfig, wanted = self._options.kubeconfig, self._loaded.experiment.scheduler
        if self._session is not None:
            yield HubSwitch(kubeconfig, components)
            return
        self._arriving = by_node(self._loaded, self._client)
        if is_own(wanted.name):
            await require_own(wanted.name, self._client)
            yield OwnSwitch(kubeconfig.parent, components, journal)
            return
        directory = self.directory.path / ("scheduler" if not number else f"scheduler-{number + 1}")
        async with AsyncExitStack() as around:
            base, experiment = self._loaded.directory, self._loaded.experiment
            if experiment.policy:
                serving = deciding(self._loaded, self._client, directory)
                self._arriving, wanted = await around.enter_async_context(serving)
            elif experiment.whyPolicy:
                looking = looking_on(self._loaded, self._client, directory, self._arriving)
                self._arriving, wanted = await around.enter_async_context(looking)
            switches = Switches(experiment.why, gates_for(experiment), await places_of(self._client, experiment))
            journal.add(scheduler=SecondScheduler(wanted.name, str(directory.absolute())))
            start = started(wanted, kubeconfig, directory, base, components, self._client, journal, switches=switches)
            second = await start
            if isinstance(self._arriving, Policies):
                second.ended_otherwise = self._arriving.ended
            try:
                yield second
            finally:
                try:
                    await second.close()
                    journal.drop(scheduler=None)
                except LabError as error:
                    self._options.say(f"the scheduler {wanted.name} has left something in the cluster: {error}")

    async def _repeat(self, bench: Bench, plan: RepetitionPlan, report: Report, numbers: range) -> str:
        """Run some of the repetitions; returns why the run has to end, or an empty text."""
        experiment, results, options = self._loaded.experiment, report.results, self._options
        for number in numbers:
            await self._clean()
            name = dns_safe(f"experiment-{experiment.name}-{self.id[-6:]}-{number}")
            repetition = Repetition(bench, plan, name)
            self._cleaning.append(repetition)
            try:
                outcome = await repetition.run()
            except (LabError, JournalError) as failed:
                return str(failed)
            except (ApiError, Unreachable) as failed:
                full = no_room(options.kubeconfig.parent)
                return "; ".join(filter(None, (str(failed), full, delayed(failed))))
            report.metadata.cluster.nodes, report.metadata.cluster.gpus = outcome.nodes, outcome.gpus
            results.tests.append(test_of(experiment, outcome, self.id, number, plan))
            try:
                self.directory.keep(outcome.placement.history, number, results.tests[-1])
            except LabError as failed:
                # The report matters more, and is written all the same.
                options.say(f"what was where cannot be shown later: {failed}")
            self._write(report, running=True)
            if outcome.partial:
                return outcome.ended
        return ""

    def _conclude(self, report: Report, error: str) -> None:
        report.results.error = error
        report.results.status = status_of(report.results.tests, self._loaded.experiment.repetitions)
        self._write(report)
        self._options.on_report(report, self.directory.path)

    def _write(self, report: Report, *, running: bool = False) -> None:
        """Write the report; if that fails, pass it on all the same, so that the measurements can be shown."""
        try:
            self.directory.write(report, running=running)
        except LabError:
            with suppress(LabError):
                self._options.on_report(report, self.directory.path)
            raise

    async def _clean(self) -> None:
        while self._cleaning:
            repetition = self._cleaning.pop()
            said: list[int] = []
            telling = asyncio.create_task(self._tell_what_is_left(repetition, said))
            try:
                await repetition.clean()
                if any(said):
                    self._options.say("the run is over; removing its pods: all are removed")
            except (LabError, JournalError, ApiError, Unreachable) as error:
                self._options.say(f"not everything could be removed, the next command will: {error}")
            finally:
                telling.cancel()
                await asyncio.gather(telling, return_exceptions=True)

    async def _tell_what_is_left(self, repetition: Repetition, said: list[int]) -> None:
        """Say now and then how many pods are still to be removed, as thousands of them take minutes."""
        while True:
            await asyncio.sleep(_TELL_EVERY if said else _WORTH_A_LINE)
            with suppress(ApiError, Unreachable):
                said.append(left := await repetition.pods_left())
                if left:
                    self._options.say(f"the run is over; removing its pods: {left:,} of {max(said):,} are left")

    async def _plan(self) -> RepetitionPlan:
        queue = self._options.federation.queue if self._options.federation else ""
        measured = [each.client for each in self._session.members] if self._session else [self._client]
        plan, self._places = await planned(self._client, self._loaded, measured, queue, self._options.say)
        return plan

    async def _metadata(self, plan: RepetitionPlan, components: Components, switch: SchedulerSwitch) -> Metadata:
        experiment, options = self._loaded.experiment, self._options
        version: dict[str, Any] = await self._client.get("/version")
        return Metadata(
            run_id=self.id,
            label=options.label,
            experiment=experiment.name,
            description=experiment.description,
            source=experiment.about.source,
            expected=experiment.about.expected,
            emulation=experiment.about.emulation,
            timestamp=self._timestamp,
            kumulus_commit=options.commit,
            stack=options.stack,
            seed=experiment.seed,
            repetitions=experiment.repetitions,
            cluster=ReportedCluster(
                name=options.stack,
                version=version.get("gitVersion", ""),
                nodes=0,
                gpus={},
                local=components.local,
            ),
            scheduler=SchedulerUsed(
                name=experiment.scheduler.name,
                settings=dict(switch.settings),
                config=Path(experiment.scheduler.config or experiment.scheduler.binary).name,
                why=experiment.why,
            ),
            client_settings=components.settings(),
            creator={"connections": str(self._client.connections), "qps": "unlimited"},
            machine=machine(),
            inputs=inputs_of(self._loaded.inputs, plan.digest),
            fidelity=concerning(experiment, plan),
        )
