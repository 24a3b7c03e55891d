"""The bodies of single requests and answers: JSON, text, or a status in protobuf."""

import json
from collections.abc import Mapping
from typing import Any

from google.protobuf.message import DecodeError

from kumulus.kube.messages import message_classes, opened


def encoded(body: Mapping[str, Any]) -> bytes:
    """An object as JSON, without spaces."""
    return json.dumps(body, separators=(",", ":")).encode()


def content(raw: bytes) -> Any:
    """The content of an answer: decoded JSON, or else its text."""
    return json.loads(raw) if raw.startswith((b"{", b"[")) else raw.decode()


def nothing(_: bytes) -> None:
    """The decoded form of an answer that nobody reads."""


def refusal(raw: bytes) -> Any:
    """The server's refusal: a ``Status``, in either encoding, or whatever text a proxy put there."""
    if (status := decode_status(raw)) is not None:
        return status
    try:
        return json.loads(raw)
    except ValueError:
        return raw.decode(errors="replace")


def decode_status(body: bytes) -> dict[str, str] | None:
    """Read a v1 ``Status``, the answer of an API server that refuses; None when the body is something else."""
    try:
        envelope = opened(body)
        if envelope.typeMeta.kind != "Status":
            return None
        status = message_classes()["Status"].FromString(envelope.raw)
    except DecodeError:
        return None
    return {"message": status.message, "reason": status.reason}
