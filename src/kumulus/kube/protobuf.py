"""Kubernetes' protobuf encoding, for what is posted by the thousand: it costs the API server less than JSON.

Sources: k8s.io/apimachinery pkg/runtime/serializer/protobuf (the envelope); the field numbers in ``generated.proto``
of k8s.io/api/core/v1, which Kubernetes never changes. Protobuf's C library writes the bytes.
"""

from collections.abc import Mapping
from datetime import datetime
from functools import cache, lru_cache
from typing import Any

from kumulus.kube.message_tables import classes_of, tables_of
from kumulus.kube.messages import OBSERVED, enveloped

_NOT_READ = tables_of(
    """
    Condition: lastHeartbeatTime 3 Time
    NodeAddress: type 1 string, address 2 string
    DaemonEndpoint: Port 1 int32
    NodeDaemonEndpoints: kubeletEndpoint 1 DaemonEndpoint
    NodeStatus: phase 3 string, addresses 5 *NodeAddress, daemonEndpoints 6 NodeDaemonEndpoints
    """
)
_POSTED = OBSERVED | {name: {**OBSERVED.get(name, {}), **fields} for name, fields in _NOT_READ.items()}


class NoEncoding(ValueError):
    """A field that the tables here do not know; it is refused, because it would be lost silently."""


def encode_node(node: Mapping[str, Any]) -> bytes:
    """Encode a v1 Node from its JSON form.

    Raises:
        NoEncoding: it has a field that the tables here do not know.
    """
    return enveloped("v1", "Node", _encoded(_without_type(node)))


def encode_bare_node(node: Mapping[str, Any]) -> bytes:
    """Encode a v1 Node as its Go type does (``Marshal``), without the envelope that names the kind."""
    return _encoded(_without_type(node))


class NodeBatch:
    """Encodes nodes that share most of their fields; these are encoded once.

    It relies on protobuf's rule that two concatenated messages of a type are their merger: the second one's fields
    win, and maps and lists are joined (https://protobuf.dev/programming-guides/encoding/#last-one-wins).

    Args:
        one, another: two of the nodes; a list in which they differ is taken to differ from node to node.
    """

    def __init__(self, one: Mapping[str, Any], another: Mapping[str, Any]) -> None:
        self._shared = _without_differing_lists(_without_type(one), another)
        self._encoded = _encoded(self._shared)

    def encode(self, node: Mapping[str, Any]) -> bytes:
        """Encode a node; raises :class:`NoEncoding` as :func:`encode_node` does."""
        own = _own(self._shared, _without_type(node))
        if own is None:
            return encode_node(node)
        return enveloped("v1", "Node", self._encoded + _encoded(own))


def _own(shared: Mapping[str, Any], node: Mapping[str, Any]) -> dict[str, Any] | None:
    """What a node has that is not shared; None if the shared fields and these would not merge into the node."""
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


def _encoded(node: Mapping[str, Any]) -> bytes:
    return bytes(_classes()["Node"](**_fields("Node", node)).SerializeToString())


@cache
def _classes() -> Mapping[str, Any]:
    return classes_of(_POSTED)


def _fields(message: str, value: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a message as its class takes them, from their JSON form."""
    table, found = _POSTED[message], {}
    for name, content in value.items():
        if content is None:
            continue
        if name not in table:
            raise NoEncoding(f"no protobuf encoding for the field {name!r}")
        kind = table[name][1]
        if kind == "{}string":
            found[name] = content
        elif kind.startswith("{}"):
            found[name] = {key: _one(kind[2:], each) for key, each in content.items()}
        elif kind.startswith("*"):
            found[name] = [_one(kind[1:], each) for each in content]
        else:
            found[name] = _one(kind, content)
    return found


def _one(kind: str, content: Any) -> Any:
    if kind == "Quantity":
        return {"string": content}
    if kind == "Time":
        return {"seconds": _seconds(content)}
    return _fields(kind, content) if kind in _POSTED else content


@lru_cache(maxsize=16)
def _seconds(written: str) -> int:
    return int(datetime.fromisoformat(written).timestamp())
