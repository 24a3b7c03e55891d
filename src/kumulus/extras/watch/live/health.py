"""The health of the control plane: what its components answer to Kubernetes' own probes.

Components do not report their health by themselves, so unlike all else here, it is polled every few seconds.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Literal

from kumulus.kube import ApiError, Client, Unreachable

INTERVAL = 5.0
"""Seconds between two checks."""

API_SERVER, ETCD = "kube-apiserver", "etcd"
_TIMEOUT = 3.0
_FAILED = "[-]"
_LEADERS = ("kube-scheduler", "kube-controller-manager")
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"


@dataclass(frozen=True)
class HealthCheck:
    """The health of a component."""

    status: Literal["ok", "failing", "down"]
    """``ok``, ``failing`` (it answers that it is not well) or ``down`` (no answer)."""
    detail: str = ""


async def look(client: Client, endpoints: Mapping[str, str]) -> dict[str, HealthCheck]:
    """Check the API server and, through it, etcd; and the other components.

    Args:
        endpoints: addresses of health checks by component, on this machine; if there are none, the scheduler and the
            controller manager are judged by their leaders' leases.
    """
    asked: dict[str, Awaitable[HealthCheck | None]] = {name: _endpoint(address) for name, address in endpoints.items()}
    if not endpoints:
        asked = {name: _leader(client, name) for name in _LEADERS}
    server, others = await asyncio.gather(_api_server(client), asyncio.gather(*asked.values()))
    return server | {name: check for name, check in zip(asked, others, strict=True) if check is not None}


async def _api_server(client: Client) -> dict[str, HealthCheck]:
    """Parse ``/readyz?verbose``: a line for each check, ``[+]etcd ok`` or ``[-]etcd failed: reason withheld``."""
    try:
        answer = await client.request("GET", "/readyz", params={"verbose": "1"}, patience=_TIMEOUT, decode=bytes.decode)
    except Unreachable as error:
        return {
            API_SERVER: HealthCheck("down", error.detail),
            ETCD: HealthCheck("down", "not known without the API server"),
        }
    except ApiError as error:
        if error.status in (401, 403):
            return {API_SERVER: HealthCheck("ok", "its checks are not for this user")}
        answer = error.message
    failed = [line.removeprefix(_FAILED).split(" ")[0] for line in answer.splitlines() if line.startswith(_FAILED)]
    etcd = [name for name in failed if name.startswith("etcd")]
    others = [name for name in failed if name not in etcd]
    return {API_SERVER: _failing(others), ETCD: _failing(etcd)}


def _failing(names: Sequence[str]) -> HealthCheck:
    return HealthCheck("failing", f"failing: {', '.join(names)}") if names else HealthCheck("ok")


async def _leader(client: Client, name: str) -> HealthCheck | None:
    """A leader's health by its lease, which it renews every two seconds; None if no lease can be read.

    Source: k8s.io/client-go/tools/leaderelection.
    """
    try:
        lease = await client.get(f"{_LEASES}/{name}", patience=_TIMEOUT)
    except (ApiError, Unreachable):
        return None
    spec = lease.get("spec") or {}
    renewed, lasts = spec.get("renewTime"), spec.get("leaseDurationSeconds") or 15
    if not renewed:
        return None
    silent = (_now(client.date) - datetime.fromisoformat(renewed)).total_seconds()
    return (
        HealthCheck("ok") if silent <= lasts + INTERVAL else HealthCheck("failing", f"its lease is {silent:.0f} s old")
    )


def _now(date: str) -> datetime:
    """The cluster's clock, which may differ from this machine's."""
    try:
        return parsedate_to_datetime(date).replace(tzinfo=UTC)
    except ValueError:
        return datetime.now(UTC)


async def _endpoint(address: str) -> HealthCheck:
    # Imported when asked for: an experiment's run, which asks no endpoint, starts a tenth of a second sooner.
    import aiohttp

    # Only addresses on this machine; the components' certificates are self-signed.
    trusting = ssl.create_default_context()
    trusting.check_hostname = False
    trusting.verify_mode = ssl.CERT_NONE
    limits = aiohttp.ClientTimeout(total=_TIMEOUT)
    try:
        async with (
            aiohttp.ClientSession(timeout=limits) as session,
            session.get(address, ssl=trusting) as answer,
        ):
            text = (await answer.text()).strip()
            return (
                HealthCheck("ok")
                if answer.status == 200
                else HealthCheck("failing", text.splitlines()[0] if text else "")
            )
    except TimeoutError:
        return HealthCheck("down", f"silent for {_TIMEOUT:.0f} s")
    except (aiohttp.ClientError, OSError):
        return HealthCheck("down", "does not answer")
