"""Field types that only experiment files have: durations in seconds, rates, and required texts."""

import math
from collections.abc import Mapping
from typing import Annotated

from kumulus.model import durations
from kumulus.model.checks import problem, resource_name_problems, resource_problems
from kumulus.model.errors import Problem, Where, shown
from kumulus.model.fields import checked, short_label, text
from kumulus.model.names import ValueMistake, label_key_mistake
from kumulus.model.quantity import canonical_resources

NAME_LENGTH = 40
MOST_JOBS = 100_000
_HIGHEST_RATE = 10_000.0


def _rate_problems(where: Where, raw: object) -> list[Problem]:
    remedy = "write how many jobs come in a second on average, such as 5 or 0.2"
    if isinstance(raw, bool) or not isinstance(raw, int | float) or not math.isfinite(raw):
        return [problem(where, f"is {shown(raw)}, not a rate", remedy)]
    if raw <= 0:
        return [problem(where, f"is {shown(raw)}, which is not above 0", remedy)]
    return [problem(where, f"is {shown(raw)}, more than {_HIGHEST_RATE:,.0f}", remedy)] if raw > _HIGHEST_RATE else []


def _label_key(value: str) -> ValueMistake | None:
    return label_key_mistake(value) if value else None


def _request_problems(where: Where, raw: object) -> list[Problem]:
    # The API server refuses a pod that requests what has no domain.
    named = (
        resource_name_problems(where, raw) if isinstance(raw, Mapping) and all(isinstance(k, str) for k in raw) else []
    )
    return [*resource_problems(where, raw), *named]


def _needed(value: str) -> ValueMistake | None:
    return None if value.strip() else ValueMistake("is empty", "write a text")


Name = Annotated[str, short_label(NAME_LENGTH)]
LabelKey = Annotated[str, text(_label_key, form="labelKeyOrEmpty")]
Needed = Annotated[str, text(_needed, form="notBlank")]
Requests = Annotated[dict[str, str], checked(_request_problems, canonical_resources, form="capacity")]
Rate = Annotated[
    float, checked(_rate_problems, float, form={"type": "number", "exclusiveMinimum": 0, "maximum": _HIGHEST_RATE})
]
Seconds = Annotated[float, checked(durations.duration_problems, durations.of, form="duration")]
"""A duration as the file has it, `90s`; a number of seconds in the model."""
