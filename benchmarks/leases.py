"""What an idle large fleet costs: with kwokctl's leases and with those for its size, side by side in one run.

A round of these takes 400 s, and several are needed. So both sides have a fifth of the nodes with leases a fifth as
long: as many renewals a second, in less time.
"""

import asyncio
import os

from benchmarks.control_plane import ControlPlane, control_plane
from benchmarks.fleet import Fleet
from benchmarks.report import Row
from benchmarks.usage import requests, usage
from kumulus.model.scale import LEASE_S, default_heartbeat_factor

_NODES = int(os.environ.get("KUMULUS_BENCH_LEASES", "10000"))
_SHARE = 5
_FACTOR, _BEFORE = default_heartbeat_factor(_NODES), default_heartbeat_factor(0)
# Two rounds of the less frequent renewals.
_WINDOW_S = 2 * _FACTOR / _SHARE * LEASE_S / 4
_SETTLING_S = 15.0


async def standing() -> list[Row]:
    """Two fleets on one machine at once, so that the machine's other work affects both."""
    async with (
        control_plane("bench", {"heartbeatFactor": _BEFORE // _SHARE}) as before,
        control_plane("bench", {"heartbeatFactor": _FACTOR // _SHARE}) as now,
    ):
        fleets = [Fleet(plane) for plane in (before, now)]
        for fleet in fleets:
            await fleet.become(_NODES // _SHARE)
            await fleet.until_ready(_NODES // _SHARE)
        await asyncio.sleep(_SETTLING_S)
        found = await asyncio.gather(_spent(before), _spent(now))
        for fleet in fleets:
            # Raises an error unless all of them have stayed Ready.
            await asyncio.wait_for(fleet.until_ready(_NODES // _SHARE), 30)
            await fleet.close()
    (old, old_renewals), (new, new_renewals) = found
    return [
        Row(
            f"the lease renewals of {_NODES:,} nodes that stand",
            "at most a quarter of the CPU that those of kwokctl's leases take",
            f"{new:.2f} cores and {new_renewals:.0f} renewals/s, where kwokctl's leases take {old:.2f} and "
            f"{old_renewals:.0f}: {new / old:.2f} of the CPU",
            new <= old / 4,
            {"cores": new, "cores_before": old, "renewals": new_renewals, "renewals_before": old_renewals},
        )
    ]


async def _spent(plane: ControlPlane) -> tuple[float, float]:
    """Cores and renewals a second of a control plane, over a window."""
    directory = plane.observed.directory
    counted, resting = await requests(plane.client), usage(directory)
    await asyncio.sleep(_WINDOW_S)
    after, then = await requests(plane.client), usage(directory)
    cores = sum(then.cpu_since(resting).values()) / _WINDOW_S
    return cores, (after["PUT leases 200"] - counted["PUT leases 200"]) / _WINDOW_S
