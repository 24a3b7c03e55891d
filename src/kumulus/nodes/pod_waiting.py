"""What keeps a pod from being ready, in a line for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# The reasons for which a starting pod waits normally.
_ON_ITS_WAY = ("ContainerCreating", "PodInitializing")
_LONGEST = 200


def reason(pod: Mapping[str, Any]) -> str:
    """A pod's name and what keeps it from being ready; empty if nothing does, or if it is starting normally."""
    status = pod.get("status") or {}
    statuses = [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]
    for each in statuses:
        waits = (each.get("state") or {}).get("waiting") or {}
        why = waits.get("reason", "")
        if why and why not in _ON_ITS_WAY:
            ended = (each.get("lastState") or {}).get("terminated") or {}
            cause = _short(waits.get("message", "")) if "Image" in why else _ended(ended)
            return f"{pod['metadata']['name']}: {why} {each['image']}{cause}"
    for condition in status.get("conditions") or []:
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return f"{pod['metadata']['name']}: {condition.get('reason')}: {condition.get('message', '')[:_LONGEST]}"
    return ""


def _short(message: str) -> str:
    """The end of containerd's message, whose beginning says, layer by layer, what it was about to do."""
    parts = " ".join(message.split()).split(": ")
    return f": {': '.join(parts[-2:])[-_LONGEST:]}" if message else ""


def _ended(terminated: Mapping[str, Any]) -> str:
    if not terminated:
        return ""
    return f": it ended with exit code {terminated.get('exitCode')} ({terminated.get('reason')}); see its log"
