"""The schedulers: each has a subpackage, and a line here.

A subpackage `NAME` (dashes written as underscores) has a :class:`~kumulus.extras.schedulers.descriptor.Scheduler`
called `SCHEDULER` in its `__init__.py`. It is imported on demand, so that the names alone cost nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from kumulus.extras.schedulers.errors import SchedulerError

if TYPE_CHECKING:
    from kumulus.extras.schedulers.descriptor import Scheduler

NAMES: tuple[str, ...] = (
    "kube-scheduler",
    "native",
    "coscheduling",
    "volcano",
    "kueue",
    "yunikorn",
)


def get(name: str) -> Scheduler:
    """The scheduler with that name.

    Raises:
        SchedulerError: there is none.
    """
    if name not in NAMES:
        raise SchedulerError(f"there is no scheduler {name!r}\n  Write one of {', '.join(NAMES)}")
    found: Scheduler = import_module(f"kumulus.extras.schedulers.{name.replace('-', '_')}").SCHEDULER
    return found


def every() -> tuple[Scheduler, ...]:
    """All of them."""
    return tuple(map(get, NAMES))


def with_queues() -> str:
    """The names of the schedulers with queues, for a message."""
    *names, last = [each.name for each in every() if each.queues]
    return f"{', '.join(names)} or {last}" if names else last
