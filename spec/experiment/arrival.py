"""When the jobs of a workload arrive: at once, evenly, at random, or as a trace has it."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from spec.checks import problem
from spec.experiment.fields import MOST_JOBS, Needed, Rate, Seconds
from spec.fields import Section, found, whole


class Columns(Section):
    """The columns of a trace, by their headings in its first line.

    Args:
        arrival: when a job arrives: a number of seconds (of whatever epoch; the first job comes at 0), or a date.
        size: how many workers it has; empty when every job has the workload's.
        duration: how many seconds it runs; empty when every job runs as long as the workload says.
    """

    arrival: Needed = Field(default="arrival", examples=["submit_time"])
    size: str = Field(default="size", examples=["num_workers"])
    duration: str = Field(default="duration", examples=["duration"])


class Trace(Section):
    """A trace: a CSV file with a heading, each further line a job.

    Args:
        file: its path, relative to the experiment file.
        columns: the headings of the columns that count.
        speed: how many times faster than it was recorded it is played; arrivals and durations both.
        limit: only so many of its first jobs.
    """

    file: Needed = Field(examples=["traces/small.csv"])
    columns: Columns = Field(default_factory=Columns, examples=["{arrival: submit_time}"])
    speed: Rate = Field(default=1.0, examples=["60"])
    limit: Annotated[int, whole(1, MOST_JOBS)] | None = Field(default=None, examples=["500"])


class Arrival(Section):
    """When jobs arrive; at once unless told otherwise.

    Args:
        after: how long after the experiment's start the first may come.
        rate: so many in a second, evenly.
        poisson: so many in a second on average, the times between them drawn from an exponential distribution.
        trace: as recorded; it decides how many jobs there are.
    """

    after: Seconds = Field(default=0.0, examples=["30s"])
    rate: Rate | None = Field(default=None, examples=["5"])
    poisson: Rate | None = Field(default=None, examples=["5"])
    trace: Trace | None = Field(default=None, examples=["{file: trace.csv}"])

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        given = [name for name in ("rate", "poisson", "trace") if getattr(self, name) is not None]
        if len(given) > 1:
            raise found([problem((given[1],), f"cannot be beside {given[0]}", "leave one of them out")])
        return self
