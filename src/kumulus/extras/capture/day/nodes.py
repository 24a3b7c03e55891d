"""Cordons and drains, from requests that change nodes."""

from __future__ import annotations

from collections.abc import Mapping

from kumulus.extras.capture.day.patches import NotUnderstood, patched
from kumulus.extras.capture.day.requests import Request


class Cordons:
    """Which nodes are cordoned, and which of them are being drained."""

    def __init__(self) -> None:
        self._drained: dict[str, bool] = {}

    def take(self, request: Request) -> str:
        """Take one more change of a node; returns `cordon` or `uncordon` if it is one, otherwise an empty text."""
        closed = self._closed(request)
        if closed is None or closed == (request.name in self._drained):
            return ""
        if closed:
            self._drained[request.name] = False
            return "cordon"
        del self._drained[request.name]
        return "uncordon"

    def has(self, node: str) -> bool:
        """Whether a node is cordoned."""
        return node in self._drained

    def drain(self, node: str) -> bool:
        """Record that a pod of a cordoned node is evicted; returns whether it is the first one."""
        first = not self._drained[node]
        self._drained[node] = True
        return first

    def _closed(self, request: Request) -> bool | None:
        """Whether the node is cordoned afterwards; None if that cannot be determined from the request."""
        body = request.answered
        if body is None and request.verb == "update" and isinstance(request.sent, Mapping):
            body = request.sent
        if body is None:
            # A patch without the field leaves it unchanged.
            before = {"spec": {"unschedulable": request.name in self._drained}}
            try:
                body = patched(before, request.sent if request.sent is not None else {})
            except NotUnderstood:
                return None
        spec = body.get("spec") if isinstance(body, Mapping) else None
        return bool(isinstance(spec, Mapping) and spec.get("unschedulable"))
