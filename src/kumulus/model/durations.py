"""Durations in Go's notation, as Kubernetes and KWOK take them (`90s`, `1h30m`, `250ms`), and points in time."""

import math
import re
from datetime import UTC, datetime

from kumulus.model.checks import problem
from kumulus.model.errors import Problem, Where, shown

LONGEST_S = 366 * 86_400.0
"""Nothing emulated takes longer than a year."""

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)")
_REMEDY = "write a duration such as 90s, 5m or 1h30m"


def seconds(text: str) -> float:
    """A duration in seconds; ValueError if the text is none."""
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"{text!r} is not a duration")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def duration_problems(where: Where, raw: object) -> list[Problem]:
    """Whether a value is a duration from 0 to a year; 0 may be written without a unit."""
    if raw == 0 and not isinstance(raw, bool):
        return []
    if isinstance(raw, int | float) and not isinstance(raw, bool):
        return [problem(where, f"is {shown(raw)}, which has no unit", f"write {shown(raw)}s, or another unit")]
    if not isinstance(raw, str):
        return [problem(where, f"is {shown(raw)}", _REMEDY)]
    if raw.startswith("-"):
        return [problem(where, f"is {shown(raw)}, which is negative", _REMEDY)]
    try:
        length = seconds(raw)
    except ValueError:
        return [problem(where, f"is {shown(raw)}, which is not a duration", _REMEDY)]
    return [problem(where, f"is {shown(raw)}, longer than a year", _REMEDY)] if length > LONGEST_S else []


def of(raw: str | int | float) -> float:
    """A checked duration in seconds; the only number that :func:`duration_problems` accepts is 0."""
    return seconds(raw) if isinstance(raw, str) else 0.0


def written(length: float) -> str:
    """A duration in seconds as a file has it, in the largest unit that makes it a whole number: `10m`."""
    for unit, seconds_of in (("h", 3600), ("m", 60)):
        if length and length % seconds_of == 0:
            return f"{length / seconds_of:.0f}{unit}"
    return f"{length:.6f}".rstrip("0").rstrip(".") + "s"


def moment(text: str) -> float | None:
    """Seconds since the epoch, from a number or an ISO 8601 date (UTC if it names no zone); None from anything else."""
    try:
        value = float(text)
    except ValueError:
        try:
            date = datetime.fromisoformat(text)
        except ValueError:
            return None
        value = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    return value if math.isfinite(value) else None


def timestamp(when: datetime | None = None) -> str:
    """A point in time, by default now, as Kubernetes' API has it: RFC 3339, in UTC, to the second."""
    return (when or datetime.now(UTC)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_timestamp() -> str:
    """The current time as Kubernetes' MicroTime has it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
