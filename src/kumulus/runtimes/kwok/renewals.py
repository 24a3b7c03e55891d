"""Whether kwok-controller renews the nodes' leases; KWOK 0.8.0 can stop renewing them for good while it still runs.

For the reason, see docs/decisions/kwok-leases.md. A new kwok-controller begins with a new queue.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from kumulus.host import processes
from kumulus.kube import ApiError, KubeconfigError, Unreachable
from kumulus.nodes.faults import leases
from kumulus.runtimes import apiserver
from kumulus.runtimes.kwok.layout import Layout

if TYPE_CHECKING:
    from kumulus.kube import Client

CONTROLLER = "kwok-controller"
_NEEDED = ("etcd", "kube-apiserver", CONTROLLER)
# Either all of a cluster's leases are no longer renewed, or none.
_LOOKED_AT = 100
_PATIENCE = 2.0
# KWOK renews a lease after a quarter of its duration, give or take 4 % (pkg/kwok/controllers/controller.go), and looks
# at its clock every 10 s (pkg/utils/queue): after a machine has slept, it resumes within that time.
_INTERVAL = 0.3
_SECOND_LOOK = 12.0


async def stuck_since(layout: Layout, programs: Mapping[str, Sequence[int]]) -> datetime | None:
    """Since when kwok-controller has renewed no lease, though it could have; None where it renews them.

    If leases have expired, this takes twelve seconds; otherwise one request.
    """
    if not all(programs.get(name) for name in _NEEDED):
        return None
    try:
        async with apiserver.client(layout.kubeconfig, patience=_PATIENCE) as client:
            first = await _kwoks_leases(client)
            if not (ended := expired(first, datetime.now(UTC))):
                return None
            # Leases that expired while the API server was down are renewed one by one.
            longest = max(lasts for _, lasts in ended.values())
            if processes.youngest(programs[name][0] for name in _NEEDED) < _INTERVAL * longest + _SECOND_LOOK:
                return None
            give_up = time.monotonic() + _SECOND_LOOK
            while time.monotonic() < give_up:
                await asyncio.sleep(0.5)
                now = await _kwoks_leases(client)
                if any(name not in now or now[name] != seen for name, seen in ended.items()):
                    return None
    except (ApiError, Unreachable, KubeconfigError):
        return None  # the next request finds that out
    return max(renewed for renewed, _ in ended.values())


def expired(renewals: Mapping[str, tuple[datetime, float]], now: datetime) -> dict[str, tuple[datetime, float]]:
    """The leases that have expired, if most have; a controller that is only late has few such.

    Args:
        renewals: when each was renewed, and for how many seconds.
    """
    found = {name: seen for name, seen in renewals.items() if (now - seen[0]).total_seconds() > seen[1]}
    return found if len(found) * 2 > len(renewals) else {}


async def _kwoks_leases(client: Client) -> dict[str, tuple[datetime, float]]:
    """KWOK's leases among the first of the list: not free, nor held by a fault or by a real node's kubelet."""
    listed = await client.get(leases.LEASES, params={"limit": str(_LOOKED_AT)})
    found = {}
    for lease in listed["items"]:
        name, spec = lease["metadata"]["name"], lease.get("spec") or {}
        if spec.get("holderIdentity") in (None, "", leases.HOLDER, name):
            continue
        if seen := _renewed(spec):
            found[name] = seen
    return found


def _renewed(spec: Mapping[str, Any]) -> tuple[datetime, float] | None:
    try:
        return datetime.fromisoformat(str(spec["renewTime"])), float(spec["leaseDurationSeconds"])
    except (KeyError, TypeError, ValueError):
        return None
