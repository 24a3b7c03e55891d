"""Translate between Pulumi's wire values (protobuf structs) and plain Python values.

Sources: sdk/go/common/resource/plugin/rpc.go of pulumi (unknown sentinels, signature of secrets).
"""

from collections.abc import Mapping
from typing import Any

from google.protobuf import struct_pb2

from kumulus.model.plain import UNKNOWN

_DRIFT = "drift"
_SIGNATURE = "4dabf18193072939515e22adb298388d"
_SECRET = "1b47061264138c4ac30d75fd1eb44270"
_REFERENCE = "5cf8f73096256a8f31e491e813e4eb8e"
_UNKNOWN_STRING = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
_UNKNOWNS = frozenset(
    {
        _UNKNOWN_STRING,  # any output, too
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",  # bool
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",  # number
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",  # array
        "030794c1-ac77-496b-92df-f27374a8bd58",  # asset
        "e48ece36-62e2-4504-bad9-02848725956a",  # archive
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",  # object
    }
)


def from_struct(struct: struct_pb2.Struct) -> dict[str, Any]:
    """Decode a struct: whole numbers become int, secrets are unwrapped, unknowns become ``UNKNOWN``."""
    return {key: _from_value(value) for key, value in struct.fields.items()}


def _from_value(value: struct_pb2.Value) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        fields = value.struct_value.fields
        if _is_secret(value):
            return _from_value(fields["value"])
        if _is_reference(value):
            return _from_value(fields["id"] if "id" in fields else fields["urn"])
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


def by_urn(value: struct_pb2.Value) -> struct_pb2.Value:
    """A value with every resource reference replaced by the resource's URN."""
    if value.HasField("list_value"):
        return struct_pb2.Value(list_value=struct_pb2.ListValue(values=map(by_urn, value.list_value.values)))
    if not value.HasField("struct_value"):
        return value
    if _is_reference(value):
        return value.struct_value.fields["urn"]
    fields = {key: by_urn(inner) for key, inner in value.struct_value.fields.items()}
    return struct_pb2.Value(struct_value=struct_pb2.Struct(fields=fields))


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


def keep_secret(outputs: struct_pb2.Struct, *inputs: struct_pb2.Struct) -> struct_pb2.Struct:
    """Mark outputs as secret where the inputs of the same name are or contain a secret; returns the outputs.

    The engine does this for plugins without support for secrets; this plugin needs the support for its components.
    Drift quotes values of all inputs, so it is secret if any of them is.
    """
    for source in inputs:
        for key, value in source.fields.items():
            if key in outputs.fields:
                _keep_secret(outputs.fields[key], value)
            if _DRIFT in outputs.fields and _has_secret(value):
                _mark(outputs.fields[_DRIFT])
    return outputs


def _keep_secret(output: struct_pb2.Value, source: struct_pb2.Value) -> None:
    if _is_secret(output) or not _has_secret(source):
        return
    if output.HasField("struct_value") and source.HasField("struct_value") and not _is_secret(source):
        keep_secret(output.struct_value, source.struct_value)
        return
    _mark(output)


def _mark(output: struct_pb2.Value) -> None:
    if not _is_secret(output):
        marked = struct_pb2.Struct(fields={_SIGNATURE: struct_pb2.Value(string_value=_SECRET), "value": output})
        output.CopyFrom(struct_pb2.Value(struct_value=marked))


def _is_secret(value: struct_pb2.Value) -> bool:
    return _signed(value, _SECRET)


def _is_reference(value: struct_pb2.Value) -> bool:
    return _signed(value, _REFERENCE)


def _signed(value: struct_pb2.Value, signature: str) -> bool:
    fields = value.struct_value.fields
    return _SIGNATURE in fields and fields[_SIGNATURE].string_value == signature


def _has_secret(value: struct_pb2.Value) -> bool:
    if value.HasField("struct_value"):
        return _is_secret(value) or any(map(_has_secret, value.struct_value.fields.values()))
    return value.HasField("list_value") and any(map(_has_secret, value.list_value.values))


def contains_unknown(value: Any) -> bool:
    """Whether the value contains an unknown at any depth."""
    if isinstance(value, Mapping):
        return any(contains_unknown(item) for item in value.values())
    if isinstance(value, (list, tuple)):
        return any(contains_unknown(item) for item in value)
    return value is UNKNOWN
