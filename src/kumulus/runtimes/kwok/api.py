"""The API server of a control plane on this machine: wait for it, ask it, and say why it does not answer."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from kumulus.cluster.errors import ProviderError
from kumulus.cluster.reporter import Reporter
from kumulus.host import processes
from kumulus.kube import ApiError, KubeconfigError, Unreachable
from kumulus.runtimes import apiserver
from kumulus.runtimes.kwok.layout import Layout

if TYPE_CHECKING:
    from kumulus.kube import Client

_START_TIMEOUT = 90.0
SERVING = ("etcd", "kube-apiserver")
"""The components without which nothing answers."""


def client(layout: Layout, *, patience: float = 60.0) -> Client:
    """A client of the control plane; ``patience`` as for :class:`kube.Client`."""
    return apiserver.client(layout.kubeconfig, patience=patience)


async def answering(layout: Layout, report: Reporter) -> str:
    """Wait until the API server is ready and return the cluster's identity; give up when it or etcd has died.

    Raises:
        ProviderError: it does not become ready; with the end of the log that says why.
    """
    deadline = time.monotonic() + _START_TIMEOUT
    while True:
        try:
            return await apiserver.identity(layout.kubeconfig, patience=1.0)
        except (ApiError, Unreachable, KubeconfigError) as error:
            alive = processes.running(layout.directory)
            dead = [name for name in SERVING if name not in alive]
            if dead:
                raise ProviderError(explain(layout, f"{dead[0]} of cluster {layout.name} ended")) from None
            if time.monotonic() > deadline:
                raise ProviderError(explain(layout, f"the API server is not ready: {error}")) from None
            report.status("waiting for the API server")


def explain(layout: Layout, message: str) -> str:
    """Add the last log lines of components that are not running: that is where the reason stands."""
    if "log of" in message:
        return message
    alive = processes.running(layout.directory)
    for name in layout.components():
        if name not in alive and (tail := layout.log_tail(name)):
            return f"{message}\n  last lines of the log of {name}:\n{tail}"
    return message


def failing(layout: Layout, error: ApiError | Unreachable) -> ProviderError:
    """What to raise when the API server refuses what it should not, or is gone."""
    return ProviderError(explain(layout, f"the API server of cluster {layout.name} fails: {error}"))
