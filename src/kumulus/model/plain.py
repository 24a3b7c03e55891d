"""Values as JSON has them, dataclasses among them, and what a preview cannot know. The plugin imports this file."""

import dataclasses
import functools
import types
import typing
from collections.abc import Callable, Container, Mapping
from typing import Any, Final, TypeVar

T = TypeVar("T")


def camel(name: str) -> str:
    """The key of a field, or of an argument: `exitCode` for `exit_code`."""
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def plain(value: Any, optional: Container[str] = ()) -> Any:
    """The plain form of a dataclass, or of what a field of one has, without `optional` fields that are empty."""
    if dataclasses.is_dataclass(value):
        found = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {camel(name): plain(each) for name, each in found.items() if each or name not in optional}
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, tuple) else value


def made_from(kind: type[T], raw: Mapping[str, Any]) -> T:
    """A dataclass from its checked plain form; numbers may be floats, and None stands for a field's default."""
    present = {name: (hint, raw.get(camel(name))) for name, hint in _hints(kind).items()}
    return kind(**{name: _read(hint, each) for name, (hint, each) in present.items() if each is not None})


# Evaluated once: the annotations are texts.
_hints: Callable[[Any], dict[str, Any]] = functools.cache(typing.get_type_hints)


def _read(hint: Any, value: Any) -> Any:
    """A field's value from its plain form; `hint` is its type."""
    inner = typing.get_args(hint)
    # Every union is of a type and None.
    if isinstance(hint, types.UnionType):
        return _read(inner[0], value)
    origin = typing.get_origin(hint)
    if origin is tuple:
        return tuple(_read(inner[0], each) for each in value)
    if origin is Mapping:
        return {key: _read(inner[1], each) for key, each in value.items()}
    return made_from(hint, value) if isinstance(value, Mapping) else hint(value)


class Unknown:
    """A value that a preview cannot know yet; its only instance is :data:`UNKNOWN`."""

    def __repr__(self) -> str:
        return "UNKNOWN"

    def __bool__(self) -> bool:
        return False


UNKNOWN: Final = Unknown()
