"""The settings of a new cluster's components that depend on the size of its fleet.

The size is the one at the cluster's creation: a fleet that grows in place keeps the settings its cluster was made with.
Where it is not known, as for a cluster that a program declares by itself, they are those that fit most clusters.
"""

import os
from collections.abc import Mapping
from typing import Any

from kumulus.host import machine
from kumulus.model.scale import API_SERVER_SHARE, LEASE_S, SMALL_FLEET, default_heartbeat_factor

_API_SERVER = "kube-apiserver"
# Go collects garbage each time the heap has doubled. A control plane that takes in a fleet grows all the time: letting
# it grow threefold instead costs memory and saves a fifth of the CPU time (docs/performance.md).
_GARBAGE_COLLECTION = {"GOGC": "200"}
# The API server's heap may grow fivefold, as long as it takes less than a fifth of the machine's memory: this creates
# a fleet faster, and a large one does not use up the memory.
_API_SERVER_GARBAGE_COLLECTION = {"GOGC": "400", "GOMEMLIMIT": str(int(machine.memory_bytes() * API_SERVER_SHARE))}
# With tens of thousands of nodes, that is more than the machine can spare, and little is allocated once they exist. So
# the controllers that keep every node collect before they exceed this share of the memory; they always get what they
# need: kwok-controller keeps 25 KB of a node.
_KEEPING_ALL = ("kwok-controller", "kube-controller-manager")
_MOST_OF_A_CONTROLLER, _KEPT_OF_A_NODE = machine.memory_bytes() // 12, 32_000
# The components of a small cluster keep little compared to what they allocate at their start, and collecting more often
# costs the API server half a second of CPU at its start (docs/scale.md). Whoever has the memory and wants the CPU sets
# Go's own variable.
_OF_SMALL, _VARIABLE = "50", "GOGC"
# Renewals at once. Nothing waits for leases: with more, the API server would only create nodes more slowly.
_RENEWALS, _RENEWALS_OF_MANY = 8, 4
# kwok-controller begins each watch of the leases with all of them (sigs.k8s.io/kwok v0.8.0, pkg/utils/informer/event.go
# sets resourceVersion 0), and the API server ends a watch that is a hundred changes behind. With tens of thousands of
# leases, more than a hundred were renewed while they were sent, and the watch began again, twice a second.
_MANY = 20_000
# Seconds, by heartbeat factor, after which a node without a renewal counts as lost, where renewals are rarer than
# kwokctl's: one and a half intervals. kwokctl waits for four, and would notice a silent kubelet after 1,600 s.
_PATIENCE = 1.5 * LEASE_S / 4


def environment(component: str, nodes: int | None) -> dict[str, str]:
    """Environment variables of a component, in a cluster made for so many nodes, if that is known."""
    found = _API_SERVER_GARBAGE_COLLECTION if component == _API_SERVER else _GARBAGE_COLLECTION
    if nodes is None:
        return found
    if component in _KEEPING_ALL:
        found = {**found, "GOMEMLIMIT": str(max(_MOST_OF_A_CONTROLLER, nodes * _KEPT_OF_A_NODE))}
    own = os.environ.get(_VARIABLE, "")
    return {**found, _VARIABLE: own if own.isdecimal() else _OF_SMALL} if nodes <= SMALL_FLEET else found


def heartbeat_factor(options: Mapping[str, Any], nodes: int | None) -> float | None:
    """The factor by which kwokctl multiplies the leases' duration; None for its own default."""
    if options.get("heartbeatFactor"):
        return float(options["heartbeatFactor"])
    found = default_heartbeat_factor(nodes or 0)
    return None if found == default_heartbeat_factor(0) else float(found)


def lease_parallelism(nodes: int | None) -> int:
    """How many leases kwok-controller renews at once."""
    return _RENEWALS_OF_MANY if (nodes or 0) > _MANY else _RENEWALS


def flags(options: Mapping[str, Any], nodes: int | None) -> dict[str, dict[str, str]]:
    """The flag for how long the controller manager waits for renewals that are rarer than kwokctl's, by component."""
    factor = heartbeat_factor({}, nodes)
    if options.get("heartbeatFactor") or factor is None:
        return {}
    return {"kube-controller-manager": {"node-monitor-grace-period": f"{_PATIENCE * factor:.0f}s"}}
