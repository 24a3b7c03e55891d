"""What the scheduler decides about dry pods, and its messages about pods that do not fit."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_NODES_LOOKED_AT = re.compile(r"0/(\d+) nodes")
# The part of the scheduler's message about preemption, which dry pods never do.
_PREEMPTION = re.compile(r",? ?(?:no new claims to deallocate, )?preemption: .*$", re.DOTALL)


@dataclass
class Verdict:
    """What happened to dry pods.

    Attributes:
        wanted: how many pods were wanted.
        on: how many went to each node.
        reason: the message of the scheduler, or of the quota, about the first pod that did not fit.
        refused: how many the API server rejected.
    """

    wanted: int
    on: Counter[str] = field(default_factory=Counter)
    reason: str = ""
    refused: int = 0

    @property
    def fitted(self) -> int:
        """How many pods have a node."""
        return self.on.total()

    @property
    def all_fit(self) -> bool:
        """Whether all pods have a node."""
        return self.fitted == self.wanted


def unschedulable(pod: Mapping[str, Any]) -> str | None:
    """The scheduler's message about a pod without a node; None if there is none yet."""
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            message = str(condition.get("message") or condition.get("reason") or "")
            return without_preemption(message)
    return None


def without_preemption(message: str) -> str:
    """The scheduler's message about a pod, without the part about preemption."""
    return _PREEMPTION.sub("", message)


def looked_at(message: str) -> int:
    """How many nodes a message of the scheduler is about; any other message is taken to be about all nodes."""
    found = _NODES_LOOKED_AT.match(message)
    return int(found[1]) if found else sys.maxsize
