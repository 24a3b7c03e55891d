"""Report to the user through Pulumi's engine: progress in the status column, messages under the resource."""

import asyncio
import time
from typing import Any

import grpc

from kumulus.nodes.reporter import Reporter
from kumulus.provider.protocol import engine_pb2, engine_pb2_grpc

_STATUS_INTERVAL = 0.2


class PulumiEngine:
    """The engine's logging service, by its address; None when the plugin was started by hand: then nothing is shown."""

    def __init__(self, address: str | None) -> None:
        self._channel = grpc.aio.insecure_channel(address) if address else None
        self._stub = engine_pb2_grpc.EngineStub(self._channel) if self._channel else None
        self._sending: set[asyncio.Task[None]] = set()
        # Messages are sent one at a time, in order: sent concurrently, an older status could overtake the last.
        self._lock = asyncio.Lock()

    def reporter(self, urn: str) -> Reporter:
        """Return a reporter whose messages are shown under the resource of that URN."""
        return _EngineReporter(self, urn)

    def log(
        self, severity: engine_pb2.LogSeverity.ValueType, message: str, urn: str, *, ephemeral: bool = False
    ) -> None:
        """Send a message without waiting for it; :meth:`flush` waits."""
        if self._stub is None:
            return
        request = engine_pb2.LogRequest(severity=severity, message=message, urn=urn, ephemeral=ephemeral)
        task = asyncio.get_running_loop().create_task(self._send(request))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _send(self, request: engine_pb2.LogRequest) -> None:
        # The generated stub is typed for synchronous channels; on an asynchronous one its calls are awaited.
        log: Any = self._stub
        try:
            async with self._lock:
                await log.Log(request)
        except grpc.aio.AioRpcError:
            # The engine is gone or busy: a message is not worth failing the operation for.
            return

    async def flush(self) -> None:
        """Wait until the messages sent so far have arrived, so that none arrives after its operation has ended."""
        if self._sending:
            await asyncio.wait(set(self._sending), timeout=2)


class _EngineReporter:
    def __init__(self, engine: PulumiEngine, urn: str) -> None:
        self._engine = engine
        self._urn = urn
        self._last = 0.0

    def status(self, message: str, *, last: bool = False) -> None:
        now = time.monotonic()
        if last or now - self._last >= _STATUS_INTERVAL:
            self._last = now
            self._engine.log(engine_pb2.INFO, message, self._urn, ephemeral=True)

    def info(self, message: str) -> None:
        self._engine.log(engine_pb2.INFO, message, self._urn)

    def warn(self, message: str) -> None:
        self._engine.log(engine_pb2.WARNING, message, self._urn)
