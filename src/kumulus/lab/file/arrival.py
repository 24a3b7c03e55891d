"""When the jobs of a workload arrive: at once, evenly, at random, or as a trace has it."""

from __future__ import annotations

from typing import Annotated, Self

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


class Arrival(Section):
    """When jobs arrive; at once unless told otherwise."""

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
        given = [name for name in ("rate", "poisson", "trace") if getattr(self, name) is not None]
        if len(given) > 1:
            raise found([problem((given[1],), f"cannot be beside {given[0]}", "leave one of them out")])
        return self
