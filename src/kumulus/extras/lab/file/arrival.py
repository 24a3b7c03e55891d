"""When the jobs of a workload arrive: at once, evenly, at random, or as a trace has it."""

# ruff: noqa: N815 - fields are called what the file calls them, so that a path in an error is a path in the code

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from kumulus.extras.lab.file.fields import MOST_JOBS, Needed, Rate, Seconds
from kumulus.model.checks import problem
from kumulus.model.fields import FORM, Section, found, whole


class Columns(Section):
    """The columns of a trace, by their headings in its first line."""

    arrival: Needed = Field(
        default="arrival",
        description=(
            "The column of a job's arrival: a number of seconds (from any epoch; the first job arrives at 0), or a "
            "date."
        ),
        examples=["submit_time"],
    )
    size: str = Field(
        default="size",
        description="The column of a job's number of workers; if empty, every job has the workload's.",
        examples=["num_workers"],
    )
    duration: str = Field(
        default="duration",
        description="The column of a job's duration in seconds; if empty, every job has the workload's.",
        examples=["duration"],
    )
    name: str = Field(
        default="", description="The column of a job's name; empty if the trace has none.", examples=["name"]
    )
    cpu: str = Field(
        default="",
        description=(
            "The column of the CPU that each worker requests, a quantity; if empty, every job has the workload's "
            "`requests`, as for the following."
        ),
        examples=["cpu"],
    )
    memory: str = Field(
        default="",
        description="The column of the memory that each worker requests, a quantity.",
        examples=["memory"],
    )
    gpus: str = Field(
        default="", description="The column of how many GPUs each worker requests.", examples=["num_gpus"]
    )
    gpuMilli: str = Field(
        default="",
        description="The column of the part of each GPU, in thousandths: less than 1000 only for a single GPU.",
        examples=["gpu_milli"],
    )
    gpuModels: str = Field(
        default="",
        description="The column of the GPU models that a job may run on, `A|B`, values of the `productLabel`.",
        examples=["gpu_spec"],
    )
    priority: str = Field(default="", description="The column of a job's priority, a whole number.", examples=["prio"])
    user: str = Field(default="", description="The column of a job's user, queue or virtual cluster.", examples=["vc"])
    qos: str = Field(
        default="", description="The column of a job's quality of service, in the trace's words.", examples=["qos"]
    )


class Window(Section):
    """A part of a trace, by time."""

    from_: Seconds = Field(
        default=0.0, alias="from", description="When it starts, counted from the trace's first job.", examples=["24h"]
    )
    to: Seconds = Field(description="When it ends, counted from the trace's first job.", examples=["168h"])

    @model_validator(mode="after")
    def _some_time(self) -> Self:
        if self.to <= self.from_:
            raise found([problem(("to",), "is not after from", "write a longer duration")])
        return self


class Trace(Section):
    """A trace: a CSV file with a header line and a line for each job."""

    file: Needed = Field(
        description=(
            "The trace's path, relative to the experiment file: CSV with a header line and a line for each job."
        ),
        examples=["traces/small.csv"],
    )
    columns: Columns = Field(
        default_factory=Columns,
        description="The headings of the columns to use.",
        examples=["{arrival: submit_time}"],
    )
    speed: Rate = Field(
        default=1.0,
        description="How many times faster than recorded the trace is replayed, both arrivals and durations.",
        examples=["60"],
    )
    limit: Annotated[int, whole(1, MOST_JOBS)] | None = Field(
        default=None, description="Only this many of the trace's first jobs.", examples=["500"]
    )
    window: Window | None = Field(
        default=None,
        description="Only the jobs that arrived in a part of the trace's time.",
        examples=["{from: 24h, to: 168h}"],
    )
    inflate: Rate | None = Field(
        default=None,
        description=(
            "Jobs in an order drawn by the seed, with random ones repeated or left out to request this share of all "
            "GPUs."
        ),
        examples=["1.3"],
    )
    shuffle: Literal["seed"] | None = Field(
        default=None, description="With `seed`, the experiment's seed decides the order of the jobs.", examples=["seed"]
    )
    stay: bool = Field(default=False, description="No job ends, whatever the trace says.", examples=["true"])
    milliGpus: bool = Field(
        default=False,
        description=(
            "Pods also request GPUs in thousandths, by the extended resource `kumulus.io/gpu-milli`. Every scheduler "
            "counts it on nodes that declare it, by node and not GPU by GPU. With `resourceClaims`, it rules out nodes "
            "without room before claims are allocated."
        ),
        examples=["true"],
    )
    userQueues: bool = Field(
        default=False,
        description=(
            "Each job waits in a queue named after its user or virtual cluster. Unless `setup` has the queue, the run "
            "creates it with all that the nodes have. Schedulers without queues take the jobs as they are."
        ),
        examples=["true"],
    )


class Arrival(Section):
    """When jobs arrive; by default all at once."""

    model_config = ConfigDict(json_schema_extra={FORM: "arrivalRules"})

    after: Seconds = Field(
        default=0.0, description="How long after the experiment's start the first job may come.", examples=["30s"]
    )
    rate: Rate | None = Field(default=None, description="How many jobs arrive per second, evenly.", examples=["5"])
    poisson: Rate | None = Field(
        default=None,
        description="How many jobs arrive per second on average, with exponentially distributed times between them.",
        examples=["5"],
    )
    trace: Trace | None = Field(
        default=None,
        description="Jobs arrive as recorded; the trace decides how many there are.",
        examples=["{file: trace.csv}"],
    )

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        present = [name for name in ("rate", "poisson", "trace") if getattr(self, name) is not None]
        if len(present) > 1:
            raise found([problem((present[1],), f"cannot be beside {present[0]}", "leave one of them out")])
        return self
