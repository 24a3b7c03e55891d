"""The bodies of single requests and answers: JSON, text, or a status in protobuf."""

import json
from collections.abc import Mapping
from contextlib import suppress
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
    """Decode nothing: for answers that nobody reads."""


def refusal(raw: bytes) -> Any:
    """The server's refusal: a ``Status``, in either encoding, or whatever text a proxy put there."""
    with suppress(DecodeError):
        envelope = opened(raw)
        if envelope.typeMeta.kind == "Status":
            status = message_classes()["Status"].FromString(envelope.raw)
            return {"message": status.message, "reason": status.reason}
    with suppress(ValueError):
        return json.loads(raw)
    return raw.decode(errors="replace")
