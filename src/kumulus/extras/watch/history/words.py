"""The numbers that events use for what they are about and what became of it. ``assets/history.js`` has the same."""

from enum import IntEnum


class EventKind(IntEnum):
    """What an event is about, and what its two values are."""

    NODE = 0
    """A node: the number of its condition, -1 when it is gone; the number of its kind of nodes."""
    POD = 1
    """A pod: one of :class:`Status`; for a waiting pod the text of its reasons, for others the node, -1 for none."""
    JOB = 2
    """A job: the number of its facts, -1 when it is gone; 0."""
    QUEUE = 3
    """A queue: the number of its figures, -1 when it is gone; 0."""
    HAPPENED = 4
    """Something else, such as the beginning of a fault: the event's number is its text's; its :class:`Sort`; 0."""


class Status(IntEnum):
    """A pod's status."""

    WAITING = 1
    BOUND = 2
    RUNNING = 3
    PREEMPTED = 4
    """On its node until it is gone, to make room for a pod of higher priority."""
    EVICTED = 5
    """On its node until it is gone, for another reason, such as a taint."""
    SUCCEEDED = 6
    FAILED = 7
    GONE = 8


class Sort(IntEnum):
    """What sort of thing has happened."""

    OTHER = 0
    FAULT = 1
    RESIZE = 2
    SCHEDULER = 3


HOLDING = frozenset({Status.BOUND, Status.RUNNING, Status.PREEMPTED, Status.EVICTED})
"""The statuses in which a pod takes room on its node."""
