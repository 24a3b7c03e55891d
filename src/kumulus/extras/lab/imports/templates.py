"""Go's templates, as benchmarks use them: values, variables, conditions, ranges and whole numbers.

Source: Go's text/template, and the functions of k8s.io/kubernetes test/integration/scheduler_perf, 1.37.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kumulus.extras.lab.errors import LabError

INDEX = "KUMULUS_INDEX"
_ACTION = re.compile(r"(?:\s*\{\{-\s|\{\{)(.*?)(?:\s-\}\}\s*|\}\})", re.DOTALL)
_WORD = re.compile(r'\s*(\(|\)|\||:=|"(?:[^"\\]|\\.)*"|[\w.$-]+)')
_NAMED = {"nil": None, "true": True, "false": False}


class Index(int):
    """An object's number: written as a text that each job replaces, but computed with."""

    def __str__(self) -> str:
        """The text."""
        return INDEX


def _either(*values: Any) -> Any:
    return next((value for value in values if value), values[-1])


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "or": _either,
    "not": lambda value: not value,
    "eq": lambda one, *others: one in others,
    "ne": lambda one, other: one != other,
    "ge": lambda one, other: one >= other,
    "gt": lambda one, other: one > other,
    "le": lambda one, other: one <= other,
    "lt": lambda one, other: one < other,
    "Int": int,
    "AddInt": lambda *values: sum(map(int, values)),
    "SubtractInt": lambda one, other: int(one) - int(other),
    "MultiplyInt": lambda one, other: int(one) * int(other),
    "DivideInt": lambda one, other: int(int(one) / int(other)),
    "Mod": lambda one, other: int(one) % int(other),
    "JSON": lambda value: json.dumps(value, ensure_ascii=False),
}


def filled(text: str, values: Mapping[str, Any], source: Path) -> str:
    """A template's text with its values filled in.

    Args:
        values: by name; those of type :class:`Index` stay open.

    Raises:
        LabError: it uses something else of Go's templates, or a value that nobody gives.
    """
    template, written = _Template(text, source), list[str]()
    if template.run(0, {".": values, "$": values}, written) < len(template.parts):
        raise LabError(f"{source.name}: an end of Go's templates without its beginning")
    return "".join(written)


@dataclass(frozen=True)
class _Part:
    """What is between braces, and the text before it."""

    text: str
    action: str
    line: int


class _Template:
    def __init__(self, text: str, source: Path) -> None:
        self._source = source
        self.parts, at = list[_Part](), 0
        for found in _ACTION.finditer(text):
            self.parts.append(
                _Part(text[at : found.start()], found[1].strip(), text.count("\n", 0, found.start(1)) + 1)
            )
            at = found.end()
        self._rest = text[at:]

    def run(self, at: int, scope: dict[str, Any], written: list[str] | None) -> int:
        """Write the parts from one on until the end of its block; returns which part that end is.

        Args:
            scope: the variables, and `.`; changed in place.
            written: where to; none skips the block.
        """
        while at < len(self.parts):
            part = self.parts[at]
            if written is not None:
                written.append(part.text)
            words = _WORD.findall(part.action)
            first = words[0] if words else ""
            if first in ("end", "else"):
                return at
            if first in ("if", "range"):
                at = self._block(at, words, scope, written)
            elif written is not None and not part.action.startswith("/*"):
                self._write(part, words, scope, written)
            at += 1
        if written is not None:
            written.append(self._rest)
        return at

    def _write(self, part: _Part, words: list[str], scope: dict[str, Any], written: list[str]) -> None:
        if words[1:2] == [":="]:
            scope[words[0]] = self._value(part, words[2:], scope)
            return
        value = self._value(part, words, scope)
        if value is None:
            raise self._unread(part)
        written.append(str(value).lower() if isinstance(value, bool) else str(value))

    def _block(self, at: int, words: list[str], scope: dict[str, Any], written: list[str] | None) -> int:
        part, variable = self.parts[at], "."
        if words[2:3] == [":="]:
            variable, words = words[1], ["", *words[3:]]
        value = None if written is None else self._value(part, words[1:], scope)
        rounds: Iterable[Any] = [scope["."]] if value else []
        if part.action.startswith("range"):
            rounds = range(value) if isinstance(value, int) else value or []
        end, some = 0, False
        for each in rounds:
            some, end = True, self.run(at + 1, {**scope, ".": each, variable: each}, written)
        end = end or self.run(at + 1, dict(scope), None)
        if end < len(self.parts) and self.parts[end].action == "else":
            end = self.run(end + 1, dict(scope), None if some else written)
        if end >= len(self.parts) or self.parts[end].action != "end":
            raise self._unread(part)
        return end

    def _value(self, part: _Part, words: list[str], scope: Mapping[str, Any]) -> Any:
        left = list(words)
        try:
            value = _pipeline(left, scope)
        except (LookupError, TypeError, ValueError, ZeroDivisionError):
            raise self._unread(part) from None
        if left:
            raise self._unread(part)
        return value

    def _unread(self, part: _Part) -> LabError:
        return LabError(f"{self._source.name}, line {part.line}: {{{{{part.action}}}}} of Go's templates is not read")


def _pipeline(words: list[str], scope: Mapping[str, Any]) -> Any:
    value = _command(words, scope)
    while words[:1] == ["|"]:
        words.pop(0)
        value = _command(words, scope, value)
    return value


def _command(words: list[str], scope: Mapping[str, Any], *piped: Any) -> Any:
    if words[0] not in _FUNCTIONS:
        return _operand(words, scope)
    name, operands = words.pop(0), list[Any]()
    while words and words[0] not in ("|", ")"):
        operands.append(_operand(words, scope))
    return _FUNCTIONS[name](*operands, *piped)


def _operand(words: list[str], scope: Mapping[str, Any]) -> Any:
    word = words.pop(0)
    if word == "(":
        value = _pipeline(words, scope)
        if words.pop(0) != ")":
            raise ValueError(word)
        return value
    if word.startswith('"'):
        return json.loads(word)
    if word in _NAMED:
        return _NAMED[word]
    if word in scope:
        return scope[word]
    if word.startswith("."):
        return scope["."].get(word[1:])
    return int(word)
