"""The components' part of the package's schema, from the arguments of the Python classes."""

from __future__ import annotations

import importlib
import inspect
import re
import types
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Literal, Union, get_args, get_origin

from kumulus.components.arguments import Argument
from kumulus.components.described_cluster import CLASSES
from kumulus.provider.plugin.components import Kind, is_cluster, is_groups, kinds
from kumulus.provider.plugin.sections import SectionTypes, plainly
from kumulus.provider.properties import ANY, BOOLEAN, INTEGER, NUMBER, STRING, Type, listing, mapping

_PLAIN: dict[Any, Type] = {str: STRING, int: INTEGER, float: NUMBER, bool: BOOLEAN, Any: ANY}
_CLUSTERS = (*(each.__name__ for each in CLASSES), "EmulatedCluster")
_ROLE = re.compile(r":\w+:`([^`]+)`")
_CODE = re.compile(r"``([^`]+)``")


def components_schema() -> tuple[dict[str, Any], dict[str, Any]]:
    """The components, and the object types of their arguments, each by token."""
    sections = SectionTypes()
    return {kind.token: _component(kind, sections) for kind in kinds()}, sections.found


def _component(kind: Kind, sections: SectionTypes) -> dict[str, Any]:
    arguments, outputs = kind.arguments, kind.outputs
    names = {each.name: each.key for each in arguments}
    summary = inspect.cleandoc(kind.component.__doc__ or "").split("\n\n")[0]
    return {
        "isComponent": True,
        "description": _text(summary, names),
        "inputProperties": {each.key: _property(each, names, sections) for each in arguments},
        "requiredInputs": [each.key for each in arguments if each.required],
        "properties": {
            each.key: {
                **_type(each.type).schema(),
                "description": _text(each.doc, names),
                **({"secret": True} if "a secret" in each.doc else {}),
            }
            for each in outputs
        },
        "required": [each.key for each in outputs],
    }


def _property(argument: Argument, names: Mapping[str, str], sections: SectionTypes) -> dict[str, Any]:
    # A plain argument has to be known, because resources depend on it.
    found = plainly(_kind(argument, sections)) if argument.plain else _kind(argument, sections)
    choice = _choice(argument.type)
    return {
        **found,
        "description": _text(argument.doc, names) + (f" One of {choice}." if choice else ""),
    }


def _kind(argument: Argument, sections: SectionTypes) -> dict[str, Any]:
    if is_cluster(argument):
        return {"oneOf": [{"$ref": f"#/resources/kumulus:index:{name}"} for name in _CLUSTERS]}
    if is_groups(argument):
        return {"type": "array", "items": {"$ref": "#/resources/kumulus:index:KwokNodeGroup"}}
    if argument.section is not None:
        module, _, name = argument.section.partition(":")
        found = sections.of(getattr(importlib.import_module(module), name), argument.plain)
        return {"type": "array", "items": found} if get_origin(argument.type) is Sequence else found
    return _type(argument.type).schema()


def _type(kind: Any) -> Type:
    if kind in _PLAIN:
        return _PLAIN[kind]
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal:
        return STRING
    if origin in (Mapping, dict):
        return mapping(_type(arguments[1]))
    if origin in (Sequence, list):
        return listing(_type(arguments[0]))
    if origin in (Union, types.UnionType):
        # For an Input[T] (a T, an awaitable T or an output of T), the T; for several kinds of values, Any.
        within = [each for each in arguments if get_origin(each) is Awaitable]
        return _type(get_args(within[0])[0]) if within else ANY
    raise TypeError(f"no type of a schema is known for {kind}")


def _choice(kind: Any) -> str:
    return ", ".join(f"`{each}`" for each in get_args(kind)) if get_origin(kind) is Literal else ""


def _text(doc: str, names: Mapping[str, str]) -> str:
    """A docstring as Markdown, with the arguments' names in the schema."""
    found = _ROLE.sub(lambda match: f"`{match[1].rpartition('.')[2]}`", " ".join(doc.split()))
    return _CODE.sub(lambda match: f"`{names.get(match[1], match[1])}`", found)
