"""The API server of a cluster by its kubeconfig: a client of it, and the cluster's identity."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING

from kumulus.kube import ApiError

if TYPE_CHECKING:
    from kumulus.kube import Client


def client(kubeconfig: Path, *, patience: float = 60.0, request_timeout: float = 30.0) -> Client:
    """A client of the control plane; the other arguments, both in seconds, as for :class:`kube.Client`."""
    # Imported here: a plugin that only compares properties needs no HTTP library.
    from kumulus.kube import Client, load_kubeconfig

    return Client(load_kubeconfig(kubeconfig), patience=patience, request_timeout=request_timeout)


async def identity(kubeconfig: Path, patience: float) -> str:
    """UID of the kube-system namespace, once the API server is ready and has created it.

    Waits for ``patience`` seconds; raises ApiError, Unreachable or KubeconfigError if it is not known by then.
    """
    from kumulus.kube import objects

    # Half of the time for one request, so that a slow server is asked a second time.
    request_timeout = max(5.0, patience / 2)
    async with client(kubeconfig, patience=patience, request_timeout=request_timeout) as server:
        deadline = time.monotonic() + patience
        while True:
            try:
                await server.get("/readyz", patience=max(0.0, deadline - time.monotonic()))
                return await objects.identity(server)
            except ApiError as error:
                # The namespace does not exist yet; or the server has just started and has not read its roles yet, one
                # of which gives kubeadm's administrator all permissions.
                if error.status not in (403, 404) or time.monotonic() > deadline:
                    raise
                await asyncio.sleep(0.05)
