"""The schedulers: ours, which `extra.py` of this package lists, and those of other extras.

Each is imported on demand, so that the names alone cost nothing.
"""

import functools
from typing import Any

from kumulus.extras.schedulers.descriptor import OF_THE_CLUSTER, Scheduler
from kumulus.extras.schedulers.errors import SchedulerError
from kumulus.extras.schedulers.kinds import ObjectKind
from kumulus.host import extras

NAMES = extras.names("schedulers")


def get(name: str) -> Scheduler:
    """The scheduler with that name.

    Raises:
        BrokenExtra: the extra that brings it is broken.
    """
    found: Scheduler | None = extras.named("schedulers", name, Scheduler)
    if found is None:
        raise SchedulerError(f"there is no scheduler {name!r}\n  Write one of {', '.join(NAMES)}")
    return found


def every() -> tuple[Scheduler, ...]:
    """All of them."""
    return tuple(map(get, NAMES))


@functools.cache
def all_of(*parts: str) -> tuple[Any, ...]:
    """What all of them have as parts of their descriptors, such as their :attr:`Scheduler.queue_labels`, each once.

    Those that queue pods for the cluster's own scheduler are first: what is in two queues waits in theirs before. The
    cluster's own is last.
    """
    ordered = sorted(every(), key=lambda each: (each.is_own, each.scheduler_name != OF_THE_CLUSTER))
    return tuple(dict.fromkeys(found for each in ordered for part in parts for found in getattr(each, part)))


def object_kinds() -> tuple[ObjectKind, ...]:
    """The kinds of all of them, in that order."""
    return all_of("kinds")


def with_queues() -> str:
    """The names of the schedulers with queues, for a message."""
    *names, last = [each.name for each in every() if each.queues]
    return f"{', '.join(names)} or {last}" if names else last
