"""What happens in the course of an experiment: faults, changes of size, programs, and what stops or is cut off."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from kumulus.extras.lab.file.fields import Name, Needed, Seconds
from kumulus.extras.lab.file.workload import MOST_WORKERS
from kumulus.model.checks import problem
from kumulus.model.fields import FORM, Replicas, Section, found, whole
from kumulus.stackfile.faults import Fault

OUTAGES = ("kill", "partition", "restore")
"""What happens to a worker of a federation."""
ACTIONS = ("fault", "clear", "resize", "scale", "scheduler", "delete", "run", *OUTAGES)


class Resize(Section):
    """A pool that has another number of nodes from then on, until the experiment ends."""

    pool: Needed = Field(
        description="The pool's name: its group and zone, as in its nodes' names.", examples=["a100-use1"]
    )
    replicas: Replicas = Field(description="How many nodes the pool then has.", examples=["600"])


class Scale(Section):
    """A workload of Deployments that has another number of pods from then on."""

    workload: Name = Field(description="The name of a workload made of Deployments.", examples=["web"])
    replicas: Annotated[int, whole(0, MOST_WORKERS)] = Field(
        description="How many pods each of its Deployments then has.", examples=["350"]
    )


class Program(Section):
    """A command of the user's, run by /bin/sh in the experiment file's directory; its exit code has to be 0.

    It finds `KUBECONFIG`, and in `KUMULUS_NAMESPACE` the namespace of the workloads.
    """

    command: Needed = Field(description="What is run.", examples=["./check.sh"])
    background: bool = Field(
        default=False,
        description=(
            "Whether it runs until the experiment ends, as an operator does; by default the experiment waits for it, "
            "as for a check."
        ),
        examples=["true"],
    )


class Event(Section):
    """One thing that happens."""

    model_config = ConfigDict(json_schema_extra={FORM: "eventRules"})

    at: Seconds = Field(default=0.0, description="When it happens, counted from `after`.", examples=["30s"])
    after: Literal["start", "created", "scheduled"] = Field(
        default="start",
        description=(
            "What `at` counts from: the start, before the first object is created; or when all pods are created, or "
            "all have a node."
        ),
        examples=["created"],
    )
    fault: Fault | None = Field(
        default=None,
        description="A fault that is active from then on, as in a stack file's `faults`.",
        examples=["{name: rack, kind: unreachable, target: {rack: r3}}"],
    )
    clear: Name | None = Field(
        default=None, description="The name of a fault of this timeline to end.", examples=["rack"]
    )
    resize: Resize | None = Field(
        default=None, description="A pool gets another size.", examples=["{pool: a100-use1, replicas: 600}"]
    )
    scale: Scale | None = Field(
        default=None,
        description="The Deployments of a workload get another number of pods.",
        examples=["{workload: web, replicas: 350}"],
    )
    scheduler: Literal["stop", "start", "restart"] | None = Field(
        default=None, description="The scheduler is stopped, started or restarted.", examples=["restart"]
    )
    delete: Name | None = Field(
        default=None,
        description="The name of a workload whose objects are deleted, and of whose jobs no more arrive.",
        examples=["training"],
    )
    run: Program | None = Field(
        default=None,
        description="A command that is run on this machine; the experiment ends it, if it has not ended itself.",
        examples=["{command: ./check.sh}"],
    )
    kill: Name | None = Field(
        default=None,
        description=(
            "A worker of the stack's federation, with the runtime kwok, whose control plane is killed: every process, "
            "by SIGKILL."
        ),
        examples=["worker-2"],
    )
    partition: Name | None = Field(
        default=None,
        description=(
            "A worker of the stack's federation that the hub cannot reach from then on: connections are cut, and new "
            "ones refused. The hub must have the runtime kwok."
        ),
        examples=["worker-1"],
    )
    restore: Name | None = Field(
        default=None,
        description="A worker to restore, which this timeline has killed or cut off; it is back once it has started.",
        examples=["worker-2"],
    )

    @model_validator(mode="after")
    def _one_action(self) -> Self:
        present = [name for name in ACTIONS if getattr(self, name) is not None]
        if len(present) != 1:
            what = f"says {' and '.join(present)} at once" if present else "says nothing of what happens"
            remedy = "write each as an item of its own" if present else f"write one of {', '.join(ACTIONS)}"
            raise found([problem((), what, remedy)])
        return self

    @property
    def action(self) -> str:
        """Which of its fields is given."""
        return next(name for name in ACTIONS if getattr(self, name) is not None)
