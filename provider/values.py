"""Translate between Pulumi's wire values (protobuf structs) and plain Python values.

Sources: sdk/go/common/resource/plugin/rpc.go of pulumi (unknown sentinels, signature of secrets).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from google.protobuf import struct_pb2

_SIGNATURE = "4dabf18193072939515e22adb298388d"
_SECRET = "1b47061264138c4ac30d75fd1eb44270"
_UNKNOWNS = frozenset(
    {
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",  # bool
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",  # number
        "04da6b54-80e4-46f7-96ec-b56ff0331ba9",  # string, and any output
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",  # array
        "030794c1-ac77-496b-92df-f27374a8bd58",  # asset
        "e48ece36-62e2-4504-bad9-02848725956a",  # archive
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",  # object
    }
)
_UNKNOWN_STRING = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"


class Unknown:
    """A value that a preview cannot know yet; there is one, :data:`UNKNOWN`."""

    def __repr__(self) -> str:
        return "UNKNOWN"

    def __bool__(self) -> bool:
        return False


UNKNOWN: Final = Unknown()


def from_struct(struct: struct_pb2.Struct) -> dict[str, Any]:
    """Decode a struct: whole numbers become int, secrets are unwrapped, unknowns become :data:`UNKNOWN`."""
    return {key: _from_value(value) for key, value in struct.fields.items()}


def _from_value(value: struct_pb2.Value) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        fields = value.struct_value.fields
        if _SIGNATURE in fields and fields[_SIGNATURE].string_value == _SECRET:
            return _from_value(fields["value"])
        return from_struct(value.struct_value)
    if kind == "list_value":
        return [_from_value(item) for item in value.list_value.values]
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() else number
    if kind == "string_value":
        return UNKNOWN if value.string_value in _UNKNOWNS else value.string_value
    if kind == "bool_value":
        return value.bool_value
    return None


def to_struct(values: Mapping[str, Any]) -> struct_pb2.Struct:
    """Encode plain values; None is left out, as Pulumi treats a missing property and null alike."""
    struct = struct_pb2.Struct()
    for key, value in values.items():
        if value is not None:
            struct.fields[key].CopyFrom(_to_value(value))
    return struct


def _to_value(value: Any) -> struct_pb2.Value:
    if value is UNKNOWN:
        return struct_pb2.Value(string_value=_UNKNOWN_STRING)
    if isinstance(value, bool):
        return struct_pb2.Value(bool_value=value)
    if isinstance(value, (int, float)):
        return struct_pb2.Value(number_value=float(value))
    if isinstance(value, str):
        return struct_pb2.Value(string_value=value)
    if isinstance(value, Mapping):
        return struct_pb2.Value(struct_value=to_struct(value))
    if isinstance(value, (list, tuple)):
        return struct_pb2.Value(list_value=struct_pb2.ListValue(values=[_to_value(item) for item in value]))
    if value is None:
        return struct_pb2.Value(null_value=struct_pb2.NULL_VALUE)
    raise TypeError(f"{type(value).__name__} has no wire form")


def contains_unknown(value: Any) -> bool:
    """Whether an unknown stands anywhere in the value."""
    if isinstance(value, Mapping):
        return any(contains_unknown(item) for item in value.values())
    if isinstance(value, (list, tuple)):
        return any(contains_unknown(item) for item in value)
    return value is UNKNOWN
