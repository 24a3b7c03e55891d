"""The media types of the API's bodies; and how a watch's events are encoded: where one ends, and what it is about."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
"""Server-side apply; JSON is YAML, too."""
JSON_PATCH = "application/json-patch+json"
PROTOBUF = "application/vnd.kubernetes.protobuf"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
"""Only the metadata of a list's objects."""
USER_AGENT = "kumulus"
"""Also the name under which API servers note what we write, in an object's `managedFields`."""

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class Listed(Generic[T]):
    """A page of a list."""

    items: list[T]
    """Its objects."""
    version: str
    """The resourceVersion of the collection, from which a watch continues."""
    token: str
    """Asks for the next page; empty on the last one."""


class Codec(Protocol[T]):
    """What a watch has to know about a representation of objects."""

    list_type: str
    """The media type to ask for when listing."""
    watch_type: str
    """The media type to ask for when watching."""

    def listed(self, raw: bytes) -> Listed[T]:
        """Decode a page of a list."""

    def frames(self, buffer: bytearray) -> Iterator[bytes]:
        """Remove the complete events from what has been received so far; an incomplete one stays."""

    def event(self, frame: bytes) -> tuple[str, Any]:
        """An event's type and its object; for an ERROR the object is a ``Status`` as a mapping."""

    def key(self, item: T) -> str:
        """``namespace/name`` of an object, or its name if it has no namespace."""

    def version(self, item: T) -> str:
        """The resourceVersion of an object."""


class JsonCodec:
    """Objects as mappings, from JSON.

    Args:
        list_type: another representation, such as ``PartialObjectMetadataList``.
    """

    watch_type = JSON

    def __init__(self, list_type: str = JSON) -> None:
        self.list_type = list_type

    def listed(self, raw: bytes) -> Listed[dict[str, Any]]:
        """See :meth:`Codec.listed`."""
        page = json.loads(raw)
        metadata = page.get("metadata") or {}
        return Listed(page.get("items") or [], metadata.get("resourceVersion", ""), metadata.get("continue", ""))

    def frames(self, buffer: bytearray) -> Iterator[bytes]:
        """See :meth:`Codec.frames`: one per line."""
        end = buffer.rfind(b"\n") + 1
        if end:
            lines = bytes(buffer[:end])
            del buffer[:end]
            yield from filter(None, map(bytes.strip, lines.split(b"\n")))

    def event(self, frame: bytes) -> tuple[str, dict[str, Any]]:
        """See :meth:`Codec.event`."""
        event = json.loads(frame)
        return event.get("type", ""), event.get("object") or {}

    def key(self, item: dict[str, Any]) -> str:
        """See :meth:`Codec.key`."""
        metadata = item["metadata"]
        namespace = metadata.get("namespace")
        return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])

    def version(self, item: dict[str, Any]) -> str:
        """See :meth:`Codec.version`."""
        return str((item.get("metadata") or {}).get("resourceVersion", ""))
