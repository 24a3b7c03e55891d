"""The program that schedules: the pinned one, or the user's own."""

from __future__ import annotations

from pathlib import Path

from kumulus import toolchain
from kumulus.extras.schedulers import definitions, registry
from kumulus.extras.schedulers.launch.plan import Request


def chosen(request: Request) -> tuple[Path, str]:
    """The program, and its version; "" for the user's own.

    Raises:
        SchedulerError: the pinned one is missing; the message says how to get it.
    """
    if request.binary is not None:
        return request.binary, ""
    scheduler = registry.get(request.name)
    return definitions.find(scheduler.tools[0], scheduler.tool_set), toolchain.version(scheduler.tools[0])
