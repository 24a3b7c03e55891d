"""Ask programs of this machine whether they are ready."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from urllib.parse import urlsplit

from kumulus.extras.schedulers.launch.plan import Program
from kumulus.kube import ApiError, Client, Connection, Unreachable

_LOOK_EVERY = 0.05


async def answering(programs: Sequence[Program]) -> None:
    """Wait until each program answers at its addresses with success."""
    addresses = [(program.name, program.ready, program.ready_says) for program in programs]
    addresses += [(program.name, each, "") for program in programs for each in program.ready_too]
    await asyncio.gather(*(_answers(*each) for each in addresses))


async def _answers(name: str, address: str, says: str) -> None:
    parts = urlsplit(address)
    connection = Connection(f"{parts.scheme}://{parts.netloc}", name, tls=_anybody())
    async with Client(connection, request_timeout=5.0) as client:
        while True:
            try:
                if says in str(await client.get(parts.path, patience=0.0)):
                    return
            except (ApiError, Unreachable):
                pass
            await asyncio.sleep(_LOOK_EVERY)


def _anybody() -> ssl.SSLContext:
    # The server is on 127.0.0.1, on a port claimed for it, with a self-signed certificate that it has just made.
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context
