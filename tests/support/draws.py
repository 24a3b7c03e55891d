"""Samples of pod lifecycles' durations, from the jq expressions of their stages, and how far they are off.

Here C jq evaluates them, in KWOK gojq. tests/integration/test_pod_lifecycles.py shows that both draw the same.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any

import jq

from kumulus.kwok.lifecycle_stages import StageObject

Cdf = Callable[[float], float]
START = "2026-01-01T00:00:00Z"
CRITICAL = math.sqrt(-math.log(1e-6 / 2) / 2)
"""Kolmogorov's distribution: sqrt(n) times the greatest distance passes this once in a million right samples."""


compiled = cache(jq.compile)


def fits(match: Mapping[str, Any], item: dict[str, Any]) -> bool:
    """Whether an object fulfils an expression of a stage's selector."""
    # KWOK takes an expression that fails, as of an absent list, for one without a value.
    try:
        values = {str(each) for each in compiled(match["key"]).input_value(item).all() if each is not None}
    except ValueError:
        values = set()
    within = bool(values & set(match.get("values", [])))
    return {"In": within, "NotIn": not within, "Exists": bool(values), "DoesNotExist": not values}[match["operator"]]


def normal(x: float) -> float:
    """The standard normal distribution."""
    return (1 + math.erf(x / math.sqrt(2))) / 2


def pod(number: int = 0, **metadata: Any) -> dict[str, Any]:
    """A pod whose containers run since START."""
    status = {"restartCount": 0, "ready": True, "state": {"running": {"startedAt": START}}}
    return {
        "metadata": {"namespace": "default", "name": f"worker-{number}", **metadata},
        "status": {"phase": "Running", "startTime": START, "containerStatuses": [status]},
    }


def waits(stage: StageObject, pods: Sequence[dict[str, Any]]) -> list[float]:
    """How long a stage waits for each pod, in seconds: when it is due, less the half second and the start."""
    program = jq.compile(stage.spec["delay"]["durationFrom"]["jq"]["expression"])
    begin = datetime.fromisoformat(START)
    due = [datetime.fromisoformat(program.input_value(each).first()) for each in pods]
    return [(time - begin).total_seconds() - 0.5 for time in due]


def distance(sample: Sequence[float], cdf: Cdf) -> float:
    """sqrt(n) times the greatest distance between a sample's distribution and another (Kolmogorov, Smirnov)."""
    count = len(sample)
    gaps = [
        max(cdf(value) - rank / count, (rank + 1) / count - cdf(value)) for rank, value in enumerate(sorted(sample))
    ]
    return math.sqrt(count) * max(gaps)


def spread_error(sample: Sequence[float], cdf: Cdf) -> float:
    """How far a sample's spread is off, in standard errors: beyond 5 once in two million right samples.

    :func:`distance` hardly detects a spread that is a tenth too large. A distribution function maps its own samples to
    the uniform distribution on 0 to 1, whose variance is 1/12; a sample's variance has variance 1/180 by its size.
    """
    count = len(sample)
    evened = [cdf(value) for value in sample]
    mean = sum(evened) / count
    variance = sum((value - mean) ** 2 for value in evened) / count
    return abs(variance - 1 / 12) * math.sqrt(180 * count)
