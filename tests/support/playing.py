"""An API server whose pods a test plays, and whose watches a test holds back, cuts off, or makes forget."""

import asyncio
import struct
from contextlib import suppress
from typing import Any

from aiohttp import web

from kumulus.extras.lab.plan.pods import JOB_LABEL, WORKLOAD_LABEL
from kumulus.kube.messages import enveloped, message_classes
from tests.support.messages import pod_message

SPACE = "experiment-x-1"


class PlayedPods:
    """Answers lists and watches of pods in protobuf.

    Attributes:
        held: whether watches are silent; what happens meanwhile is told afterwards.
        forgets: whether it tells watches to list anew, once.
    """

    def __init__(self) -> None:
        self.held = self.forgets = False
        self._pods: dict[str, Any] = {}
        self._told: list[tuple[str, Any]] = []
        self._changed = asyncio.Condition()
        self._watches: list[web.Request] = []

    async def put(self, *names: str, **fields: Any) -> None:
        """Create or change pods, each of a job of its own; the fields are those of :func:`pod_message`."""
        for name in names:
            kind = "MODIFIED" if name in self._pods else "ADDED"
            labels = {WORKLOAD_LABEL: "w", JOB_LABEL: f"job-{name}"}
            metadata = {"uid": name, "namespace": SPACE, "labels": labels, "resourceVersion": str(len(self._told) + 1)}
            self._pods[name] = pod_message(name, metadata=metadata, **fields)
            self._told.append((kind, self._pods[name]))
        await self.tell()

    async def tell(self) -> None:
        """Have the watches look at what has changed."""
        async with self._changed:
            self._changed.notify_all()

    async def forget(self) -> None:
        """End each watch with 410 Gone, so that the client lists anew."""
        self.forgets = True
        await self.tell()

    def cut(self) -> None:
        """Break the connections of all watches."""
        for each in self._watches:
            if each.transport is not None:
                each.transport.abort()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer a request."""
        if "watch" not in request.query:
            found = message_classes()["PodList"](
                metadata={"resourceVersion": str(len(self._told))}, items=self._pods.values()
            )
            body = enveloped("v1", "PodList", found.SerializeToString())
            return web.Response(body=body, content_type="application/vnd.kubernetes.protobuf")
        at = int(request.query["resourceVersion"])
        response = web.StreamResponse()
        await response.prepare(request)
        self._watches.append(request)
        with suppress(ConnectionError):
            while await self._news(at):
                news, at = self._told[at:], len(self._told)
                await response.write(b"".join(_frame(kind, _pod(pod)) for kind, pod in news))
            self.forgets = self.held = False
            await response.write(_frame("ERROR", _status()))
        return response

    async def _news(self, since: int) -> bool:
        """Wait for something to tell a watch; returns whether it is news."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.forgets or (len(self._told) > since and not self.held))
        return not self.forgets


def _frame(kind: str, raw: bytes) -> bytes:
    event = message_classes()["WatchEvent"](type=kind, object={"raw": raw}).SerializeToString()
    return struct.pack(">I", len(event)) + bytes(event)


def _pod(pod: Any) -> bytes:
    return enveloped("v1", "Pod", pod.SerializeToString())


def _status() -> bytes:
    status = message_classes()["Status"](code=410, reason="Expired", message="too old resource version")
    return enveloped("v1", "Status", status.SerializeToString())
