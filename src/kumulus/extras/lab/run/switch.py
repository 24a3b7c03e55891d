"""The scheduler that an experiment is about: which process it is, and how to stop and start it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Protocol

from kumulus.extras.journal import programs
from kumulus.extras.journal.book import Journal
from kumulus.extras.journal.changes import Stopped
from kumulus.extras.lab.cluster.components import SCHEDULER, Components
from kumulus.extras.lab.errors import LabError
from kumulus.host import processes
from kumulus.host.files import last_lines

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
        self._how: Stopped | None = None
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
