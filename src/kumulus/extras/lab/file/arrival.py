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

    arrival: Needed = Field(default="arrival", examples=["submit_time"])
    """The column of a job's arrival: a number of seconds (from any epoch; the first job arrives at 0), or a date."""
    size: str = Field(default="size", examples=["num_workers"])
    """The column of a job's number of workers; if empty, every job has the workload's."""
    duration: str = Field(default="duration", examples=["duration"])
    """The column of a job's duration in seconds; if empty, every job has the workload's."""
    name: str = Field(default="", examples=["name"])
    """The column of a job's name; empty if the trace has none."""
    cpu: str = Field(default="", examples=["cpu"])
    """The column of the CPU that each worker requests, a quantity; if empty, every job has the workload's `requests`,
    as for the following."""
    memory: str = Field(default="", examples=["memory"])
    """The column of the memory that each worker requests, a quantity."""
    gpus: str = Field(default="", examples=["num_gpus"])
    """The column of how many GPUs each worker requests."""
    gpuMilli: str = Field(default="", examples=["gpu_milli"])
    """The column of the part of each GPU, in thousandths: less than 1000 only for a single GPU."""
    gpuModels: str = Field(default="", examples=["gpu_spec"])
    """The column of the GPU models that a job may run on, `A|B`, values of the `productLabel`."""
    priority: str = Field(default="", examples=["prio"])
    """The column of a job's priority, a whole number."""
    user: str = Field(default="", examples=["vc"])
    """The column of a job's user, queue or virtual cluster."""
    qos: str = Field(default="", examples=["qos"])
    """The column of a job's quality of service, in the trace's words."""


class Window(Section):
    """A part of a trace, by time."""

    from_: Seconds = Field(default=0.0, alias="from", examples=["24h"])
    """When it starts, counted from the trace's first job."""
    to: Seconds = Field(examples=["168h"])
    """When it ends, counted from the trace's first job."""

    @model_validator(mode="after")
    def _some_time(self) -> Self:
        if self.to <= self.from_:
            raise found([problem(("to",), "is not after from", "write a longer duration")])
        return self


class Trace(Section):
    """A trace: a CSV file with a header line and a line for each job."""

    file: Needed = Field(examples=["traces/small.csv"])
    """The trace's path, relative to the experiment file: CSV with a header line and a line for each job."""
    columns: Columns = Field(default_factory=Columns, examples=["{arrival: submit_time}"])
    """The headings of the columns to use."""
    speed: Rate = Field(default=1.0, examples=["60"])
    """How many times faster than recorded the trace is replayed, both arrivals and durations."""
    limit: Annotated[int, whole(1, MOST_JOBS)] | None = Field(default=None, examples=["500"])
    """Only this many of the trace's first jobs."""
    window: Window | None = Field(default=None, examples=["{from: 24h, to: 168h}"])
    """Only the jobs that arrived in a part of the trace's time."""
    inflate: Rate | None = Field(default=None, examples=["1.3"])
    """Jobs in an order drawn by the seed, with random ones repeated or left out to request this share of all GPUs."""
    shuffle: Literal["seed"] | None = Field(default=None, examples=["seed"])
    """With `seed`, the experiment's seed decides the order of the jobs."""
    stay: bool = Field(default=False, examples=["true"])
    """No job ends, whatever the trace says."""
    milliGpus: bool = Field(default=False, examples=["true"])
    """Pods also request GPUs in thousandths, by the extended resource `kumulus.io/gpu-milli`. Every scheduler counts it
    on nodes that declare it, by node and not GPU by GPU. With `resourceClaims`, it rules out nodes without room before
    claims are allocated."""
    userQueues: bool = Field(default=False, examples=["true"])
    """Each job waits in a queue named after its user or virtual cluster. Unless `setup` has the queue, the run creates
    it with all that the nodes have. Schedulers without queues take the jobs as they are."""


class Arrival(Section):
    """When jobs arrive; by default all at once."""

    model_config = ConfigDict(json_schema_extra={FORM: "arrivalRules"})

    after: Seconds = Field(default=0.0, examples=["30s"])
    """How long after the experiment's start the first job may come."""
    rate: Rate | None = Field(default=None, examples=["5"])
    """How many jobs arrive per second, evenly."""
    poisson: Rate | None = Field(default=None, examples=["5"])
    """How many jobs arrive per second on average, with exponentially distributed times between them."""
    trace: Trace | None = Field(default=None, examples=["{file: trace.csv}"])
    """Jobs arrive as recorded; the trace decides how many there are."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        present = [name for name in ("rate", "poisson", "trace") if getattr(self, name) is not None]
        if len(present) > 1:
            raise found([problem((present[1],), f"cannot be beside {present[0]}", "leave one of them out")])
        return self
