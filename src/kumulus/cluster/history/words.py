"""The numbers by which events say what they are about and what became of it. ``assets/history.js`` has the same."""

from __future__ import annotations

from enum import IntEnum


class Kind(IntEnum):
    """What an event is about; what its two values are."""

    NODE = 0
    """A node: the number of its condition, -1 when it is gone; the number of the kind of nodes that it is of."""
    POD = 1
    """A pod: one of :class:`Status`; of a waiting one the text of its reasons, of another one its node, -1 for none."""
    JOB = 2
    """A job: the number of what is said of it, -1 when it is gone; 0."""
    QUEUE = 3
    """A queue: the number of its figures, -1 when it is gone; 0."""
    HAPPENED = 4
    """Something else, such as a fault that began: its text is the event's number; what sort it is; 0."""


class Status(IntEnum):
    """What a pod is."""

    WAITING = 1
    BOUND = 2
    RUNNING = 3
    PREEMPTED = 4
    """On its node until it is gone, which a pod of higher priority is to have."""
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
"""In which a pod takes room on its node."""
