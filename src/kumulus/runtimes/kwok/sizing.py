"""The settings of a new cluster's components that depend on the size of its fleet.

The size is the one at the cluster's creation: a fleet that grows in place keeps the settings its cluster was made with.
Where it is not known, as for a cluster that a program declares by itself, they are those that fit most clusters.
"""

import os
from collections.abc import Mapping
from typing import Any

from kumulus.host import machine
from kumulus.model.scale import API_SERVER_SHARE, LEASE_S, SMALL_FLEET, default_heartbeat_factor
from kumulus.runtimes.kwok.access import API_SERVER

# Go's variable for how much a heap may grow before garbage is collected, in percent; 100 by default.
_GROWTH = "GOGC"
# A control plane that takes in a fleet grows all the time: letting it grow threefold instead of twofold costs memory
# and saves a fifth of the CPU time (docs/performance.md).
_USUAL = {_GROWTH: "200"}
# The API server's heap may grow fivefold, as long as it takes less than a fifth of the machine's memory: this creates
# a fleet faster, and a large one does not use up the memory.
_OF_API_SERVER = {_GROWTH: "400", "GOMEMLIMIT": str(int(machine.memory_bytes() * API_SERVER_SHARE))}
# With tens of thousands of nodes, a heap of three times the size is more than the machine can spare, and little is
# allocated once they exist. So the controllers that keep every node collect before they exceed a twelfth of the memory.
# They always get what they need: kwok-controller keeps 25 KB of a node.
_KEEPING_ALL = ("kwok-controller", "kube-controller-manager")
_MOST_BYTES_OF_A_CONTROLLER, _BYTES_OF_A_NODE = machine.memory_bytes() // 12, 32_000
# The components of a small cluster keep little compared to what they allocate at their start. Collecting sooner saves
# memory, and costs the API server half a second of CPU at its start (docs/scale.md). Whoever has the memory and wants
# the CPU sets Go's own variable.
_GROWTH_OF_SMALL = "50"
# Renewals at once. Nothing waits for leases: with more, the API server would only create nodes more slowly.
_RENEWALS, _RENEWALS_OF_MANY = 8, 4
# kwok-controller begins each watch of the leases with all of them (sigs.k8s.io/kwok v0.8.0, pkg/utils/informer/event.go
# sets resourceVersion 0), and the API server ends a watch that is a hundred changes behind. With tens of thousands of
# leases, more than a hundred were renewed while they were sent, and the watch began again, twice a second.
_MANY = 20_000
# After how long a node without a renewal counts as lost, with a heartbeat factor of 1: one and a half intervals. Where
# renewals are rarer than kwokctl's, its four intervals would notice a silent kubelet only after 1,600 s.
_LOST_AFTER_S = 1.5 * LEASE_S / 4


def environment(component: str, nodes: int | None) -> dict[str, str]:
    """Environment variables of a component, in a cluster made for so many nodes, if that is known."""
    found = dict(_OF_API_SERVER if component == API_SERVER else _USUAL)
    if nodes is None:
        return found
    if component in _KEEPING_ALL:
        found["GOMEMLIMIT"] = str(max(_MOST_BYTES_OF_A_CONTROLLER, nodes * _BYTES_OF_A_NODE))
    if nodes <= SMALL_FLEET:
        users = os.environ.get(_GROWTH, "")
        found[_GROWTH] = users if users.isdecimal() else _GROWTH_OF_SMALL
    return found


def heartbeat_factor(options: Mapping[str, Any], nodes: int | None) -> float | None:
    """The factor by which kwokctl multiplies the leases' duration: the stack's, or by nodes; None for its default."""
    if options.get("heartbeatFactor"):
        return float(options["heartbeatFactor"])
    found = default_heartbeat_factor(nodes or 0)
    return None if found == default_heartbeat_factor(0) else float(found)


def lease_parallelism(nodes: int | None) -> int:
    """How many leases kwok-controller renews at once."""
    return _RENEWALS_OF_MANY if (nodes or 0) > _MANY else _RENEWALS


def flags(options: Mapping[str, Any], nodes: int | None) -> dict[str, dict[str, str]]:
    """The flag for how long the controller manager waits for renewals, by component.

    It is needed where the number of nodes makes renewals rarer than kwokctl's.
    """
    factor = heartbeat_factor({}, nodes)
    if options.get("heartbeatFactor") or factor is None:
        return {}
    return {"kube-controller-manager": {"node-monitor-grace-period": f"{_LOST_AFTER_S * factor:.0f}s"}}
