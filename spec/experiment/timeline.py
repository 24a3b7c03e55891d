"""What happens in the course of an experiment: faults, pools that change size, a scheduler that stops and starts."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from spec.checks import problem
from spec.experiment.fields import Name, Needed, Seconds
from spec.faults import Fault
from spec.fields import Replicas, Section, found

_ACTIONS = ("fault", "clear", "resize", "scheduler", "delete")


class Resize(Section):
    """A pool that has another number of nodes from then on, until the experiment ends.

    Args:
        pool: the pool's name: its group and zone, as in its nodes' names.
        replicas: how many nodes it then has.
    """

    pool: Needed = Field(examples=["a100-use1"])
    replicas: Replicas = Field(examples=["600"])


class Event(Section):
    """One thing that happens.

    Args:
        at: when, counted from `after`.
        after: the start, before the first object is created, or the moment when all pods have been created.
        fault: a fault that holds from then on, as in a stack file's `faults`.
        clear: the name of a fault of this timeline that ends.
        resize: a pool gets another size.
        scheduler: the scheduler is stopped, started, or both.
        delete: the name of a workload whose objects are deleted.
    """

    at: Seconds = Field(default=0.0, examples=["30s"])
    after: Literal["start", "created"] = Field(default="start", examples=["created"])
    fault: Fault | None = Field(default=None, examples=["{name: rack, kind: unreachable, target: {rack: r3}}"])
    clear: Name | None = Field(default=None, examples=["rack"])
    resize: Resize | None = Field(default=None, examples=["{pool: a100-use1, replicas: 600}"])
    scheduler: Literal["stop", "start", "restart"] | None = Field(default=None, examples=["restart"])
    delete: Name | None = Field(default=None, examples=["training"])

    @model_validator(mode="after")
    def _one_action(self) -> Self:
        given = [name for name in _ACTIONS if getattr(self, name) is not None]
        if len(given) != 1:
            what = f"says {' and '.join(given)} at once" if given else "says nothing of what happens"
            remedy = "write each as an item of its own" if given else f"write one of {', '.join(_ACTIONS)}"
            raise found([problem((), what, remedy)])
        return self

    @property
    def action(self) -> str:
        """Which of its fields is given."""
        return next(name for name in _ACTIONS if getattr(self, name) is not None)
