"""One API client per cluster for the whole plugin, so that pools updated in parallel share its connections."""

from __future__ import annotations

import asyncio
import os
import time
from collections import defaultdict
from typing import TYPE_CHECKING

from kumulus.kube import ApiError, KubeconfigError, Unreachable
from kumulus.nodes.errors import ProviderError
from kumulus.provider.settings import LastPlace
from kumulus.runtimes.existing.source import refresh

if TYPE_CHECKING:
    from kumulus.kube import Client
    from kumulus.kube.config import Connection

# For so long, a cluster that was found silent is not asked again.
_SILENCE_S = 5.0


class WrongCluster(Exception):
    """Another cluster answers at the address of the recorded one."""


GONE = (KubeconfigError, WrongCluster)
"""A cluster that no longer exists: its kubeconfig was deleted with it, or another cluster answers in its place."""
SILENT = (ApiError, Unreachable)
"""A cluster that does not answer, or not as it should: it may be down, and its recorded state stays valid."""
UNASKED = (*GONE, *SILENT)
"""A cluster that could not be asked, for one reason or the other."""


class Connections:
    """Clients by kubeconfig path; a rewritten kubeconfig (a replaced cluster) gets a new client."""

    def __init__(self, place: LastPlace | None = None) -> None:
        self._place = place
        # Each with the time at which its kubeconfig was written.
        self._clients: dict[str, tuple[float, Client]] = {}
        self._former: list[Client] = []
        self._identities: dict[Client, str] = {}
        # When a cluster was found silent, after how much patience, and with which error.
        self._silent: dict[str, tuple[float, float, Unreachable]] = {}
        self._foreseen: dict[str, Connection] = {}
        # One for each cluster: those that answer do not wait for one that does not.
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def foresee(self, kubeconfig: str, connection: Connection) -> None:
        """In a preview, set how to reach a cluster whose kubeconfig is not written yet."""
        self._foreseen[kubeconfig] = connection

    async def client(self, kubeconfig: str, identity: str, patience: float) -> Client:
        """Return the client of a cluster after verifying its identity, the UID of its kube-system namespace.

        Raises:
            WrongCluster: another cluster answers there.
        """
        # Imported here: a plugin that only compares properties needs no HTTP library.
        from kumulus.kube import Client, load_kubeconfig, objects

        asked = time.monotonic()
        async with self._locks[kubeconfig]:
            refresh(kubeconfig)
            written, foreseen = self._written(kubeconfig)
            known_written, client = self._clients.get(kubeconfig, (None, None))
            if client is None or written != known_written:
                if client is not None:
                    # A login tool may rewrite a kubeconfig at any time, and other pools may be using the old client.
                    self._former.append(client)
                client = Client(foreseen or load_kubeconfig(kubeconfig))
                self._clients[kubeconfig] = (written, client)
            self._fail_fast(kubeconfig, patience, asked)
            if self._identities.get(client) != identity:
                try:
                    self._identities[client] = await objects.identity(client, patience)
                except Unreachable as error:
                    self._silent[kubeconfig] = (time.monotonic(), patience, error)
                    raise
                self._silent.pop(kubeconfig, None)
        actual = self._identities[client]
        if actual != identity:
            raise WrongCluster(f"another cluster (identity {actual}) answers in place of {identity}")
        return client

    def _written(self, kubeconfig: str) -> tuple[float, Connection | None]:
        """When a kubeconfig was written; or how to reach its cluster until it is."""
        try:
            return os.stat(kubeconfig).st_mtime, None
        except OSError:
            if foreseen := self._foreseen.get(kubeconfig):
                return 0.0, foreseen
            if self._place and (why := self._place.elsewhere(kubeconfig)):
                raise ProviderError(
                    f"{kubeconfig} is not here: {why}; the message about the cluster says what to do"
                ) from None
            raise KubeconfigError(f"kubeconfig {kubeconfig} does not exist") from None

    def _fail_fast(self, kubeconfig: str, patience: float, asked: float) -> None:
        """Fail at once if the cluster was just found silent, so that its pools do not wait one after another.

        Args:
            asked: when the caller began to wait for its look at the cluster.
        """
        if kubeconfig not in self._silent:
            return
        found, waited, error = self._silent[kubeconfig]
        if patience > waited:
            return
        while_waiting = found >= asked
        # Who has more patience than that asks again.
        lately = patience <= _SILENCE_S and time.monotonic() - found < _SILENCE_S
        if while_waiting or lately:
            raise error

    async def close(self) -> None:
        """Close every client."""
        for client in [*self._former, *(client for _, client in self._clients.values())]:
            await client.close()
        self._former.clear()
        self._clients.clear()
