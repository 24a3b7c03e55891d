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
    """A client of the control plane; the other arguments as for :class:`kube.Client`."""
    # Imported here: a plugin that only compares properties needs no HTTP library.
    from kumulus.kube import Client, load_kubeconfig

    return Client(load_kubeconfig(kubeconfig), patience=patience, request_timeout=request_timeout)


async def identity(kubeconfig: Path, patience: float) -> str:
    """UID of the kube-system namespace, once the API server is ready and has created it."""
    from kumulus.kube import objects

    # A slow server is asked a second time.
    async with client(kubeconfig, patience=patience, request_timeout=max(5.0, patience / 2)) as asked:
        deadline = time.monotonic() + patience
        while True:
            try:
                await asked.get("/readyz", patience=max(0.0, deadline - time.monotonic()))
                return await objects.identity(asked)
            except ApiError as error:
                # The namespace does not exist yet; or the server has just started and has not read its roles yet, one
                # of which gives kubeadm's administrator all permissions.
                if error.status not in (403, 404) or time.monotonic() > deadline:
                    raise
                await asyncio.sleep(0.05)
