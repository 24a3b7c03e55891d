"""Serve the plugin until the engine ends it."""

import asyncio
import contextvars
import os
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any

import grpc
import grpc.aio

from kumulus.host import ports
from kumulus.nodes.errors import ProviderError
from kumulus.provider.engine import PulumiEngine
from kumulus.provider.plugin.package import schema_json
from kumulus.provider.protocol import engine_pb2, provider_pb2_grpc
from kumulus.provider.resources.registry import FUNCTIONS, resources
from kumulus.provider.rpc import Servicer
from kumulus.provider.settings import PluginSettings

HOST = "127.0.0.1"
REFUSED = "the plugin answers only programs of the user who started it"
CALLERS_UNKNOWN = (
    "while this command runs, other users of this machine can call Kumulus' plugin: this system does not say which "
    "user a connection is from. Where there are other users, run Pulumi in a container or virtual machine of its own: "
    "see docs/security.md"
)
_PREFIX = f"ipv4:{HOST}:"
# The stubs of grpc give the class type parameters that it does not have.
_Handler = Any
_Answer = Callable[[Any, Any], Awaitable[Any]]

# Large pools are sent whole; the engine itself raises gRPC's 4 MB limit to 400 MB.
_OPTIONS = [("grpc.max_receive_message_length", 400 * 1024 * 1024), ("grpc.max_send_message_length", 400 * 1024 * 1024)]


async def serve(arguments: list[str]) -> None:
    """Serve until the engine ends the process; prints the port on standard output, as the engine expects.

    Args:
        arguments: the last one is the engine's address; empty if the plugin is started by hand.
    """
    plain = [argument for argument in arguments if not argument.startswith("-")]
    address = plain[-1] if plain else None
    engine = PulumiEngine(address)
    construct = Constructor(address)
    known = ports.users_are_known()
    callers = OwnUser()
    server = grpc.aio.server(options=_OPTIONS, interceptors=[callers] if known else [])
    settings = PluginSettings()
    servicer = Servicer(engine, resources(settings), os.getcwd(), FUNCTIONS, schema_json, construct, settings)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(servicer, server)
    callers.port = server.add_insecure_port(f"{HOST}:0")
    await server.start()
    if not known:
        engine.log(engine_pb2.WARNING, CALLERS_UNKNOWN, "")
    # The engine ends a plugin with SIGINT, and kills it if it still runs 5 s later. Calls in progress get that time to
    # finish what they have begun; all others have ended or been cancelled by then.
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    print(callers.port, flush=True)
    orphaned = asyncio.create_task(_parent_gone(ended))
    await ended.wait()
    orphaned.cancel()
    servicer.stop()
    construct.abandon()
    await server.stop(grace=4.0)


async def _parent_gone(ended: asyncio.Event) -> None:
    """End the plugin if the engine was killed, as nobody else would."""
    parent = os.getppid()
    while os.getppid() == parent:  # noqa: ASYNC110 - nothing else tells of it
        await asyncio.sleep(1.0)
    ended.set()


# Who may call the plugin: programs of the user who runs it, although every user of the machine can reach its port.
#
# Pulumi's engine connects to a port of 127.0.0.1 and brings no password: the kernel knows which user each connection is
# from.


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
            if port.isdigit() and ports.user_of((HOST, int(port)), (HOST, self.port)) == os.geteuid():
                return
        except OSError as error:
            await context.abort(grpc.StatusCode.UNAVAILABLE, f"the plugin cannot find out who calls: {error}")
        await context.abort(grpc.StatusCode.PERMISSION_DENIED, REFUSED)


# Components for programs in other languages: each is constructed by the Python classes, in isolation.
#
# Pulumi's SDK keeps its state of a program in context variables, and waits in an event loop. Each request gets a thread
# with its own context and loop, so that many are constructed at once without sharing state. The SDK is imported with
# the first request, since every command waits for the plugin's start.


class Constructor:
    """Constructs components, by the engine's address; None when the plugin was started by hand."""

    def __init__(self, engine: str | None) -> None:
        self._engine = engine
        self._pending: set[Future[bytes]] = set()

    def abandon(self) -> None:
        """Fail all pending requests: the engine, which is ending, would wait for them, and they for the engine."""
        for answer in self._pending:
            _settle(answer.set_exception, ProviderError("the update has ended"))

    async def __call__(self, request: bytes) -> bytes:
        """Construct what a ConstructRequest asks for; returns the ConstructResponse, or raises InvalidInputs."""
        answer: Future[bytes] = Future()

        def work() -> None:
            try:
                _settle(answer.set_result, contextvars.Context().run(self._work, request))
            except BaseException as error:
                _settle(answer.set_exception, error)

        self._pending.add(answer)
        threading.Thread(target=work, name="construct", daemon=True).start()
        try:
            return await asyncio.wrap_future(answer)
        finally:
            self._pending.discard(answer)

    def _work(self, request: bytes) -> bytes:
        from kumulus.provider.plugin.components import constructed

        return asyncio.run(constructed(request, self._engine or ""))


def _settle(settle: Callable[[Any], None], value: object) -> None:
    # Given up, or abandoned, it is settled already.
    with suppress(InvalidStateError):
        settle(value)
