"""What happens in the course of an experiment: faults, changes of size, programs, and what stops or is cut off."""

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from kumulus.extras.lab.file.fields import Name, Needed, Seconds
from kumulus.extras.lab.file.workload import MOST_WORKERS
from kumulus.model.checks import problem
from kumulus.model.fields import FORM, Replicas, Section, malformed, whole
from kumulus.stackfile.faults import FaultSpec

OUTAGES = ("kill", "partition", "restore")
"""What happens to a worker of a federation."""
ACTIONS = ("fault", "clear", "resize", "scale", "scheduler", "delete", "run", *OUTAGES)


class PoolResize(Section):
    """A pool that has another number of nodes from then on, until the experiment ends."""

    pool: Needed = Field(examples=["a100-use1"])
    """The pool's name: its group and zone, as in its nodes' names."""
    replicas: Replicas = Field(examples=["600"])
    """How many nodes the pool then has."""


class Scale(Section):
    """A workload of Deployments that has another number of pods from then on."""

    workload: Name = Field(examples=["web"])
    """The name of a workload made of Deployments."""
    replicas: Annotated[int, whole(0, MOST_WORKERS)] = Field(examples=["350"])
    """How many pods each of its Deployments then has."""


class TimelineProgram(Section):
    """A command of the user's, run by /bin/sh in the experiment file's directory; its exit code has to be 0.

    It finds `KUBECONFIG`, and in `KUMULUS_NAMESPACE` the namespace of the workloads.
    """

    command: Needed = Field(examples=["./check.sh"])
    """What is run."""
    background: bool = Field(default=False, examples=["true"])
    """Whether it runs until the experiment ends, as an operator does; by default the experiment waits for it, as for a
    check."""


class TimelineEvent(Section):
    """One thing that happens."""

    model_config = ConfigDict(json_schema_extra={FORM: "eventRules"})

    at: Seconds = Field(default=0.0, examples=["30s"])
    """When it happens, counted from `after`."""
    after: Literal["start", "created", "scheduled"] = Field(default="start", examples=["created"])
    """What `at` counts from: the start, before the first object is created; or when all pods are created, or all have a
    node."""
    fault: FaultSpec | None = Field(default=None, examples=["{name: rack, kind: unreachable, target: {rack: r3}}"])
    """A fault that is active from then on, as in a stack file's `faults`."""
    clear: Name | None = Field(default=None, examples=["rack"])
    """The name of a fault of this timeline to end."""
    resize: PoolResize | None = Field(default=None, examples=["{pool: a100-use1, replicas: 600}"])
    """A pool gets another size."""
    scale: Scale | None = Field(default=None, examples=["{workload: web, replicas: 350}"])
    """The Deployments of a workload get another number of pods."""
    scheduler: Literal["stop", "start", "restart"] | None = Field(default=None, examples=["restart"])
    """The scheduler is stopped, started or restarted."""
    delete: Name | None = Field(default=None, examples=["training"])
    """The name of a workload whose objects are deleted, and of whose jobs no more arrive."""
    run: TimelineProgram | None = Field(default=None, examples=["{command: ./check.sh}"])
    """A command that is run on this machine; the experiment ends it, if it has not ended itself."""
    kill: Name | None = Field(default=None, examples=["worker-2"])
    """A worker of the stack's federation, with the runtime kwok, whose control plane is killed: every process, by
    SIGKILL."""
    partition: Name | None = Field(default=None, examples=["worker-1"])
    """A worker of the stack's federation that the hub cannot reach from then on: connections are cut, and new ones
    refused. The hub must have the runtime kwok."""
    restore: Name | None = Field(default=None, examples=["worker-2"])
    """A worker to restore, which this timeline has killed or cut off; it is back once it has started."""

    @model_validator(mode="after")
    def _one_action(self) -> Self:
        present = [name for name in ACTIONS if getattr(self, name) is not None]
        if len(present) != 1:
            what = f"says {' and '.join(present)} at once" if present else "says nothing of what happens"
            remedy = "write each as an item of its own" if present else f"write one of {', '.join(ACTIONS)}"
            raise malformed([problem((), what, remedy)])
        return self

    @property
    def action(self) -> str:
        """Which of its fields is given."""
        return next(name for name in ACTIONS if getattr(self, name) is not None)
