"""The object types of the package's schema, generated from the model's dataclasses: their fields and docstrings."""

import dataclasses
import inspect
import re
import sys
import types
import typing
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any

from kumulus.model.contents import FAULTS, NODES, POOLS, PREVIEW
from kumulus.model.devices import Devices
from kumulus.model.fault_effects import Condition, Interruption, NodeEffects, OfferEffects, PodEffects
from kumulus.model.named_nodes import NamedNode
from kumulus.model.plain import camel
from kumulus.model.pools import NodeInfo, Pool, Taint
from kumulus.model.topology import LEVELS, Level, Topology
from kumulus.provider.properties import (
    ANY,
    BOOLEAN,
    INTEGER,
    NUMBER,
    STRING,
    Property,
    Schema,
    listing,
    mapping,
    object_type,
)

_PLAIN: dict[Any, Schema] = {str: STRING, int: INTEGER, float: NUMBER, bool: BOOLEAN, object: ANY, Any: ANY}
_ARGUMENT = re.compile(r"^(\w+(?:, \w+)*): (.*(?:\n    .*)*)", re.MULTILINE)


def of_dataclass(
    made_from: type,
    name: str = "",
    omit: tuple[str, ...] = (),
    optional: tuple[str, ...] = (),
    known: Mapping[str, Schema] | None = None,
) -> Schema:
    """The object type of a dataclass: camelCase names, required without a default, described by the docstring.

    Args:
        made_from: the dataclass; its docstring has a section Args.
        name: name of the object type; the class's name when empty.
        omit: fields that its plain form does not have.
        optional: fields without a default that its plain form can do without.
        known: types of fields, where they do not follow from the annotations.
    """
    summary, descriptions = documented(made_from.__doc__ or "")
    hints = typing.get_type_hints(made_from)
    properties = (
        Property(
            camel(field.name),
            (known or {}).get(field.name) or type_of(hints[field.name]),
            descriptions[field.name],
            required=_needed(field) and field.name not in optional,
        )
        for field in dataclasses.fields(made_from)
        if field.name not in omit
    )
    return object_type(name or made_from.__name__, summary, properties)


def of_plain_form(made_from: type) -> tuple[Property, ...]:
    """The properties of a dataclass whose fields have the keys of its plain form, as :class:`Pool` has."""
    _, descriptions = documented(made_from.__doc__ or "")
    return tuple(
        Property(
            key.name,
            type_of(key.type or _annotation(made_from, field)),
            key.doc or descriptions[field.name],
            required=_needed(field),
        )
        for field in dataclasses.fields(made_from)
        for key in field.metadata.get("keys", ())
    )


def _annotation(made_from: type, field: dataclasses.Field[Any]) -> Any:
    """A field's type; that of its value, if it may also be None."""
    hint = eval(str(field.type), vars(sys.modules[made_from.__module__]))  # noqa: S307 - our own text
    parts = [each for each in typing.get_args(hint) if each is not types.NoneType]
    return parts[0] if isinstance(hint, types.UnionType) and len(parts) == 1 else hint


def _needed(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def documented(docstring: str) -> tuple[str, dict[str, str]]:
    """The description of a class, and of each field from the section Args of its docstring, each in one line."""
    summary, _, rest = inspect.cleandoc(docstring).partition("Args:")
    found = _ARGUMENT.findall(inspect.cleandoc(rest))
    return _line(summary), {name: _sentence(text) for names, text in found for name in names.split(", ")}


def _sentence(text: str) -> str:
    line = _line(text).replace("`", "")
    return line[:1].upper() + line[1:] + ("" if line.endswith(".") else ".")


def _line(text: str) -> str:
    return " ".join(text.split())


def type_of(hint: Any) -> Schema:
    """The type of what an annotation describes."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    if dataclasses.is_dataclass(hint):
        return BY_CLASS[hint]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return STRING
    if origin in (tuple, list, Sequence):
        return listing(type_of(arguments[0]))
    if origin in (dict, Mapping):
        return mapping(type_of(arguments[1]))
    if origin in (types.UnionType, typing.Union):
        # For an Input[T] (a T, an awaitable T or an output of T), the T; for several kinds of values, Any.
        within = [each for each in arguments if typing.get_origin(each) is Awaitable]
        return type_of(typing.get_args(within[0])[0]) if within else ANY
    raise TypeError(f"no type of a schema is known for {hint}")


BY_CLASS: dict[Any, Schema] = {
    Taint: of_dataclass(Taint, optional=("value",)),
    NodeInfo: of_dataclass(NodeInfo),
    Condition: of_dataclass(Condition),
}
LEVEL = of_dataclass(Level, "TopologyLevel", omit=("name",))
TOPOLOGY = object_type(
    "Topology",
    "Where in the network a pool's nodes stand: for each level, how many nodes one of it has.",
    (Property(level, LEVEL, f"The level {level}.") for level in LEVELS),
)
ATTRIBUTE = object_type(
    "DeviceAttribute",
    "A device attribute as the Kubernetes API writes it: exactly one of its properties.",
    (
        Property("string", STRING, "A text."),
        Property("int", INTEGER, "A whole number."),
        Property("bool", BOOLEAN, "A switch."),
        Property("version", STRING, "A semantic version."),
    ),
)
DEVICES = of_dataclass(Devices, known={"attributes": mapping(ATTRIBUTE)})
BY_CLASS |= {NamedNode: of_dataclass(NamedNode), Topology: TOPOLOGY, Devices: DEVICES}
POOL = of_plain_form(Pool)
NODE_EFFECTS, POD_EFFECTS = of_dataclass(NodeEffects), of_dataclass(PodEffects)
INTERRUPTION = of_dataclass(Interruption)
OFFER_EFFECTS = of_dataclass(OfferEffects, known={"interruption": INTERRUPTION})
CONTENTS = object_type(
    "Contents",
    "What a stack has in its cluster, by names; components fill it in.",
    (
        Property(FAULTS, STRING, "Names of its faults, with commas between."),
        Property(POOLS, STRING, "Names of its node pools, likewise."),
        Property(NODES, INTEGER, "How many nodes these have, which a new cluster is made for."),
        Property(PREVIEW, BOOLEAN, "Whether nothing is to happen yet."),
    ),
)
