"""Serve the plugin until the engine ends it."""

from __future__ import annotations

import asyncio
import os
import signal

import grpc

from kumulus.host import peers
from kumulus.provider.engine import Engine
from kumulus.provider.plugin.callers import HOST, UNKNOWN, OwnUser
from kumulus.provider.plugin.construct import Constructor
from kumulus.provider.plugin.package import schema_json
from kumulus.provider.protocol import engine_pb2, provider_pb2_grpc
from kumulus.provider.resources.registry import FUNCTIONS, resources
from kumulus.provider.rpc import Servicer
from kumulus.provider.settings import Settings

# Large pools are sent whole; the engine itself raises gRPC's 4 MB limit to 400 MB.
_OPTIONS = [("grpc.max_receive_message_length", 400 * 1024 * 1024), ("grpc.max_send_message_length", 400 * 1024 * 1024)]


async def serve(arguments: list[str]) -> None:
    """Serve until the engine ends the process; prints the port on standard output, as the engine expects.

    Args:
        arguments: the last one is the engine's address; empty if the plugin is started by hand.
    """
    plain = [argument for argument in arguments if not argument.startswith("-")]
    address = plain[-1] if plain else None
    engine = Engine(address)
    construct = Constructor(address)
    known = peers.are_known()
    callers = OwnUser()
    server = grpc.aio.server(options=_OPTIONS, interceptors=[callers] if known else [])
    settings = Settings()
    servicer = Servicer(engine, resources(settings), os.getcwd(), FUNCTIONS, schema_json, construct, settings)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(servicer, server)
    callers.port = server.add_insecure_port(f"{HOST}:0")
    await server.start()
    if not known:
        engine.log(engine_pb2.WARNING, UNKNOWN, "")
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
