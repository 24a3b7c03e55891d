"""How often filters were run in attempts in which a pod fitted nowhere, from what kube-scheduler says of them.

No extender is asked in such an attempt, so what is counted by the next note has it in it. But every node was refused,
and the message has how many for each reason: so it can be reckoned how often each filter was run, and taken off.

Source: FitError.Error in pkg/scheduler/framework/types.go of Kubernetes 1.35, and the reasons in its plugins.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

_FIT = "NodeResourcesFit"
# The reasons that a node has of one plugin alone; those of NodeResourcesFit may be several of one node.
_REASONS = {
    "node(s) were unschedulable": "NodeUnschedulable",
    "node(s) didn't match the requested node name": "NodeName",
    "node(s) had untolerated taint(s)": "TaintToleration",
    "node(s) didn't match Pod's node affinity/selector": "NodeAffinity",
    "node(s) didn't have free ports for the requested pod ports": "NodePorts",
    "node(s) exceed max volume count": "NodeVolumeLimits",
    "node(s) had no available volume zone": "VolumeZone",
    "node(s) didn't match pod topology spread constraints": "PodTopologySpread",
    "node(s) didn't match pod topology spread constraints (missing required label)": "PodTopologySpread",
}
_MESSAGE = re.compile(
    r"0/(\d+) nodes are available: (.*?)\.(?: (?:no new claims to deallocate, )?preemption: (.*))?", re.DOTALL
)
_PART = re.compile(r"(\d+) (.*)", re.DOTALL)
_SCARCE = re.compile(r"Insufficient \S+|Too many pods")
# With these, no filter was run to find out what would have to go.
_NOT_TRIED = re.compile(r"\d+ (No preemption victims found for incoming pod|Preemption is not helpful for scheduling)")


def tried_nothing(message: str) -> bool:
    """Whether no filter was run for preemption, by what kube-scheduler says of a pod that fits nowhere."""
    match = _MESSAGE.fullmatch(message)
    said = (match and match[3]) or ""
    if said.startswith("not eligible due to "):
        return True
    tried = _MESSAGE.fullmatch(said)
    return tried is not None and all(_NOT_TRIED.fullmatch(each) for each in tried[2].split(", "))


def runs(message: str, filters: Sequence[str], active: Mapping[str, bool]) -> dict[str, int] | None:
    """How often each filter was run in such an attempt; None where that cannot be reckoned.

    Args:
        message: what kube-scheduler said of it.
        filters: in the order in which they are run.
        active: whether a filter was run at all, and not left out for this pod as it has nothing to say of it.
    """
    match = _MESSAGE.fullmatch(message)
    if match is None or not tried_nothing(message):
        return None
    every, refused, scarce = int(match[1]), Counter[str](), False
    for said in match[2].split(", "):
        part = _PART.fullmatch(said)
        if part is None:
            return None
        if _SCARCE.fullmatch(part[2]):
            scarce = True
        elif part[2] in _REASONS:
            refused[_REASONS[part[2]]] += int(part[1])
        else:
            return None
    rest = every - refused.total()
    if scarce:
        refused[_FIT] = rest
        rest = 0
    if rest or min(refused.values()) <= 0 or not all(active.get(name) for name in refused):
        return None
    found, left = {}, every
    for name in filters:
        if active.get(name):
            found[name] = left
            left -= refused[name]
    return found if not left else None
