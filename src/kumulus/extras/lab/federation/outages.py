"""What a timeline does to the workers of a federation: kill one, cut it off from the hub, and bring it back.

Each change is in the hub's journal before it is made. For a partition, the run puts a proxy between the hub and the
worker. The kubeconfig in the hub's Secret points at the proxy from the beginning of a repetition, so that the cut is
measured, and not the change of an address.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from kumulus.extras.federation.federation import secret_name
from kumulus.extras.journal import federation as journaled
from kumulus.extras.journal import outages
from kumulus.extras.journal.book import Journal
from kumulus.extras.journal.changes import Rerouted
from kumulus.extras.journal.errors import JournalError
from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.federation.dispatching import CLUSTERS
from kumulus.extras.lab.federation.members import RunningFederation
from kumulus.extras.lab.federation.proxy import Proxy
from kumulus.extras.lab.file.timeline import TimelineEvent
from kumulus.model.words import counted

if TYPE_CHECKING:
    from kumulus.kube import Client

_CONNECT_S = 60.0
_LOOK_EVERY = 0.1


@dataclass
class _Led:
    rerouted: Rerouted
    proxy: Proxy
    cut: bool = False


class Outages:
    """The workers of a federation, for a timeline.

    Args:
        started: called when processes of a worker have been started.
    """

    def __init__(
        self,
        hub: Client,
        federation: RunningFederation,
        journal: Journal,
        now: Callable[[], float],
        started: Callable[[], None] = lambda: None,
    ) -> None:
        self._client = hub
        self._federation = federation
        self._journal = journal
        self._now = now
        self._started = started
        self._killed: set[str] = set()
        self._back: dict[str, float] = {}
        self._led: dict[str, _Led] = {}

    def away(self) -> tuple[Collection[str], dict[str, float]]:
        """The workers that are killed at the moment, and when workers were brought back."""
        return self._killed, self._back

    def unreached(self) -> set[str]:
        """The workers that the hub cannot reach at the moment, because of the timeline."""
        return self._killed | {name for name, led in self._led.items() if led.cut}

    @property
    def led(self) -> list[str]:
        """The workers that the hub reaches through a proxy."""
        return [*self._led]

    async def prepare(self, events: Sequence[TimelineEvent]) -> None:
        """Route the hub through a proxy to each worker that the timeline will cut off."""
        for name in dict.fromkeys(str(event.partition) for event in events if event.partition is not None):
            await self._lead(name)

    async def do(self, event: TimelineEvent) -> str:
        """Kill, cut off or bring back a worker; returns what was done, in words."""
        if event.kill is not None:
            return await self._kill(event.kill)
        if event.partition is not None:
            led = self._led[event.partition]
            led.cut = True
            cut = led.proxy.cut()
            return f"{event.partition} is cut off: {counted(cut, 'connection')} of the hub severed"
        assert event.restore is not None
        return await self._restore(event.restore)

    async def undo(self) -> None:
        """Bring back every killed worker, and let the hub reach all of them directly again."""
        for name in sorted(self._killed):
            await self._start(name)
        for name, led in [*self._led.items()]:
            await journaled.reach_directly(self._client, led.rerouted)
            self._journal.drop(rerouted=[led.rerouted])
            led.proxy.cut()
            del self._led[name]

    async def _kill(self, name: str) -> str:
        kubeconfig = self._federation.worker(name).kubeconfig
        self._journal.add(killed=[str(kubeconfig)])
        self._killed.add(name)
        ended = await outages.kill(kubeconfig)
        if not ended:
            raise LabError(f"the timeline kills {name}, of which nothing runs; see that it is killed once only")
        return f"{name} is killed: {', '.join(ended)}"

    async def _restore(self, name: str) -> str:
        begun = time.monotonic()
        if name in self._killed:
            await self._start(name)
        if (led := self._led.get(name)) is not None and led.cut:
            await self._mend(name, led)
        return f"{name} is back; it took {time.monotonic() - begun:.1f} s"

    async def _start(self, name: str) -> None:
        kubeconfig = self._federation.worker(name).kubeconfig
        await journaled.bring_back(kubeconfig)
        self._journal.drop(killed=[str(kubeconfig)])
        self._killed.discard(name)
        self._back[name] = self._now()
        self._started()

    async def _mend(self, name: str, led: _Led) -> None:
        try:
            await led.proxy.start()
        except OSError as error:
            raise LabError(
                f"the proxy to {name} cannot listen on {led.proxy.address} again: {error.strerror}; run it again"
            ) from None
        led.cut = False

    async def _lead(self, name: str) -> None:
        secret = f"/api/v1/namespaces/{self._federation.namespace}/secrets/{secret_name(name)}"
        server = await journaled.server_of(self._client, secret)
        found = urlsplit(server)
        if not found.hostname:
            raise JournalError(f"{secret} on the hub names no address of {name}; `pulumi up --refresh` writes it again")
        proxy = Proxy(found.hostname, found.port or 443)
        try:
            await proxy.start()
        except OSError as error:
            raise LabError(f"the proxy to {name} cannot listen: {error.strerror}; run it again") from None
        rerouted = Rerouted(secret, server, f"https://{proxy.address}")
        self._led[name] = _Led(rerouted, proxy)
        await journaled.reroute(self._client, self._journal, rerouted)
        await self._connected(name, proxy)

    async def _connected(self, name: str, proxy: Proxy) -> None:
        """Wait until the hub has connected through the proxy, and finds the worker active."""
        give_up = time.monotonic() + _CONNECT_S
        why = "it has not come by the proxy"
        while time.monotonic() < give_up:
            if proxy.taken:
                found = await self._client.get(f"{CLUSTERS}/{name}")
                conditions = (found.get("status") or {}).get("conditions") or ()
                for each in conditions:
                    if each.get("type") == "Active":
                        if each.get("status") == "True":
                            return
                        why = f"{each.get('reason')}: {each.get('message')}"
            await asyncio.sleep(_LOOK_EVERY)
        raise LabError(f"the hub is not connected with {name} by a proxy after {_CONNECT_S:.0f} s: {why}")
