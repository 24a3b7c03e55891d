"""The API server's own count of bindings, to check the measured ones against."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kumulus.kube import ApiError, Unreachable

if TYPE_CHECKING:
    from kumulus.kube import Client

_BINDINGS = re.compile(
    r'^apiserver_request_total\{code="2\d\d",[^}]*resource="pods",[^}]*subresource="binding",[^}]*\} (\S+)$',
    re.MULTILINE,
)


def bindings(metrics: str) -> int:
    """How many pods were bound since the API server's start, according to its metrics."""
    return round(sum(float(count) for count in _BINDINGS.findall(metrics)))


async def count(client: Client, patience: float | None = None) -> int | None:
    """Ask the API server; None if it does not give us its metrics.

    Args:
        client: of the cluster.
        patience: seconds to wait for its answer; the client's own when None.
    """
    try:
        return bindings(await client.get("/metrics", patience=patience))
    except (ApiError, Unreachable):
        return None
