"""The scheduler that an experiment is about, the cluster's own or one started for it: stop and start it."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal, Protocol

from kumulus.extras.journal import programs, undo
from kumulus.extras.journal.book import Journal
from kumulus.extras.journal.changes import StoppedProgram
from kumulus.extras.journal.errors import JournalError
from kumulus.extras.lab.cluster.components import SCHEDULER, Components
from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.model import SchedulerSpec
from kumulus.extras.lab.plan.scheduling import is_own
from kumulus.extras.schedulers import SchedulerError, definitions, registry
from kumulus.extras.schedulers.launch.plan import PLAIN, Switches
from kumulus.extras.schedulers.objects import Mark
from kumulus.extras.schedulers.process import Running, start
from kumulus.host import processes
from kumulus.host.files import last_lines
from kumulus.kube import ApiError, Client, Unreachable
from kumulus.runtimes.place import cluster_owner
from kumulus.toolchain.pins import CONTROL_PLANE

SchedulerAction = Literal["stop", "start", "restart"]


class SchedulerSwitch(Protocol):
    """Stops and starts a scheduler."""

    @property
    def component(self) -> str:
        """The name under which its processes are measured."""

    @property
    def settings(self) -> Mapping[str, str]:
        """What is known of its version and limits."""

    async def set_scheduler(self, how: SchedulerAction) -> str:
        """Stop it, start it, or both; returns what was done, in words."""

    async def restore(self) -> None:
        """Start it if it was stopped."""

    def ended(self) -> str:
        """How it ended, if it did so by itself; empty while it runs or was stopped on purpose."""


class OwnSwitch:
    """The cluster's own scheduler, if it runs on this machine.

    Args:
        journal: makes sure the scheduler is started again if the run is killed.
    """

    def __init__(self, directory: Path, components: Components, journal: Journal) -> None:
        self._directory = directory
        self._components = components
        self._journal = journal
        self._how: StoppedProgram | None = None
        self._there = bool(components.pids(SCHEDULER))
        self.component = SCHEDULER
        self.settings: Mapping[str, str] = components.settings().get(SCHEDULER, {})

    async def set_scheduler(self, how: SchedulerAction) -> str:
        """Stop it, start it, or both."""
        if how != "start" and self._how is None:
            await asyncio.to_thread(self._stop)
        if how != "stop":
            await self.restore()
        return f"scheduler {'stopped' if how == 'stop' else how + 'ed'}"

    async def restore(self) -> None:
        """Start it as it was started before, if it was stopped."""
        if self._how is not None:
            pid = programs.start(self._how)
            self._how = None
            self._journal.drop(stopped=None)
            self._components.look({SCHEDULER: [pid]})

    def ended(self) -> str:
        """How it ended, if it did so by itself; otherwise empty."""
        if not self._there or self._how is not None or self._components.pids(SCHEDULER):
            return ""
        tail = last_lines(self._directory / "logs" / f"{SCHEDULER}.log", 1).strip()
        return "the scheduler has ended by itself" + (f"; its last words: {tail}" if tail else "")

    def _stop(self) -> None:
        pids = self._components.pids(SCHEDULER)
        if not pids:
            raise LabError(
                "the cluster's scheduler does not run on this machine, so the timeline cannot stop it; "
                "leave scheduler: out of the timeline, or use a stack of the kwok runtime"
            )
        self._how = programs.described(self._directory, SCHEDULER, pids[0])
        self._journal.add(stopped=self._how)
        processes.end(pids)


class SecondSwitch:
    """A second scheduler, as the switch of a run.

    Args:
        components: the cluster's processes, among which it is measured.

    Attributes:
        ended_otherwise: why the run ends while the scheduler still runs; empty while it does not.
    """

    def __init__(self, running: Running, components: Components) -> None:
        self.ended_otherwise: Callable[[], str] = str
        self._running = running
        self._components = components
        self._stopped = False
        self.settings: Mapping[str, str] = {key: str(value) for key, value in running.settings.items()}
        self._look()

    @property
    def component(self) -> str:
        """The name under which the program that schedules is measured."""
        return _measured_as(self._running.programs[0].name)

    async def set_scheduler(self, how: SchedulerAction) -> str:
        """Stop it, start it, or both."""
        try:
            if how == "stop":
                self._stopped = True
                await self._running.end()
            else:
                await self._running.restart()
                self._stopped = False
                self._look()
        except SchedulerError as error:
            raise LabError(_one_line(error)) from None
        return f"scheduler {'stopped' if how == 'stop' else how + 'ed'}"

    async def restore(self) -> None:
        """Start it if it was stopped."""
        if self._stopped:
            await self.set_scheduler("start")

    def ended(self) -> str:
        """How it ended, if it did so by itself; otherwise empty."""
        ended = "" if self._stopped else " ".join((self._running.failure() or "").split())
        return self.ended_otherwise() or ended

    async def close(self) -> None:
        """End it, and delete its objects in the cluster."""
        try:
            await self._running.stop()
        except SchedulerError as error:
            raise LabError(_one_line(error)) from None

    def _look(self) -> None:
        self._components.look({_measured_as(name): [pid] for name, pid in self._running.pids.items()})


async def started(
    wanted: SchedulerSpec,
    kubeconfig: Path,
    directory: Path,
    base: Path,
    components: Components,
    client: Client,
    journal: Journal,
    *,
    switches: Switches = PLAIN,
) -> SecondSwitch:
    """Start the scheduler that an experiment names; nothing is left of one that cannot be started.

    Args:
        directory: for its configuration and logs.
        base: the directory that the experiment file's paths are relative to.
        journal: has it already; the scheduler's objects in the cluster are labelled with its run.
        switches: what only some schedulers have.
    """
    config = base / wanted.config if wanted.config else None
    binary = base / wanted.binary if wanted.binary else None
    try:
        running = await start(
            wanted.name,
            kubeconfig,
            directory,
            config,
            binary=binary,
            mark=Mark(journal.changes.run, cluster_owner(kubeconfig)),
            switches=switches,
        )
    except SchedulerError as error:
        # Otherwise, the next command does that.
        with suppress(JournalError, ApiError, Unreachable):
            await undo.end_scheduler(client, journal)
        raise LabError(str(error)) from None
    return SecondSwitch(running, components)


def require_built(wanted: SchedulerSpec, base: Path) -> None:
    """Refuse a scheduler whose programs are not there, before anything is changed; says how to get them."""
    if is_own(wanted.name):
        return
    able = registry.get(wanted.name)
    if wanted.binary and not (base / wanted.binary).is_file():
        raise LabError(f"the scheduler's binary {base / wanted.binary} does not exist\n  Check its path")
    try:
        for tool in able.tools[1:] if wanted.binary else able.tools:
            # Which kube-scheduler it takes depends on the cluster's version.
            if tool not in CONTROL_PLANE:
                definitions.find(tool, able.tool_set)
    except SchedulerError as error:
        raise LabError(str(error)) from None


def _measured_as(program: str) -> str:
    """The name of a program among the cluster's own, whose scheduler it may not be taken for."""
    return f"second {program}" if program == SCHEDULER else program


def _one_line(error: SchedulerError) -> str:
    return " ".join(str(error).split())
