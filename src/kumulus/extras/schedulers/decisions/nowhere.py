"""How often filters were run in attempts in which a pod fitted nowhere, from kube-scheduler's messages about them.

No extender is called in such an attempt, so the counts of the next note include it. But every node was refused, and the
message has the number of nodes for each reason. So the runs of each filter can be computed and subtracted.

Source: FitError.Error in pkg/scheduler/framework/types.go of k8s.io/kubernetes, and the reasons in its plugins.
Checked against Kubernetes 1.35 to 1.37.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

_FIT = "NodeResourcesFit"
# Reasons of plugins that give a node only one; NodeResourcesFit may give several for one node.
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
# With these messages, no filter was run to find out which pods would have to be preempted.
_NOT_TRIED = re.compile(r"\d+ (No preemption victims found for incoming pod|Preemption is not helpful for scheduling)")


def tried_nothing(message: str) -> bool:
    """Whether no filter was run for preemption, according to the message about a pod that fits nowhere."""
    match = _MESSAGE.fullmatch(message)
    text = (match and match[3]) or ""
    if text.startswith("not eligible due to "):
        return True
    tried = _MESSAGE.fullmatch(text)
    return tried is not None and all(_NOT_TRIED.fullmatch(each) for each in tried[2].split(", "))


def runs(message: str, filters: Sequence[str], active: Mapping[str, bool]) -> dict[str, int] | None:
    """How often each filter was run in such an attempt; None if that cannot be computed.

    Args:
        message: kube-scheduler's message about it.
        filters: in the order in which they are run.
        active: whether each filter was run at all, and not skipped for this pod.
    """
    match = _MESSAGE.fullmatch(message)
    if match is None or not tried_nothing(message):
        return None
    every, refused, scarce = int(match[1]), Counter[str](), False
    for text in match[2].split(", "):
        part = _PART.fullmatch(text)
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
