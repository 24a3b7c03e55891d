"""Kubernetes' protobuf encoding, for what is posted by the thousand: it costs the API server less than JSON.

Sources: k8s.io/apimachinery pkg/runtime/serializer/protobuf (the envelope); the field numbers in ``generated.proto``
of k8s.io/api/core/v1 and k8s.io/apimachinery/pkg/apis/meta/v1, which Kubernetes never changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

_MAGIC = b"k8s\x00"
_VARINT, _LENGTH_DELIMITED = 0, 2

Encoder = Callable[[Any], bytes]
"""Turns a plain value into the content of a length-delimited field."""


class NoEncoding(ValueError):
    """A field that the tables here do not know; what would be lost silently is refused instead."""


def _varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


# Nearly every tag and length is one of these.
_SMALL = tuple(_varint(number) for number in range(1 << 14))


def _delimited(number: int, content: bytes) -> bytes:
    length = len(content)
    prefix = _SMALL[length] if length < len(_SMALL) else _varint(length)
    return _SMALL[number << 3 | _LENGTH_DELIMITED] + prefix + content


def _text(value: Any) -> bytes:
    return str(value).encode()


def _quantity(value: str) -> bytes:
    return _delimited(1, value.encode())


def _time(value: str) -> bytes:
    """A ``Time``: seconds since 1970 in field 1."""
    return _varint(1 << 3 | _VARINT) + _varint(int(datetime.fromisoformat(value).timestamp()))


class Message:
    """Encodes one message type.

    Args:
        fields: by their JSON names: the field's number and how its content is encoded.
    """

    def __init__(self, **fields: tuple[int, Callable[[int, Any], bytes]]) -> None:
        self._fields = fields

    def __call__(self, value: Mapping[str, Any]) -> bytes:
        """Encode the message's content; raises :class:`NoEncoding` for a field without a table entry."""
        parts = []
        for name, content in value.items():
            if content is None:
                continue
            try:
                number, write = self._fields[name]
            except KeyError:
                raise NoEncoding(f"no protobuf encoding for the field {name!r}") from None
            parts.append(write(number, content))
        return b"".join(parts)


def _one(number: int, encoder: Encoder) -> tuple[int, Callable[[int, Any], bytes]]:
    return number, lambda field, value: _delimited(field, encoder(value))


def _many(number: int, encoder: Encoder) -> tuple[int, Callable[[int, Any], bytes]]:
    return number, lambda field, values: b"".join([_delimited(field, encoder(value)) for value in values])


def _map(number: int, encoder: Encoder) -> tuple[int, Callable[[int, Any], bytes]]:
    def write(field: int, entries: Mapping[str, Any]) -> bytes:
        return b"".join(
            [
                _delimited(field, _delimited(1, key.encode()) + _delimited(2, encoder(value)))
                for key, value in entries.items()
            ]
        )

    return number, write


def _number(number: int) -> tuple[int, Callable[[int, Any], bytes]]:
    return number, lambda field, value: _varint(field << 3 | _VARINT) + _varint(int(value))


_META = Message(
    name=_one(1, _text),
    labels=_map(11, _text),
    annotations=_map(12, _text),
)
_TAINT = Message(key=_one(1, _text), value=_one(2, _text), effect=_one(3, _text))
_CONDITION = Message(
    type=_one(1, _text),
    status=_one(2, _text),
    lastHeartbeatTime=_one(3, _time),
    lastTransitionTime=_one(4, _time),
    reason=_one(5, _text),
    message=_one(6, _text),
)
_SYSTEM_INFO = Message(
    machineID=_one(1, _text),
    systemUUID=_one(2, _text),
    bootID=_one(3, _text),
    kernelVersion=_one(4, _text),
    osImage=_one(5, _text),
    containerRuntimeVersion=_one(6, _text),
    kubeletVersion=_one(7, _text),
    kubeProxyVersion=_one(8, _text),
    operatingSystem=_one(9, _text),
    architecture=_one(10, _text),
)
_STATUS = Message(
    capacity=_map(1, _quantity),
    allocatable=_map(2, _quantity),
    phase=_one(3, _text),
    conditions=_many(4, _CONDITION),
    addresses=_many(5, Message(type=_one(1, _text), address=_one(2, _text))),
    daemonEndpoints=_one(6, Message(kubeletEndpoint=_one(1, Message(Port=_number(1))))),
    nodeInfo=_one(7, _SYSTEM_INFO),
)
_NODE = Message(
    metadata=_one(1, _META),
    spec=_one(2, Message(taints=_many(5, _TAINT))),
    status=_one(3, _STATUS),
)


def encode_node(node: Mapping[str, Any]) -> bytes:
    """Encode a v1 Node given as for JSON.

    Raises:
        NoEncoding: it has a field that the tables here do not know.
    """
    return _enveloped(_NODE(_without_type(node)))


class NodeBatch:
    """Encodes nodes that have most of their fields in common; these are encoded once.

    It rests on protobuf's rule that one message followed by another of its type is their merger: what the second one
    says wins, and maps and lists are joined (https://protobuf.dev/programming-guides/encoding/#last-one-wins).

    Args:
        one: a node of the batch.
        another: another one; a list in which the two differ is taken to differ from node to node.
    """

    def __init__(self, one: Mapping[str, Any], another: Mapping[str, Any]) -> None:
        self._shared = _without_differing_lists(_without_type(one), another)
        self._encoded = _NODE(self._shared)

    def encode(self, node: Mapping[str, Any]) -> bytes:
        """Encode a node; raises :class:`NoEncoding` as :func:`encode_node` does."""
        own = _own(self._shared, _without_type(node))
        return encode_node(node) if own is None else _enveloped(self._encoded + _NODE(own))


def _own(shared: Mapping[str, Any], node: Mapping[str, Any]) -> dict[str, Any] | None:
    """What a node has that is not shared; None when the merger of the two would not be the node."""
    if not shared.keys() <= node.keys():
        return None
    own: dict[str, Any] = {}
    for key, value in node.items():
        common = shared.get(key)
        if value == common:
            continue
        if isinstance(value, dict) and isinstance(common, dict):
            part = _own(common, value)
            if part is None:
                return None
            own[key] = part
        elif isinstance(value, list) and common is not None:
            return None
        else:
            own[key] = value
    return own


def _without_differing_lists(one: Mapping[str, Any], another: Mapping[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for key, value in one.items():
        other = another.get(key)
        if isinstance(value, dict) and isinstance(other, dict):
            kept[key] = _without_differing_lists(value, other)
        elif value == other or not isinstance(value, list):
            kept[key] = value
    return kept


def _without_type(node: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in node.items() if key not in ("apiVersion", "kind")}


def _enveloped(content: bytes) -> bytes:
    return _MAGIC + _delimited(1, _delimited(1, b"v1") + _delimited(2, b"Node")) + _delimited(2, content)


def decode_status(body: bytes) -> dict[str, str] | None:
    """Read a v1 ``Status``, the answer of an API server that refuses; None when the body is something else."""
    if not body.startswith(_MAGIC):
        return None
    try:
        envelope = dict(_fields(body[len(_MAGIC) :]))
        if dict(_fields(envelope[1])).get(2) != b"Status":
            return None
        status = dict(_fields(envelope[2]))
        return {name: status.get(number, b"").decode() for name, number in (("message", 3), ("reason", 4))}
    except (IndexError, KeyError, UnicodeDecodeError):
        return None


def _fields(body: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the length-delimited fields of a message by number; others are passed over."""
    position = 0
    while position < len(body):
        tag, position = _read_varint(body, position)
        if tag & 7 == _LENGTH_DELIMITED:
            length, position = _read_varint(body, position)
            yield tag >> 3, body[position : position + length]
            position += length
        elif tag & 7 == _VARINT:
            _, position = _read_varint(body, position)
        else:
            return


def _read_varint(body: bytes, position: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = body[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, position
        shift += 7
