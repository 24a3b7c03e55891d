"""The page of a fleet that a test fills, served from its own thread."""

from __future__ import annotations

import asyncio
import http.client
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any, TypeVar
from urllib.parse import urlsplit

from kumulus.extras.watch.console.page import Page
from kumulus.extras.watch.live.fleet import Live
from kumulus.extras.watch.live.health import HealthCheck
from kumulus.extras.watch.live.model import Fleet
from kumulus.extras.watch.live.node import PlaceLabels
from kumulus.kube import Client, Connection

T = TypeVar("T")


@contextmanager
def answered(
    address: str, path: str, method: str = "GET", body: str | None = None, headers: Mapping[str, str] | None = None
) -> Iterator[http.client.HTTPResponse]:
    """What a server answers to a request for a path."""
    place = urlsplit(address)
    with closing(http.client.HTTPConnection(str(place.hostname), place.port, timeout=30)) as connection:
        connection.request(method, path, body, headers or {})
        yield connection.getresponse()


class ServedFleet:
    """A page and the fleet it shows, as a context manager.

    Args:
        fill: fills the fleet before the page is served.
    """

    def __init__(self, fill: Callable[[Fleet], None]) -> None:
        # Not entered, so that it watches no cluster: the test alone fills the fleet.
        self.live = Live(Client(Connection("http://127.0.0.1:1", "none"), patience=1), PlaceLabels((), ()))
        self.live.checks = {
            "kube-apiserver": HealthCheck("ok"),
            "etcd": HealthCheck("ok"),
            "kube-scheduler": HealthCheck("ok"),
        }
        fill(self.live.fleet)
        self.page = Page("test", self.live, remedy="`pulumi up -s test --refresh` starts it")
        self.address = ""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._serving = self.page.served()

    def __enter__(self) -> ServedFleet:
        self._thread.start()
        self.address = self._await(self._serving.__aenter__())
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def stop(self) -> None:
        """End the server, as Ctrl-C does; a second call does nothing."""
        if self.address:
            self.address = ""
            self._await(self._serving.__aexit__(None, None, None))

    def change(self, change: Callable[[Live], object]) -> None:
        """Run a change in the server's own thread."""

        async def run() -> None:
            change(self.live)

        self._await(run())

    def _await(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(20)
