"""Check a component's arguments against a section of the stack file: plain values at once, outputs when known."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Generic, TypeVar

import pulumi
from pydantic import BaseModel

from kumulus.components.engine import user_error
from kumulus.model.errors import Problem, SpecError, Where, under
from kumulus.model.fields.validation import validated

Model = TypeVar("Model", bound=BaseModel)


class CheckedInputs(Generic[Model]):
    """Values for the fields of a section.

    Args:
        model: the section; what it requires has to be plain.
        source: the component and the resource's name, for errors.
        values: by the section's fields; None counts as absent.
        names: as :func:`problems_explained` takes them.

    Attributes:
        plain: the section, as far as its values are known when the program runs.

    Raises:
        pulumi.RunError: a plain value is wrong; the message has each one's path and what to write instead.
    """

    def __init__(self, model: type[Model], source: str, values: Mapping[str, Any], names: Mapping[str, str]) -> None:
        self._model, self._source, self._names = model, source, names
        self._later = {field: places for field, value in values.items() if (places := later(value))}
        self._plain = {field: plain for field, value in values.items() if (plain := known_part(value)) is not None}
        self.plain = self._validated(self._plain)

    def __getitem__(self, field: str) -> Any:
        """A field's checked value, as the program has it: plain, an output, or a mapping with outputs in it."""
        value = _as_plain(getattr(self.plain, field))
        for place, output in self._later.get(field, {}).items():
            value = _with(value, place, pulumi.Output.from_input(output).apply(self._converter(field, place)))
        return value

    def is_later(self, field: str) -> bool:
        """Whether a field, or something in it, is an output."""
        return field in self._later

    def _converter(self, field: str, place: Where) -> Callable[[Any], Any]:
        def convert(known: Any) -> Any:
            values = {**self._plain, field: _with(self._plain.get(field), place, known)}
            value = _as_plain(getattr(self._validated(values), field))
            for part in place:
                value = value[part]
            return value

        return convert

    def _validated(self, values: Mapping[str, Any]) -> Model:
        with problems_explained(self._source, self._names):
            return validated(self._model, values, "")


@contextmanager
def problems_explained(source: str, names: Mapping[str, str]) -> Iterator[None]:
    """Report mistakes, as pulumi.RunError, by the names of the component's arguments instead of paths in a stack file.

    Args:
        source: the component and the resource's name.
        names: the arguments' names, by the beginnings of paths that they replace.
    """
    try:
        yield
    except SpecError as error:
        # A remedy names a field as `nodeTemplate.capacity`, without "nodeGroups[0].", or only as `capacity`.
        in_entry = {path.rpartition("].")[2]: name for path, name in names.items()}
        alone = {path.rpartition(".")[2]: name for path, name in in_entry.items() if not path.endswith(".")}
        # If a field of the entry and one further down have the same name, that of the entry is meant.
        words = alone | in_entry
        problems = [
            replace(each, path=renamed(each.path, names), remedy=reworded(each.remedy, words))
            for each in error.problems
        ]
        raise user_error(SpecError(problems, source)) from None


def renamed(path: str, names: Mapping[str, str]) -> str:
    """A path with its longest known prefix replaced by an argument's name; the empty prefix is that of any path.

    A prefix with the empty name is dropped, such as one that ends with a dot.
    """
    for prefix in sorted(names, key=len, reverse=True):
        if not path.startswith(prefix):
            continue
        name, rest = names[prefix], path[len(prefix) :]
        if not prefix:
            return under(name, path)
        if prefix.endswith(".") or rest[:1] in ("", ".", "["):
            return name + rest if name else rest.removeprefix(".")
    return path


def reworded(remedy: str, words: Mapping[str, str]) -> str:
    """A remedy with names of fields replaced by those of arguments.

    A name in lower case, such as `version`, stays: it may be a word of the sentence. A name that ends with a dot is the
    beginning of a path.
    """
    for old in sorted(words, key=len, reverse=True):
        may_be_a_word = old == old.lower() and "_" not in old
        if not may_be_a_word:
            end = "" if old.endswith(".") else r"\b"
            remedy = re.sub(rf"(?<![\w.]){re.escape(old)}{end}", words[old], remedy)
    return remedy


def within(problems: Iterable[Problem], place: str) -> list[Problem]:
    """Problems with their paths relative to a place, such as ``faults[0]``."""
    return [replace(each, path=each.path.removeprefix(place).removeprefix(".")) for each in problems]


def refused(source: str, place: str, message: str, remedy: str) -> pulumi.RunError:
    """An error for one mistake."""
    return user_error(SpecError([Problem(place, message, remedy)], source))


def later(value: Any) -> dict[Where, Any]:
    """The parts of a value that are known later, by path: outputs, and whole lists with an output in them."""
    if isinstance(value, pulumi.Output | Awaitable):
        return {(): value}
    if isinstance(value, Mapping):
        return {(key, *place): inner for key, each in value.items() for place, inner in later(each).items()}
    if isinstance(value, Sequence) and not isinstance(value, str) and any(map(later, value)):
        return {(): value}
    return {}


def known_part(value: Any) -> Any:
    """A value without the parts that are known later; None if all of it is."""
    places = later(value)
    return None if () in places else without(value, places)


def without(value: Any, places: Collection[Where]) -> Any:
    """A value without the parts at some paths, of which none is empty.

    What is no mapping stays whole, even if a path leads into it.
    """
    if not isinstance(value, Mapping) or not places:
        return value
    return {key: without(each, _below(key, places)) for key, each in value.items() if (key,) not in places}


def _as_plain(value: Any) -> Any:
    return value.model_dump(exclude_unset=True) if isinstance(value, BaseModel) else value


def _with(value: Any, place: Where, inner: Any) -> Any:
    """A copy of a mapping, or a new one, with another value at a path."""
    if not place:
        return inner
    mapping = value or {}
    return {**mapping, place[0]: _with(mapping.get(place[0]), place[1:], inner)}


def with_secrets(value: Any, places: Iterable[Where]) -> Any:
    """A value with the parts at some paths marked as secrets; an empty path is all of it.

    What a path cannot be followed into, such as an output, is marked whole.
    """
    places = tuple(places)
    if not places or value is None or value == {}:
        return value
    if () in places:
        return pulumi.Output.secret(value)
    if isinstance(value, dict):
        return {key: with_secrets(inner, _below(key, places)) for key, inner in value.items()}
    if isinstance(value, list):
        return [with_secrets(inner, _below(index, places)) for index, inner in enumerate(value)]
    return pulumi.Output.secret(value)


def _below(part: str | int, places: Iterable[Where]) -> tuple[Where, ...]:
    """The paths that begin with a part, without it."""
    return tuple(place[1:] for place in places if place[0] == part)
