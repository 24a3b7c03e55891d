"""When the jobs of a workload arrive: at once, evenly, at random, or as a trace has it."""

# ruff: noqa: N815 - fields are called what the file calls them, so that a path in an error is a path in the code

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from kumulus.fields import FORM, Section, found, whole
from kumulus.lab.file.fields import MOST_JOBS, Needed, Rate, Seconds
from kumulus.model.checks import problem


class Columns(Section):
    """The columns of a trace, by their headings in its first line."""

    arrival: Needed = Field(
        default="arrival",
        description=(
            "The column of when a job arrives: a number of seconds (of whatever epoch; the first job "
            "comes at 0), or a date."
        ),
        examples=["submit_time"],
    )
    size: str = Field(
        default="size",
        description="The column of how many workers a job has; empty when every job has the workload's.",
        examples=["num_workers"],
    )
    duration: str = Field(
        default="duration",
        description=(
            "The column of how many seconds a job runs; empty when every job runs as long as the workload says."
        ),
        examples=["duration"],
    )
    name: str = Field(
        default="", description="The column of what the trace calls a job; empty when it does not.", examples=["name"]
    )
    cpu: str = Field(
        default="",
        description=(
            "The column of the CPU that each worker asks for, a quantity; empty when every job has the workload's "
            "`requests`, as for the following."
        ),
        examples=["cpu"],
    )
    memory: str = Field(
        default="",
        description="The column of the memory that each worker asks for, a quantity.",
        examples=["memory"],
    )
    gpus: str = Field(
        default="", description="The column of how many GPUs each worker asks for.", examples=["num_gpus"]
    )
    gpuMilli: str = Field(
        default="",
        description="The column of how much of each GPU that is, in thousandths: less than 1000 of a single GPU.",
        examples=["gpu_milli"],
    )
    gpuModels: str = Field(
        default="",
        description="The column of the GPU models that a job may run on, `A|B`, values of the `productLabel`.",
        examples=["gpu_spec"],
    )
    priority: str = Field(default="", description="The column of a job's priority, a whole number.", examples=["prio"])
    user: str = Field(
        default="", description="The column of the user, queue or virtual cluster that a job is of.", examples=["vc"]
    )
    qos: str = Field(
        default="", description="The column of the trace's word for a job's quality of service.", examples=["qos"]
    )


class Window(Section):
    """A part of a trace, by time."""

    from_: Seconds = Field(
        default=0.0, alias="from", description="How long after the trace's first job it starts.", examples=["24h"]
    )
    to: Seconds = Field(description="How long after the trace's first job it ends.", examples=["168h"])

    @model_validator(mode="after")
    def _some_time(self) -> Self:
        if self.to <= self.from_:
            raise found([problem(("to",), "is not after from", "write a longer duration")])
        return self


class Trace(Section):
    """A trace: a CSV file with a heading, each further line a job."""

    file: Needed = Field(
        description="The trace's path, relative to the experiment file: CSV with a heading, each further line a job.",
        examples=["traces/small.csv"],
    )
    columns: Columns = Field(
        default_factory=Columns,
        description="The headings of the columns that count.",
        examples=["{arrival: submit_time}"],
    )
    speed: Rate = Field(
        default=1.0,
        description="How many times faster than it was recorded the trace is played; arrivals and durations both.",
        examples=["60"],
    )
    limit: Annotated[int, whole(1, MOST_JOBS)] | None = Field(
        default=None, description="Only so many of the trace's first jobs.", examples=["500"]
    )
    window: Window | None = Field(
        default=None,
        description="Only the jobs that arrived in a part of the trace's time.",
        examples=["{from: 24h, to: 168h}"],
    )
    inflate: Rate | None = Field(
        default=None,
        description=(
            "Every job once in an order drawn by the seed, then jobs drawn from all of them, until they ask for this "
            "share of all GPUs."
        ),
        examples=["1.3"],
    )
    shuffle: Literal["seed"] | None = Field(
        default=None, description="With `seed`, the experiment's seed decides the order of the jobs.", examples=["seed"]
    )
    stay: bool = Field(
        default=False, description="Jobs stay: none of them ends, whatever the trace says.", examples=["true"]
    )
    milliGpus: bool = Field(
        default=False,
        description=(
            "Pods ask for GPUs in thousandths as well, by the extended resource `kumulus.io/gpu-milli`. Every "
            "scheduler counts it on nodes that declare it, by node and not GPU by GPU. Beside `resourceClaims`, nodes "
            "without room are ruled out by it before claims are allocated."
        ),
        examples=["true"],
    )
    userQueues: bool = Field(
        default=False,
        description=(
            "Each job waits in a queue of its user's name, or virtual cluster's, which the run makes with all that the "
            "nodes have, unless `setup` has it. Schedulers without queues take the jobs as they are."
        ),
        examples=["true"],
    )


class Arrival(Section):
    """When jobs arrive; at once unless set otherwise."""

    model_config = ConfigDict(json_schema_extra={FORM: "arrivalRules"})

    after: Seconds = Field(
        default=0.0, description="How long after the experiment's start the first job may come.", examples=["30s"]
    )
    rate: Rate | None = Field(default=None, description="So many jobs come in a second, evenly.", examples=["5"])
    poisson: Rate | None = Field(
        default=None,
        description=(
            "So many jobs come in a second on average, the times between them drawn from an exponential distribution."
        ),
        examples=["5"],
    )
    trace: Trace | None = Field(
        default=None,
        description="Jobs come as recorded; the trace decides how many there are.",
        examples=["{file: trace.csv}"],
    )

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        present = [name for name in ("rate", "poisson", "trace") if getattr(self, name) is not None]
        if len(present) > 1:
            raise found([problem((present[1],), f"cannot be beside {present[0]}", "leave one of them out")])
        return self
