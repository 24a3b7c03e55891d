"""What the running kwok-controller of a cluster writes into the leases of new nodes, learned from one of them.

A controller holds leases under a name that it draws at its start and reports nowhere else (v0.8.0,
pkg/kwok/cmd/root.go). So one node is posted, and its lease is read, which the controller makes at once.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from kumulus.kube import ApiError
from kumulus.kube.media import PROTOBUF
from kumulus.kube.stored_lease import StoredLeases
from kumulus.nodes.faults.leases import HOLDER, LEASES
from kumulus.runtimes.kwok.layout import Layout

if TYPE_CHECKING:
    from kumulus.kube import Client
    from kumulus.nodes.pools.through_storage import Post

# A controller that takes longer is behind, or does not run: it then makes the leases itself later.
_PATIENCE_S, _PAUSE_S = 2.0, 0.02


class LeaseHolder:
    """Knows the leases of one cluster's kwok-controller.

    Args:
        layout: the cluster.
    """

    def __init__(self, layout: Layout) -> None:
        self._pid_file = layout.directory / "pids" / "kwok-controller.pid"
        self._layout = layout
        self._learning = asyncio.Lock()
        self._known: tuple[str, StoredLeases | None] | None = None

    async def leases(self, client: Client, post: Post) -> StoredLeases | None:
        """See :meth:`kumulus.nodes.pools.through_storage.Storage.leases`."""
        # A stack's pools are made at the same moment: the first one posts a node for all.
        async with self._learning:
            # A restarted controller has another name, and would wait for leases under the old one to expire.
            controller = self._layout.text(self._pid_file)
            if not controller:
                return None
            if self._known is None or self._known[0] != controller:
                self._known = controller, await _learned(client, await post())
            return self._known[1]


async def _learned(client: Client, node: str) -> StoredLeases | None:
    """Leases like that of a node that was just posted; None if it gets none from KWOK in time."""
    give_up = time.monotonic() + _PATIENCE_S
    while time.monotonic() < give_up:
        try:
            answer = await client.request("GET", f"{LEASES}/{node}", accept=PROTOBUF, decode=bytes)
        except ApiError as error:
            if error.status != 404:
                raise
            await asyncio.sleep(_PAUSE_S)
            continue
        found = StoredLeases(bytes(answer))
        return found if found.is_new and found.holder not in ("", HOLDER, node) else None
    return None
