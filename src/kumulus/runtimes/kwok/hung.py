"""Find components that run but do not work: stopped by a signal, silent, or stuck. Only a restart helps them.

That includes a kwok-controller that renews no node's lease: KWOK 0.8.0 can stop renewing them for good while it still
runs. For the reason, see docs/decisions/kwok-leases.md. A new kwok-controller begins with a new queue.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from kumulus.host import processes
from kumulus.kube import ApiError, KubeconfigError, Unreachable
from kumulus.nodes.faults import leases
from kumulus.nodes.reporter import Reporter
from kumulus.runtimes import apiserver
from kumulus.runtimes.kwok import access
from kumulus.runtimes.kwok.api import SERVING
from kumulus.runtimes.kwok.layout import Layout

if TYPE_CHECKING:
    from kumulus.kube import Client

# An API server that is only busy, or whose etcd has just come back, answers within this time.
_SILENCE_S = 15.0
_ETCD_SILENCE_S = 5.0
# How long an API server may take to become ready: on a busy machine, and where waiting does not help.
_BUSY_S = 30.0
_HOPELESS_S = 2.0


def useless(layout: Layout, programs: Mapping[str, Sequence[int]]) -> dict[str, str]:
    """The running programs that cannot work, each with the reason; the programs are pids by component.

    A suspended etcd or API server is not among them: :func:`end_hung` finds those by asking.
    """
    orphaned, suspended = processes.orphaned(layout.directory, programs), processes.suspended(programs)
    found = {}
    for name, pids in programs.items():
        if orphaned.intersection(pids):
            found[name] = f"was started in a folder that is no longer at {layout.directory}"
        elif suspended.intersection(pids) and name not in SERVING:
            found[name] = "was stopped by a signal"
    return found


def patience(layout: Layout, programs: Mapping[str, Sequence[int]]) -> float:
    """Seconds that an API server may take to say that it is ready before the cluster counts as degraded.

    If it and etcd work, the machine may just be busy; if not, waiting does not help.
    """
    suspended = processes.suspended(programs)
    running = {name for name, pids in programs.items() if not suspended.intersection(pids)}
    working = running - useless(layout, programs).keys()
    return _BUSY_S if working.issuperset(SERVING) else _HOPELESS_S


async def end_stuck(layout: Layout, report: Reporter) -> None:
    """End a kwok-controller that no longer renews leases."""
    alive = processes.running(layout.directory)
    if since := await stuck_since(layout, alive):
        pids = alive[CONTROLLER]
        why = f"runs (pid {pids[0]}) but has renewed no node's lease since {since:%H:%M:%S} UTC"
        _end(CONTROLLER, pids, why, layout, report)


def end_useless(layout: Layout, report: Reporter) -> None:
    """End the components that run but cannot do their work, so that they are restarted."""
    alive = processes.running(layout.directory)
    found = useless(layout, alive)
    if "etcd" not in alive and "kube-apiserver" in alive:
        # gRPC's pauses grow (MaxDelay of google.golang.org/grpc/backoff), and a new etcd does not cut them short.
        found["kube-apiserver"] = "has lost etcd, and may try again only after two minutes"
    for name, why in found.items():
        _end(name, alive[name], f"{why} (pid {alive[name][0]})", layout, report)


async def end_hung(layout: Layout, report: Reporter) -> None:
    """End an API server or an etcd that has not answered for a while; their data survive it, like any crash."""
    alive = processes.running(layout.directory)
    if not alive.keys() >= set(SERVING):
        return
    trouble = await _trouble(layout, report)
    if trouble is None:
        return
    silent = [] if await _etcd_answers(layout) else ["etcd"]
    if isinstance(trouble, Unreachable):
        silent.append("kube-apiserver")
    for name in silent:
        why = f"runs (pid {alive[name][0]}) but has not answered for {_SILENCE_S:.0f} s"
        _end(name, alive[name], why, layout, report)


def _end(name: str, pids: list[int], why: str, layout: Layout, report: Reporter) -> None:
    report.warn(f"{name} of cluster {layout.name} {why}: it is stopped and restarted")
    processes.end(pids)


async def _trouble(layout: Layout, report: Reporter) -> ApiError | Unreachable | None:
    """What has kept the API server from being ready for a while; None when it is ready."""
    # Imported here: a plugin that only compares properties needs no HTTP library.
    from kumulus.kube import Client, load_kubeconfig

    try:
        connection = load_kubeconfig(layout.kubeconfig)
    except KubeconfigError:
        return None
    async with Client(connection, request_timeout=3.0) as client:
        try:
            await client.get("/readyz", patience=1.0)
            return None
        except (ApiError, Unreachable):
            report.status(f"the API server does not answer; waiting up to {_SILENCE_S:.0f} s for it")
        try:
            await client.get("/readyz", patience=_SILENCE_S)
        except (ApiError, Unreachable) as error:
            return error
    return None


async def _etcd_answers(layout: Layout) -> bool:
    """Whether etcd answers; True if it cannot be asked."""
    from kumulus.kube import Client

    try:
        found = access.connection(layout.directory / "pki", f"https://127.0.0.1:{layout.ports().get(access.ETCD)}")
    except OSError:
        return True  # its certificates are gone
    async with Client(found, request_timeout=2.0) as client:
        try:
            await client.get("/health", patience=_ETCD_SILENCE_S)
        except (ApiError, Unreachable):
            return False
    return True


CONTROLLER = "kwok-controller"
_NEEDED = (*SERVING, CONTROLLER)
# How many leases are looked at: either all of a cluster's are no longer renewed, or none.
_LOOKED_AT = 100
_LEASES_S = 2.0
# The part of a lease's duration after which KWOK has renewed it: a quarter, give or take 4 %
# (pkg/kwok/controllers/controller.go).
_RENEWED_AFTER = 0.3
# KWOK looks at its clock every 10 s (pkg/utils/queue): after a machine has slept, it resumes within this time.
_SECOND_LOOK_S = 12.0


async def stuck_since(layout: Layout, programs: Mapping[str, Sequence[int]]) -> datetime | None:
    """Since when kwok-controller has renewed no lease, though it could have; None where it renews them.

    If leases have expired, this takes twelve seconds; otherwise one request.
    """
    if not all(programs.get(name) for name in _NEEDED):
        return None
    try:
        async with apiserver.client(layout.kubeconfig, patience=_LEASES_S) as client:
            first = await _kwoks_leases(client)
            if not (ended := expired(first, datetime.now(UTC))):
                return None
            # Leases that expired while the API server was down are renewed one by one.
            longest = max(lasts for _, lasts in ended.values())
            age = processes.youngest(programs[name][0] for name in _NEEDED)
            if age < _RENEWED_AFTER * longest + _SECOND_LOOK_S:
                return None
            give_up = time.monotonic() + _SECOND_LOOK_S
            while time.monotonic() < give_up:
                await asyncio.sleep(0.5)
                now = await _kwoks_leases(client)
                if any(now.get(name) != then for name, then in ended.items()):
                    return None
    except (ApiError, Unreachable, KubeconfigError):
        return None  # the next request finds that out
    return max(renewed for renewed, _ in ended.values())


def expired(renewals: Mapping[str, tuple[datetime, float]], now: datetime) -> dict[str, tuple[datetime, float]]:
    """The leases that have expired, if most have: a controller that is only late has few.

    Both mappings have the last renewal of each lease, and its duration in seconds.
    """
    found = {
        name: (renewed, lasts) for name, (renewed, lasts) in renewals.items() if (now - renewed).total_seconds() > lasts
    }
    return found if len(found) * 2 > len(renewals) else {}


async def _kwoks_leases(client: Client) -> dict[str, tuple[datetime, float]]:
    """KWOK's leases among the first of the list: not free, nor held by a fault or by a real node's kubelet."""
    listed = await client.get(leases.LEASES, params={"limit": str(_LOOKED_AT)})
    found = {}
    for lease in listed["items"]:
        name, spec = lease["metadata"]["name"], lease.get("spec") or {}
        if spec.get("holderIdentity") in (None, "", leases.HOLDER, name):
            continue
        with suppress(KeyError, TypeError, ValueError):
            found[name] = datetime.fromisoformat(str(spec["renewTime"])), float(spec["leaseDurationSeconds"])
    return found
