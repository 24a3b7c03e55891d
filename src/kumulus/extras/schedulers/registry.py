"""The schedulers: ours, which `extra.py` of this package lists, and those of other extras.

Each is imported on demand, so that the names alone cost nothing.
"""

from kumulus.extras.schedulers.descriptor import Scheduler
from kumulus.extras.schedulers.errors import SchedulerError
from kumulus.host import extras

NAMES = extras.names("schedulers")


def get(name: str) -> Scheduler:
    """The scheduler with that name.

    Raises:
        SchedulerError: there is none.
        BrokenExtra: the extra that brings it is broken.
    """
    found: Scheduler | None = extras.named("schedulers", name, Scheduler)
    if found is None:
        raise SchedulerError(f"there is no scheduler {name!r}\n  Write one of {', '.join(NAMES)}")
    return found


def every() -> tuple[Scheduler, ...]:
    """All of them."""
    return tuple(map(get, NAMES))


def with_queues() -> str:
    """The names of the schedulers with queues, for a message."""
    *names, last = [each.name for each in every() if each.queues]
    return f"{', '.join(names)} or {last}" if names else last
