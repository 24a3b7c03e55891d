"""Who may call the plugin: programs of the user who runs it, although every user of the machine can reach its port.

Pulumi's engine connects to a port of 127.0.0.1 and brings no password, so the kernel is asked whose each connection is.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
import grpc.aio

from kumulus.host import peers

HOST = "127.0.0.1"
REFUSED = "the plugin answers only programs of the user who started it"
UNKNOWN = (
    "while this command runs, other users of this machine can call Kumulus' plugin: this system does not say whose a "
    "connection is. Where there are other users, run Pulumi in a container or virtual machine of its own: see "
    "docs/security.md"
)
_PREFIX = f"ipv4:{HOST}:"
# The stubs of grpc give the class type parameters that it does not have.
_Handler = Any
_Answer = Callable[[Any, Any], Awaitable[Any]]


class OwnUser(grpc.aio.ServerInterceptor):
    """Refuses calls of other users, before anything of a request is read: a request may have 400 MB.

    Attributes:
        port: of 127.0.0.1, on which the plugin listens; set before the first call.
    """

    port = 0

    async def intercept_service(
        self, continuation: Callable[[grpc.HandlerCallDetails], Awaitable[_Handler]], details: grpc.HandlerCallDetails
    ) -> _Handler:
        """Have a method ask who calls. Methods whose answer is a stream, which the plugin has none of, do not exist."""
        handler = await continuation(details)
        if handler is None or handler.unary_unary is None:
            return None
        return grpc.stream_unary_rpc_method_handler(
            self._of_own_user(handler.unary_unary), handler.request_deserializer, handler.response_serializer
        )

    def _of_own_user(self, answer: _Answer) -> _Answer:
        # As the method of a stream, it is called before the request arrives.
        async def answered(requests: AsyncIterator[Any], context: Any) -> Any:
            await self._require_own(context)
            async for request in requests:
                return await answer(request, context)
            raise AssertionError("a call has a request")

        return answered

    async def _require_own(self, context: Any) -> None:
        port = context.peer().removeprefix(_PREFIX)
        try:
            if port.isdigit() and peers.user((HOST, int(port)), (HOST, self.port)) == os.geteuid():
                return
        except OSError as error:
            await context.abort(grpc.StatusCode.UNAVAILABLE, f"the plugin cannot find out who calls: {error}")
        await context.abort(grpc.StatusCode.PERMISSION_DENIED, REFUSED)
