"""The recording that the lab replays: a line of JSON for each step, and one for each recorded pod."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from kumulus.extras.capture.day.intent import Day
from kumulus.extras.capture.day.pods import over, ran

API_VERSION, KIND = "kumulus.io/v1alpha1", "Recording"
BEGINS = f'{{"apiVersion":"{API_VERSION}","from":'
"""How the first line of a recording begins."""


def lines(day: Day, source: str) -> Iterator[str]:
    """The lines of a recording.

    Args:
        day: what was read.
        source: a name for where it was read from.
    """
    since, until = span(day)
    yield _line(
        {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "source": source,
            "from": _time(since),
            "until": _time(until),
            "priorities": dict(sorted(day.classes.items())),
            "leftOut": dict(sorted(day.left_out.items())),
        }
    )
    lasted, ended = ran(day.pods.every), over(day.pods.every, until)
    for step in day.steps:
        found: dict[str, Any] = {"at": round(step.at - since, 3), "do": step.do, "job": step.job, **step.what}
        if step.do == "create" and step.job in lasted:
            found["ran"] = round(lasted[step.job], 3)
            found["over"] = round(max(0.0, ended[step.job] - step.at), 3)
        yield _line(found)
    for pod in day.pods.every:
        yield _line({"was": pod.plain(since)})


def span(day: Day) -> tuple[float, float]:
    """The beginning and the end of a day, in seconds since 1970."""
    times = [step.at for step in day.steps]
    ends = [at for pod in day.pods.every for at in (pod.created, pod.bound, pod.ended) if at is not None]
    return min(times), max([*times, *ends])


def _line(value: dict[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True) + "\n"


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
