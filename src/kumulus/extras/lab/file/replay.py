"""A workload that is a recorded day: what was created, scaled, deleted and evicted, and when."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from kumulus.extras.lab.file.fields import Needed, Rate, Seconds
from kumulus.model.checks import problem
from kumulus.model.fields import Section, found


class Replay(Section):
    """A recording to replay, or a part of one."""

    file: Needed = Field(
        description="The recording, as `kumulus replay import` writes it, relative to the experiment file.",
        examples=["day.recording.jsonl"],
    )
    speed: Rate = Field(
        default=1.0,
        description="How many times faster than recorded it is replayed, both times between steps and runs.",
        examples=["10"],
    )
    from_: Seconds = Field(
        default=0.0,
        alias="from",
        description=(
            "When the replay starts, counted from the recording's start; what existed by then is created at once."
        ),
        examples=["2h"],
    )
    until: Seconds | None = Field(
        default=None,
        description="When the replay ends, counted from the recording's start; by default at its end.",
        examples=["5h"],
    )

    @model_validator(mode="after")
    def _some_time(self) -> Self:
        if self.until is not None and self.until <= self.from_:
            raise found([problem(("until",), "is not after from", "write a longer duration")])
        return self
