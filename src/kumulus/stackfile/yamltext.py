"""YAML texts: read with the types that Helm and kind would see, or with every scalar as the string that was written.

PyYAML follows YAML 1.1 to the letter, where `12:30` is 750 and 2026-01-31 is a date; the Go programs that these texts
are meant for read neither of them that way. Duplicate keys, which PyYAML accepts, are rejected as in Go.
"""

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import yaml

from kumulus.kube import safe_yaml
from kumulus.kube.safe_yaml import FAST_LOADER, MOST_BYTES, TooMuch, YamlLimits, check_limits, too_large
from kumulus.model.errors import Problem, SpecError, shown


class _UniqueKeys:
    """The part of a loader that rejects duplicate keys."""

    def get_single_node(self) -> Any:
        return _checked(super().get_single_node())  # type: ignore[misc]

    def get_node(self) -> Any:
        return _checked(super().get_node())  # type: ignore[misc]


class _Counting(yaml.SafeLoader):
    """For texts that libyaml rejects, whose values have not been counted against the limits yet."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._limits = YamlLimits()

    def get_event(self) -> Any:
        event = super().get_event()  # type: ignore[no-untyped-call]
        self._limits.count(event)
        return event


_TAG = "tag:yaml.org,2002:"
_NULL = re.compile(r"~|null|Null|NULL|")
_BOOL = re.compile(r"true|True|TRUE|false|False|FALSE")
_SWITCH = re.compile(rf"{_BOOL.pattern}|yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF")
_INT = re.compile(r"[-+]?(0[bB]_*[01][01_]*|0[oO]_*[0-7][0-7_]*|0[xX]_*[0-9a-fA-F][0-9a-fA-F_]*|0[0-7_]*|[1-9][0-9_]*)")
_FLOAT = re.compile(
    r"[-+]?(\.[0-9][0-9_]*|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
)


def _int(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int:
    text = loader.construct_scalar(node).replace("_", "")
    digits = text.lstrip("+-")
    # Go reads 017 as octal, and so does YAML 1.1; Python's base 0 would refuse it.
    is_octal = digits.isdigit() and digits.startswith("0")
    return int(text, 8 if is_octal else 0)


def _float(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> float:
    # PyYAML's own constructor reads colons as sexagesimal and misreads 1e3.
    text = loader.construct_scalar(node).lower().replace("_", "")
    return float(text.replace(".inf", "inf").replace(".nan", "nan"))


_Kind = tuple[str, re.Pattern[str], Iterable[str]]
"""A kind of scalars, their pattern, and the characters that they begin with; "" for an empty scalar."""
_ALWAYS: tuple[_Kind, ...] = (("null", _NULL, ("", *"~nN")), ("merge", re.compile("<<"), "<"))
_NUMBERS: tuple[_Kind, ...] = (("int", _INT, "-+0123456789"), ("float", _FLOAT, "-+0123456789."))
_CONSTRUCTORS = {"int": _int, "float": _float}
_Loaders = tuple[Callable[[str], Any], Callable[[str], Any]]


def _loaders(*kinds: _Kind) -> _Loaders:
    """Two loaders, by libyaml and by PyYAML's own parser, that resolve null, merge keys and these kinds of scalars.

    Every other scalar is a text.
    """
    found = []
    for base in (FAST_LOADER, _Counting):
        loader: Any = type("_Loader", (_UniqueKeys, base), {"yaml_implicit_resolvers": {}})
        for kind, pattern, first in (*_ALWAYS, *kinds):
            whole = re.compile(f"(?:{pattern.pattern})\\Z")
            loader.add_implicit_resolver(_TAG + kind, whole, list(first))
            if kind in _CONSTRUCTORS:
                loader.add_constructor(_TAG + kind, _CONSTRUCTORS[kind])
        found.append(loader)
    return found[0], found[1]


_TEXTS = _loaders()
"""Every scalar as written, but for null, as when go-yaml fills fields that are declared as strings."""
_TYPED = _loaders(("bool", _SWITCH, "yYnNtTfFoO"), *_NUMBERS)
"""The types that go-yaml gives to scalars, without timestamps and sexagesimal numbers."""
_PULUMI = _loaders(("bool", _BOOL, "tTfF"), *_NUMBERS)
"""The types that Pulumi gives to scalars in a stack's file: `yes`, `no`, `on` and `off` are texts."""


def _checked(root: yaml.Node | None) -> yaml.Node | None:
    """The document, after checking that it has no duplicate keys."""
    # Not checked where values are constructed: there, merge keys have already added keys that may legally occur twice.
    # Reversed, as the last is taken first: mappings are checked in the order of the text.
    waiting, seen = [root] if root is not None else [], set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, yaml.ScalarNode) or id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            _check_keys(node)
            waiting += [part for pair in reversed(node.value) for part in reversed(pair)]
        else:
            waiting += reversed(node.value)
    return root


def _check_keys(mapping: yaml.MappingNode) -> None:
    seen: set[tuple[str, str]] = set()
    for key, _ in mapping.value:
        if not isinstance(key, yaml.ScalarNode):
            continue
        if (key.tag, key.value) in seen:
            twice = f"the key {shown(key.value)} is there twice"
            raise yaml.constructor.ConstructorError(None, None, twice, key.start_mark)
        seen.add((key.tag, key.value))


def read_yaml(text: str, source: str = "") -> object:
    """A YAML text of one document with typed scalars, as Helm reads values and kind reads its configuration."""
    return _read(text, source, _TYPED)


def read_stack_file(file: Path, source: str = "") -> object:
    """A stack's file, with scalars of the types that Pulumi gives them; no more than the size limit is read of it.

    Raises:
        OSError: it cannot be read.
        UnicodeDecodeError: it is not UTF-8.
    """
    with file.open("rb") as opened:
        body = opened.read(MOST_BYTES + 1)
    if len(body) > MOST_BYTES:
        reason = too_large()
        raise SpecError([Problem("", reason.message, reason.remedy)], source)
    return _read(body.decode("utf-8"), source, _PULUMI)


def read_yaml_texts(text: str, source: str = "") -> object:
    """A YAML text of one document with every scalar but null as written, so that `version: 1.10` stays 1.10."""
    return _read(text, source, _TEXTS)


def read_all_yaml(text: str, source: str = "") -> list[object]:
    """Every document of a YAML text, with typed scalars; an empty document is None."""
    documents: list[object] = _read(text, source, _TYPED, many=True)
    return documents


def written(document: object) -> str:
    """A document of dicts, lists and scalars as YAML; texts that some reader would take for another type are quoted."""
    return safe_yaml.written(document)


def json_problem(value: object) -> str | None:
    """Why a value cannot be written as JSON, in words; None when it can. Pulumi and Helm accept only JSON values."""
    try:
        json.dumps(value, allow_nan=False)
    except RecursionError:
        return "is nested too deeply"
    except ValueError as reason:
        if "Circular reference" in str(reason):
            return "refers to itself"
        return "has a number that does not exist in JSON (.inf or .nan)"
    except TypeError:
        return "has a value or a key that does not exist in JSON"
    return None


def _read(text: str, source: str, loaders: _Loaders, many: bool = False) -> Any:
    fast, slow = loaders
    try:
        # PyYAML's own parser may accept what libyaml rejects, and it has better error messages.
        libyaml_accepts = check_limits(text, only_fast=True)
        reading = fast(text) if libyaml_accepts else slow(text)
        try:
            if not many:
                return reading.get_single_data()
            documents = []
            while reading.check_data():
                documents.append(reading.get_data())
            return documents
        finally:
            reading.dispose()
    except TooMuch as reason:
        raise SpecError([Problem("", reason.message, reason.remedy)], source) from None
    except yaml.MarkedYAMLError as reason:
        raise SpecError([Problem("", *_marked(reason))], source) from None
    except yaml.YAMLError as reason:
        raise SpecError([Problem("", f"is not a YAML text: {' '.join(str(reason).split())}")], source) from None
    except RecursionError:
        raise SpecError([Problem("", "is nested too deeply", "write fewer levels")], source) from None
    except (ValueError, TypeError, AttributeError, OverflowError) as reason:
        # Explicit tags such as !!int on a word make PyYAML's constructors raise other exceptions.
        raise SpecError([Problem("", f"is not a YAML text: {reason}")], source) from None


def _marked(reason: yaml.MarkedYAMLError) -> tuple[str, str]:
    mark = reason.problem_mark or reason.context_mark
    place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    what = " ".join(part for part in (reason.problem, reason.context) if part)
    if "but found another document" in what:
        what = "a second document begins"
    if "cannot start any token" in what and "\\t" in what:
        return f"{place}there is a tab", "indent with spaces"
    return f"{place}{what}", "correct it there or on the line above"
