"""Protobuf's message classes, made from tables of just the fields that are needed."""

import re
from collections.abc import Mapping
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

Tables = Mapping[str, Mapping[str, tuple[int, str]]]
"""By message, its fields: number and type; ``*`` repeats, ``{}`` is a map from strings."""

_PACKAGE = "kumulus.kubernetes"
# A field called `continue` could not be read as an attribute, so Python's names differ there from Kubernetes'.
_RENAMED = {"continue": "token"}

_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "string": _Field.TYPE_STRING,
    "bytes": _Field.TYPE_BYTES,
    "int32": _Field.TYPE_INT32,
    "int64": _Field.TYPE_INT64,
    "bool": _Field.TYPE_BOOL,
    "double": _Field.TYPE_DOUBLE,
}


def tables_of(text: str) -> dict[str, Mapping[str, tuple[int, str]]]:
    """The tables of a text: `Node: metadata 1 ObjectMeta, spec 2 NodeSpec`, a message after the other."""
    found: dict[str, Mapping[str, tuple[int, str]]] = {}
    for message, fields in re.findall(r"(\w+):([^:]*)(?=\s\w+:|\s*$)", text):
        parts = [each.split() for each in fields.split(",") if each.strip()]
        found[message] = {name: (int(number), kind) for name, number, kind in parts}
    return found


def classes_of(tables: Tables) -> Mapping[str, Any]:
    """Classes for messages, by their names, in a pool of their own."""
    file = descriptor_pb2.FileDescriptorProto(name=f"{_PACKAGE}.proto", package=_PACKAGE, syntax="proto2")
    for name, fields in tables.items():
        message = file.message_type.add(name=name)
        for field, (number, kind) in fields.items():
            _add_field(message, _RENAMED.get(field, field), number, kind)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)  # type: ignore[no-untyped-call]  # its stubs leave it out
    found = message_factory.GetMessageClassesForFiles([file.name], pool)
    return {name.removeprefix(f"{_PACKAGE}."): made for name, made in found.items()}


def _add_field(message: descriptor_pb2.DescriptorProto, name: str, number: int, kind: str) -> None:
    field = message.field.add(name=name, number=number, label=_Field.LABEL_OPTIONAL)
    if kind.startswith("{}"):
        # A map is a list of entries, each a message of its own: protobuf.dev/programming-guides/proto3/#backwards
        entry = message.nested_type.add(name=f"{name[0].upper()}{name[1:]}Entry")
        entry.options.map_entry = True
        _add_field(entry, "key", 1, "string")
        _add_field(entry, "value", 2, kind[2:])
        field.label = _Field.LABEL_REPEATED
        field.type = _Field.TYPE_MESSAGE
        field.type_name = f".{_PACKAGE}.{message.name}.{entry.name}"
        return
    if kind.startswith("*"):
        field.label = _Field.LABEL_REPEATED
        kind = kind[1:]
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
    else:
        field.type = _Field.TYPE_MESSAGE
        field.type_name = f".{_PACKAGE}.{kind}"
