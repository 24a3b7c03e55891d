"""Reads recorded requests, with bounds; unreadable entries are counted, with their lines.

A file has them in any format. Between successive captures of one cluster, the differences were requested. Each of those
is a directory as `kumulus capture --to day/TIME` writes it, named after its time. Pods are replayed by themselves: a
capture has their owners, but not when an owner was created or scaled.
"""

import gzip
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, cast

import yaml

from kumulus.extras.capture import claims, putting
from kumulus.extras.capture.day import exports, kept
from kumulus.extras.capture.day.requests import ApiRequest, RequestCounts, Unusable
from kumulus.extras.capture.dumps import FileRefused, documents
from kumulus.extras.capture.workload import SHAPE, manifest, pods
from kumulus.extras.capture.writing import WORKLOAD

_VERBS = {"create": "create", "patch": "patch", "delete": "delete"}
_RESOURCES = {"PriorityClass": "priorityclasses", **{kind: resource for (_, resource), kind in kept.GROUPS.items()}}

MOST_LINE = 32 * 1024**2
"""Most bytes of a line: an export may be a single line with thousands of events."""
_YAML = (".yaml", ".yml")
_TIME = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)[T-](\d\d)[:-]?(\d\d)[:-]?(\d\d)Z?")


def read(file: Path, counted: RequestCounts) -> Iterator[ApiRequest]:
    """The requests of a file, in its order: JSON lines, one JSON document, either also in gzip, or KWOK's YAML."""
    with _opened(file) as opened:
        try:
            if any(suffix in _YAML for suffix in file.suffixes):
                yield from _recording(opened, file, counted)
            else:
                yield from _lines(opened, file, counted)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise FileRefused(f"{file} cannot be unpacked: {error}") from None


def _opened(file: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(file, "rb")) if file.suffix == ".gz" else file.open("rb")


def _recording(opened: IO[bytes], file: Path, counted: RequestCounts) -> Iterator[ApiRequest]:
    began = file.stat().st_mtime
    try:
        for number, document in enumerate(documents(opened, file.name), start=1):
            counted.entries += 1
            try:
                if (found := request(document, began)) is not None:
                    yield found
            except Unusable as error:
                counted.refuse(f"{file.name}, document {number}", str(error))
    except yaml.YAMLError as error:
        raise FileRefused(f"{file} cannot be read: {str(error).splitlines()[0][:200]}") from None


def _lines(opened: IO[bytes], file: Path, counted: RequestCounts) -> Iterator[ApiRequest]:
    number = 0
    while line := opened.readline(MOST_LINE + 1):
        number += 1
        place = f"{file.name}, line {number}"
        if len(line) > MOST_LINE:
            counted.entries += 1
            counted.refuse(place, f"has more than {MOST_LINE:,} bytes")
            while line and not line.endswith(b"\n"):
                line = opened.readline(MOST_LINE)
            continue
        if number == 1 and line.strip() in (b"{", b"["):
            # A single document of many lines, as some export tools print it.
            yield from _entry(line + opened.read(MOST_LINE - len(line)), place, counted)
            if opened.read(1):
                counted.refuse(place, f"a document of more than {MOST_LINE:,} bytes; write it as lines: jq -c '.[]'")
            return
        if line.strip():
            yield from _entry(line, place, counted)


def _entry(text: bytes, place: str, counted: RequestCounts) -> Iterator[ApiRequest]:
    counted.entries += 1
    try:
        # CloudWatch's export to S3 puts a timestamp before each entry.
        yield from exports.requests(json.loads(text) if text.lstrip()[:1] in b"{[" else text.decode())
    except Unusable as error:
        counted.refuse(place, str(error))
    except (ValueError, RecursionError):
        counted.refuse(place, "is no JSON")


# The format of `kwokctl snapshot record`: the objects at the beginning, then a ResourcePatch for each change.
#
# Source: kubernetes-sigs/kwok pkg/apis/action/v1alpha1. A recording says how long after its beginning each change
# happened, but not when it began; the file's modification time is used for that.


def request(document: Any, began: float) -> ApiRequest | None:
    """The request that a document of a recording represents; None for an object of a kind that is not replayed.

    The recording ``began`` at that time, in seconds since 1970.
    """
    if not isinstance(document, Mapping) or not isinstance(document.get("kind"), str):
        raise Unusable("is no object")
    if document["kind"] == "ResourcePatch":
        return _patch(document, began)
    metadata = document.get("metadata")
    if not isinstance(metadata, Mapping):
        raise Unusable("has no metadata")
    resource = _RESOURCES.get(document["kind"])
    if resource is None:
        return None
    group, _, version = str(document.get("apiVersion") or "v1").rpartition("/")
    namespace, name = str(metadata.get("namespace") or ""), str(metadata.get("name") or "")
    return ApiRequest(began, "create", group, version, resource, "", namespace, name, answered=document, created=True)


def _patch(document: Mapping[str, Any], began: float) -> ApiRequest:
    about, target = document.get("resource"), document.get("target")
    verb, late = _VERBS.get(str(document.get("method"))), document.get("durationNanosecond", 0)
    if not isinstance(about, Mapping) or not isinstance(target, Mapping) or verb is None or not isinstance(late, int):
        raise Unusable("is a ResourcePatch without resource, target, method or durationNanosecond")
    body = document.get("template")
    whole = body if verb == "create" and isinstance(body, Mapping) else None
    return ApiRequest(
        at=began + late / 1e9,
        verb=verb,
        group=str(about.get("group") or ""),
        version=str(about.get("version") or "v1"),
        resource=str(about.get("resource") or ""),
        subresource="",
        namespace=str(target.get("namespace") or ""),
        name=str(target.get("name") or ""),
        sent=body,
        answered=whole,
        created=verb == "create",
    )


def is_series(path: Path) -> bool:
    """Whether a directory contains captures that are named after their times."""
    return path.is_dir() and any((each / WORKLOAD).is_file() for each in path.iterdir() if _TIME.fullmatch(each.name))


def between_captures(directory: Path, counted: RequestCounts) -> Iterator[ApiRequest]:
    """The requests between captures, from their differences."""
    listed = sorted(
        (_time(match), each)
        for each in directory.iterdir()
        if (match := _TIME.fullmatch(each.name)) and (each / WORKLOAD).is_file()
    )
    if len(listed) < 2:
        raise FileRefused(f"{directory} has {len(listed)} captures; what happened is what differs between two")
    counted.apart = max(later - at for (at, _), (later, _) in pairwise(listed))
    before: dict[tuple[str, str], dict[str, Any]] = {}
    named: set[tuple[str, str, str]] = set()
    for at, capture in listed:
        counted.entries += 1
        now: dict[tuple[str, str], dict[str, Any]] = {}
        for document in putting.read(capture / WORKLOAD):
            if document["kind"] == SHAPE:
                now |= {(str(pod["namespace"]), str(pod["name"])): pod for pod in pods(document)}
            elif (found := _named_by_pods(at, document)) and (found.resource, found.namespace, found.name) not in named:
                named.add((found.resource, found.namespace, found.name))
                yield found
        gone = {
            key
            for key, pod in before.items()
            # A pod never changes its node: a new one has its name, as in a StatefulSet.
            if key not in now or (pod.get("node") and pod["node"] != now[key].get("node"))
        }
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


def _named_by_pods(at: float, document: Mapping[str, Any]) -> ApiRequest | None:
    """The creation of what pods name and could not be placed without: Kubernetes' own groups, and claims of devices."""
    group = str(document["apiVersion"]).rpartition("/")[0]
    if group not in ("scheduling.k8s.io", "resource.k8s.io") or claims.is_made(document):
        return None
    found = request(document, at)
    return found if found and (found.group, found.resource) in kept.GROUPS else None


def _request(at: float, verb: str, key: tuple[str, str], body: dict[str, Any] | None = None) -> ApiRequest:
    namespace, name = key
    return ApiRequest(at, verb, "", "v1", "pods", "", namespace, name, answered=body, created=verb == "create")


def _time(match: re.Match[str]) -> float:
    year, month, day, hour, minute, second = map(int, match.groups())
    return datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp()
