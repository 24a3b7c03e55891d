"""A job to create, as every part of a plan has it."""

from __future__ import annotations

from dataclasses import dataclass

from kumulus.extras.lab.plan.pods import Object


@dataclass(frozen=True)
class PlannedJob:
    """A job to create.

    Args:
        name: its name, by which its pods are known.
        workload: the workload that it belongs to.
        at: seconds from the start.
        workers: how many pods it makes; 0 where that is not known.
        objects: what to create, in this order.
        later: how many more it makes as these complete.
        recorded: whether it is from a recording: its objects name recorded namespaces, and the run has one of its
            own for each.
    """

    name: str
    workload: str
    at: float
    workers: int
    objects: tuple[Object, ...]
    later: int = 0
    recorded: bool = False
