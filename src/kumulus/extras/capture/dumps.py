"""Reads untrusted files: YAML as `kubectl get -o yaml` and `kwokctl snapshot export` write it, JSON, and JSON by lines.

A file is not trusted: nothing in it is executed, no alias is followed, what is nested too deeply or too large is
refused, and its paths are ignored. YAML is parsed as a stream of events, so a list of 40,000 pods is never in memory.
JSON is decoded whole, which takes up to 26 times its size.
"""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from kumulus.kube.safe_yaml import FAST_LOADER

MOST_BYTES = 2 * 1024**3
MOST_JSON_BYTES = 64 * 1024**2
"""Of a .json file, and of a line of a .jsonl file."""
MOST_LEVELS = 64
MOST_VALUES = 200_000
"""Of one object."""
_GZIP = b"\x1f\x8b"
_SUFFIXES = (".yaml", ".yml", ".json")


class FileRefused(Exception):
    """A file is refused; says why."""


def files(paths: list[Path]) -> list[Path]:
    """The files of paths; a directory, such as must-gather's, stands for its files. Symlinks are not followed."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(each for each in path.rglob("*") if each.suffix in _SUFFIXES)
            found += [each for each in inside if each.is_file() and not each.is_symlink()]
        elif path.exists():
            found.append(path)
        else:
            raise FileRefused(f"{path} does not exist")
    if not found:
        raise FileRefused(f"no {', '.join(_SUFFIXES)} file in {', '.join(map(str, paths))}")
    return found


def objects(file: Path) -> Iterator[dict[str, Any]]:
    """The objects in a file, those of lists one by one."""
    size = file.stat().st_size
    if size > MOST_BYTES:
        raise FileRefused(f"{file} has {size:,} bytes; at most {MOST_BYTES:,} are read")
    with file.open("rb") as opened:
        if opened.read(len(_GZIP)) == _GZIP:
            raise FileRefused(f"{file} is compressed\n  To unpack it: gunzip {file}")
    if file.suffix == ".json" and size > MOST_JSON_BYTES:
        lines = file.with_suffix(".jsonl")
        raise FileRefused(
            f"{file} has {size:,} bytes; at most {MOST_JSON_BYTES:,} of JSON are read at once\n"
            f"  Name {lines.name} instead, after: jq -c '.items[]' {shlex.quote(str(file))} > {shlex.quote(str(lines))}"
        )
    try:
        if file.suffix == ".json":
            with file.open("rb") as opened:
                # The C decoder limits the depth itself.
                yield from _flat(json.load(opened))
        elif file.suffix == ".jsonl":
            yield from _of_lines(file)
        else:
            with file.open("rb") as opened:
                for document in documents(opened, file.name):
                    yield from _flat(document)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise FileRefused(f"{file} cannot be read: {str(error).splitlines()[0][:200]}") from None


def documents(stream: Any, name: str) -> Iterator[Any]:
    """The documents of a YAML stream; each item of a list of objects is a separate document."""
    builder = _Builder(name)
    for event in yaml.parse(stream, Loader=FAST_LOADER):
        yield from builder.take(event)


def _of_lines(file: Path) -> Iterator[dict[str, Any]]:
    with file.open("rb") as opened:
        for number, line in enumerate(iter(lambda: opened.readline(MOST_JSON_BYTES + 1), b""), start=1):
            if len(line) > MOST_JSON_BYTES:
                raise FileRefused(
                    f"{file}: line {number} has more than {MOST_JSON_BYTES:,} bytes; write an object a line"
                )
            document = json.loads(line)
            # jq takes the items of a typed list, such as a PodList, without their kind.
            if not isinstance(document, dict) or not document.get("kind"):
                raise FileRefused(
                    f"{file}: line {number} has no kind, as each item of a list of pods\n"
                    """  To write it: jq -c '.items[] | .kind = "Pod"'"""
                )
            yield from _flat(document)


def _flat(document: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(document, dict):
        return
    if isinstance(items := document.get("items"), list):
        # The items of a typed list, such as a PodList, do not name their kind.
        kind = str(document.get("kind") or "").removesuffix("List")
        for item in items:
            if isinstance(item, dict):
                yield item if item.get("kind") or not kind else {**item, "kind": kind}
    else:
        yield document


class _Builder:
    """Builds plain values from events; yields the items of a top-level `items` as soon as they are complete."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._stack: list[Any] = []
        self._keys: list[Any] = []
        self._values = 0

    def take(self, event: Any) -> Iterator[Any]:
        """The values that one more event completes."""
        if isinstance(event, yaml.AliasEvent):
            raise FileRefused(f"{self._name}: line {_line(event)} has an alias, which no such file needs")
        if isinstance(event, yaml.ScalarEvent):
            yield from self._put(_scalar(event))
        elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            if len(self._stack) >= MOST_LEVELS:
                raise FileRefused(f"{self._name}: line {_line(event)} is nested too deeply")
            self._stack.append({} if isinstance(event, yaml.MappingStartEvent) else [])
            self._keys.append(_NO_KEY)
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            done = self._stack.pop()
            self._keys.pop()
            yield from self._put(done)

    def _put(self, value: Any) -> Iterator[Any]:
        self._values += 1
        if self._values > MOST_VALUES:
            raise FileRefused(f"{self._name}: an object of more than {MOST_VALUES:,} values")
        if not self._stack:
            self._values = 0
            yield value
        elif isinstance(self._stack[-1], list):
            if len(self._stack) == 2 and self._keys[0] == "items":
                self._values = 0
                yield value
            else:
                self._stack[-1].append(value)
        elif self._keys[-1] is _NO_KEY:
            self._keys[-1] = value if isinstance(value, str | int | float | bool) else str(value)
        else:
            self._stack[-1][self._keys[-1]] = value
            self._keys[-1] = _NO_KEY


_NO_KEY = object()
_RESOLVER: Any = yaml.SafeLoader("")
_CONSTANTS = {"true": True, "false": False, "null": None, "~": None, "": None}


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


def _scalar(event: Any) -> Any:
    """A scalar as Kubernetes reads it: a quoted one is a string, a plain one may be a number or a boolean."""
    if not event.implicit[0] or event.style:
        return event.value
    lowered = event.value.lower()
    if lowered in _CONSTANTS:
        return _CONSTANTS[lowered]
    tag: str = _RESOLVER.resolve(yaml.ScalarNode, event.value, (True, False))
    if tag == "tag:yaml.org,2002:int" and event.value.lstrip("-+").isdecimal() and len(event.value) < 19:
        return int(event.value)
    return event.value
