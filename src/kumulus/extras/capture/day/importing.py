"""From recorded requests to the files of an experiment that replays them."""

import json
import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kumulus.extras.capture.day import reading
from kumulus.extras.capture.day.intent import Day, counts
from kumulus.extras.capture.day.pods import over, ran
from kumulus.extras.capture.day.requests import ApiRequest, RequestCounts, Unusable, seconds
from kumulus.extras.capture.dumps import FileRefused
from kumulus.extras.lab.file.recording import API_VERSION, KIND
from kumulus.host import files
from kumulus.kube import safe_yaml
from kumulus.model import durations
from kumulus.model.names import dns_safe

BEGINS = f'{{"apiVersion":"{API_VERSION}","from":'
"""How the first line of a recording begins."""

_BEGINS = "# A recorded day, as `kumulus replay import` made it."
_RECORDING = ".recording.jsonl"
# The most characters of an experiment's name.
_LONGEST = 40
_MORE_TIME = 600.0


@dataclass(frozen=True)
class ImportedDay:
    """The result of an import; the day lasted so many seconds from its first step to its end."""

    day: Day
    counted: RequestCounts
    recording: Path
    lasted: float


def import_day(
    sources: Sequence[Path], experiment: Path, stack: str, speed: float = 1.0, since: str = "", until: str = ""
) -> ImportedDay:
    """Read recorded requests, and write an experiment that replays them.

    Args:
        sources: files of an audit log or of KWOK's recording, or a directory of captures.
        experiment: the experiment file to write; the recording is written next to it.
        speed: how many times faster than recorded.
        since: where to begin, a time of RFC 3339 or a duration after the beginning; empty for the beginning.
        until: where to end, likewise; empty for the end.
    """
    counted, day = RequestCounts(), Day()
    # Sorted, since each API server of a cluster writes its own log, with a line when it has answered.
    for request in sorted(filter(counts, _requests(sources, counted)), key=lambda each: each.at):
        day.take(request)
    day.end()
    if counted.apart and day.pods.every:
        apart = durations.written(counted.apart)
        what = f"moments between captures: when pods came, got a node and ended is known to {apart} only"
        day.left_out[what] = len(day.pods.every)
    if not any(step.do == "create" for step in day.steps):
        bad = f"; {counted.bad[0]}" if counted.bad else ""
        first = f"; {next(iter(day.left_out))}" if day.left_out else ""
        raise FileRefused(f"nothing in {counted.entries:,} entries can be replayed{bad}{first}")
    began, ended = span(day)
    window = {key: _moment(text, began) for key, text in (("from", since), ("until", until)) if text}
    lasted = ended - began
    begins, ends = window.get("from", 0.0), window.get("until", math.inf)
    if ends <= begins:
        raise FileRefused(f"--until {until} is not after --from {since}")
    if begins and begins >= lasted:
        raise FileRefused(f"--from {since} is not before the recording's end, {lasted:,.0f} s after its beginning")
    recording = experiment.with_suffix(_RECORDING)
    files.write(recording, "".join(lines(day, sources[0].name)), mode=0o600)
    part = {key: f"{value:.3f}s" for key, value in window.items()}
    files.write(
        experiment, _experiment(experiment, recording, stack, speed, part, min(ends, lasted) - begins), mode=0o600
    )
    return ImportedDay(day, counted, recording, lasted)


def first_lines(experiment: Path) -> dict[Path, str]:
    """The files that an import writes, with how the first line of each begins."""
    return {experiment: _BEGINS, experiment.with_suffix(_RECORDING): BEGINS}


def _moment(text: str, began: float) -> float:
    """A time or a duration as seconds after the beginning."""
    try:
        found = durations.seconds(text)
    except ValueError:
        try:
            found = seconds(text) - began
        except Unusable:
            raise FileRefused(f"{text!r} is neither a time, 2026-11-22T09:00:00Z, nor a duration, 2h") from None
    if found < 0:
        raise FileRefused(f"{text} is before the recording's beginning")
    return found


def _requests(sources: Sequence[Path], counted: RequestCounts) -> Iterator[ApiRequest]:
    for source in sources:
        if reading.is_series(source):
            yield from reading.between_captures(source, counted)
        elif source.is_dir():
            inside = sorted(each for each in source.iterdir() if each.is_file() and not each.is_symlink())
            for each in inside:
                yield from reading.read(each, counted)
        elif source.exists():
            yield from reading.read(source, counted)
        else:
            raise FileRefused(f"{source} does not exist")


def summary(found: ImportedDay) -> Iterator[str]:
    """The lines of a summary of an import."""
    day, counted = found.day, found.counted
    steps = Counter(step.do for step in day.steps)
    kinds = Counter(step.job.partition("/")[0] for step in day.steps if step.do == "create")
    yield f"{counted.entries:,} entries of {found.lasted:,.0f} s, {counted.bad_count:,} of them bad"
    yield f"to replay: {', '.join(f'{number:,} {kind}' for kind, number in kinds.most_common())}"
    others = [f"{number:,} × {do}" for do, number in steps.most_common() if do != "create"]
    if others:
        yield f"  and {', '.join(others)}"
    pods = day.pods.every
    if pods:
        # What had a node when it was first seen may have got it at any time before.
        waited = sum(pod.bound is not None and pod.bound > pod.created for pod in pods)
        yield f"what became of {len(pods):,} pods then is known, of {waited:,} when they got a node"
    for what, number in day.left_out.most_common():
        yield f"  not replayed, {number:,}: {what}"


def _experiment(file: Path, recording: Path, stack: str, speed: float, window: Mapping[str, str], lasted: float) -> str:
    replay: dict[str, Any] = {"file": os.path.relpath(recording.absolute(), file.absolute().parent), "speed": speed}
    replay |= window
    made = {
        "name": dns_safe(file.stem, _LONGEST) or "day",
        **({"stack": stack} if stack else {}),
        "workloads": [{"name": "recorded", "replay": replay}],
        "timeout": f"{min(lasted / speed + _MORE_TIME, durations.LONGEST_S):.0f}s",
    }
    text = safe_yaml.written(made, width=120)
    return f"{_BEGINS}\n{text}"


# The recording that the lab replays: a line of JSON for each step, and one for each recorded pod.


def lines(day: Day, source: str) -> Iterator[str]:
    """The lines of a recording."""
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
