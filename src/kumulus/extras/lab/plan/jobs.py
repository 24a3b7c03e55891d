"""A job to create, as every part of a plan has it."""

from __future__ import annotations

from dataclasses import dataclass

from kumulus.extras.lab.plan.pods import Object


@dataclass(frozen=True)
class PlannedJob:
    """A job to create."""

    name: str
    """Its name, by which its pods are known."""
    workload: str
    """The workload that it belongs to."""
    at: float
    """Seconds from the start."""
    workers: int
    """How many pods it makes; 0 where that is not known."""
    objects: tuple[Object, ...]
    """What to create, in this order."""
    later: int = 0
    """How many more it makes as these complete."""
    recorded: bool = False
    """Whether it is from a recording: its objects name recorded namespaces, and the run has one of its own for each."""
