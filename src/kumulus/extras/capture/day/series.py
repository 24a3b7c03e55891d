"""Successive captures of one cluster: the differences between two of them were requested in between.

Each is a directory as `kumulus capture --to day/TIME` writes it, named after its time. Pods are replayed by themselves:
a capture has their owners, but not when an owner was created or scaled.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kumulus.extras.capture import putting
from kumulus.extras.capture.day.requests import Counted, Request
from kumulus.extras.capture.dumps import Refused
from kumulus.extras.capture.workload import SHAPE, manifest, pods
from kumulus.extras.capture.writing import WORKLOAD

_TIME = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)[T-](\d\d)[:-]?(\d\d)[:-]?(\d\d)Z?")


def is_series(path: Path) -> bool:
    """Whether a directory contains captures that are named after their times."""
    return path.is_dir() and any((each / WORKLOAD).is_file() for each in path.iterdir() if _TIME.fullmatch(each.name))


def requests(directory: Path, counted: Counted) -> Iterator[Request]:
    """The requests between captures, from their differences."""
    listed = sorted(
        (_time(match), each)
        for each in directory.iterdir()
        if (match := _TIME.fullmatch(each.name)) and (each / WORKLOAD).is_file()
    )
    if len(listed) < 2:
        raise Refused(f"{directory} has {len(listed)} captures; what happened is what differs between two")
    before: dict[tuple[str, str], dict[str, Any]] = {}
    for at, capture in listed:
        counted.entries += 1
        now = {(str(pod["namespace"]), str(pod["name"])): pod for pod in _pods(capture / WORKLOAD)}
        gone = {key for key, pod in before.items() if key not in now or _is_another(pod, now[key])}
        for key in sorted(gone):
            # Twice, as in a log: the first one requests the end of the pod, the second one completes it.
            yield _request(at, "delete", key)
            yield _request(at, "delete", key)
        for key, pod in now.items():
            if key not in before or key in gone:
                yield _request(at, "create", key, manifest(pod))
            elif pod.get("node") and not before[key].get("node"):
                yield _request(at, "update", key, {"spec": {"nodeName": pod["node"]}})
        before = now


def _is_another(before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether a new pod has the other's name, as in a StatefulSet: a pod never changes its node."""
    return bool(before.get("node")) and before["node"] != now.get("node")


def _pods(file: Path) -> Iterator[dict[str, Any]]:
    for document in putting.read(file):
        if document["kind"] == SHAPE:
            yield from pods(document)


def _request(at: float, verb: str, key: tuple[str, str], body: dict[str, Any] | None = None) -> Request:
    namespace, name = key
    return Request(at, verb, "", "v1", "pods", "", namespace, name, answered=body, created=verb == "create")


def _time(match: re.Match[str]) -> float:
    year, month, day, hour, minute, second = map(int, match.groups())
    return datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp()
