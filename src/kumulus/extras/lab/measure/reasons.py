"""Why pods have no node, in the scheduler's words, without the numbers that make every message different."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

_AVAILABLE = re.compile(r"\d+/\d+ nodes are available: ")
_PREEMPTION = re.compile(r"\.? *preemption: .*", re.DOTALL)
# Dynamic resource allocation adds this to the message, whether a pod has claims or not.
_CLAIMS = re.compile(r"\.? *no new claims to deallocate,?")
_COUNT = re.compile(r"\b\d+ (?=(?:node\(s\)|Insufficient|Preemption|No preemption))")
_NUMBER = re.compile(r"\b\d+\b")
_LONGEST = 200


def plain(waits: str) -> str:
    """One reason: `Unschedulable: 0/9 nodes are available: 3 Insufficient cpu, 6 node(s) …` without its counts.

    Args:
        waits: reason and message of a pod's condition PodScheduled.
    """
    text = _CLAIMS.sub("", _PREEMPTION.sub("", _AVAILABLE.sub("", waits)))
    text = _NUMBER.sub("n", _COUNT.sub("", text))
    head, colon, rest = text.partition(": ")
    parts = sorted({part.strip(" .") for part in rest.split(", ")} - {""})
    return (head + colon + ", ".join(parts))[:_LONGEST].strip(": ")


def by_reason(waiting: Mapping[str, int]) -> dict[str, int]:
    """Pods by their plain reasons, the most frequent first."""
    found: Counter[str] = Counter()
    for waits, pods in waiting.items():
        found[plain(waits)] += pods
    return dict(found.most_common())
