"""The scheduler that an experiment is about: which process it is, and how to stop and start it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Literal, Protocol

from kumulus.extras.lab.cluster.components import SCHEDULER, Components
from kumulus.extras.lab.cluster.own_scheduler import OwnScheduler

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
    """The cluster's own scheduler.

    Args:
        own: its process.
        components: the cluster's processes.
    """

    def __init__(self, own: OwnScheduler, components: Components) -> None:
        self._own = own
        self._components = components
        self._there = bool(components.pids(SCHEDULER))
        self.component = SCHEDULER
        self.settings: Mapping[str, str] = components.settings().get(SCHEDULER, {})

    async def set_scheduler(self, how: SchedulerAction) -> str:
        """Stop it, start it, or both."""
        if how != "start" and not self._own.stopped:
            await asyncio.to_thread(self._own.stop)
        if how != "stop":
            self._own.start()
        return f"scheduler {'stopped' if how == 'stop' else how + 'ed'}"

    async def restore(self) -> None:
        """Start it if it was stopped."""
        if self._own.stopped:
            self._own.start()

    def ended(self) -> str:
        """How it ended, if it did so by itself; otherwise empty."""
        if not self._there or self._own.stopped or self._components.pids(SCHEDULER):
            return ""
        tail = self._own.log_tail()
        return "the scheduler has ended by itself" + (f"; its last words: {tail}" if tail else "")
