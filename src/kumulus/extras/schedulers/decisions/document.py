"""The record of a scheduler's decisions: one line of JSON for each pod that was bound."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

NAME = "decisions.jsonl"
"""The file, in the scheduler's directory."""
LIMIT = 256 << 20
"""Most bytes of a file, enough for some 300,000 bindings; those beyond are counted but not kept."""


@dataclass(frozen=True)
class ScoredNode:
    """A node, and its score from each plugin."""

    node: str
    total: int
    """The sum, including the scores of extenders."""
    scores: Mapping[str, int] = field(default_factory=dict)
    """By plugin, weighted; empty if no plugin scores."""


@dataclass(frozen=True)
class Decision:
    """Why a pod was bound to its node."""

    pod: str
    """Namespace/name."""
    node: str
    evaluated: int
    feasible: int
    """How many of them no filter refused."""
    chosen: ScoredNode | None = None
    """The node's scores; None if they are not known, or nothing was scored."""
    equal: int = 0
    """How many nodes had the highest score; 0 if nothing was scored."""
    next: ScoredNode | None = None
    """The best node below that."""
    like: str = ""
    """The pod for which the list of nodes was made, if the list was reused (KEP-5598)."""
    refused: int = 0
    """How often the pod had fitted nowhere before."""
    reason: str = ""
    """The last message about that."""
    passed: int = 0
    """How many nodes passed all of kube-scheduler's filters; 0 if no extender was called."""
    filters: Mapping[str, int] = field(default_factory=dict)
    """How many nodes each filter refused, in their order; empty if none did, or if it is not known."""
    unknown: str = ""
    """Why it is not known which filters refused nodes; empty if it is known."""

    @property
    def missing(self) -> int:
        """How many nodes kube-scheduler's filters refused."""
        if self.passed and not self.unknown:
            return sum(self.filters.values())
        return self.evaluated - self.feasible

    @property
    def explained(self) -> bool:
        """Whether the reason for the choice is known: scores, or that no other node fitted."""
        return self.chosen is not None or (self.feasible == 1 and not self.like)

    def line(self) -> str:
        """The line that is kept."""
        fields = {name: value for name, value in asdict(self).items() if value not in (None, "", 0, {})}
        return json.dumps(fields, separators=(",", ":"))


@dataclass(frozen=True)
class DecisionTotals:
    """The totals of a file."""

    bound: int = 0
    explained: int = 0
    """For how many of them the reason is known."""
    dropped: int = 0
    """How many are not in the file, as it had reached its limit."""
    waiting: Mapping[str, str] = field(default_factory=dict)
    """Pods that were never bound, with the last message about each."""


def rows(file: Path) -> Iterator[dict[str, Any]]:
    """The objects of a file, one per line; a truncated last line is left out."""
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            try:
                found: dict[str, Any] = json.loads(line)
            except ValueError:
                continue
            yield found


def decisions(file: Path) -> Iterator[Decision | DecisionTotals]:
    """The contents of a file; a truncated last line is left out."""
    for found in rows(file):
        if "pod" not in found:
            yield DecisionTotals(**found)
            continue
        for key in ("chosen", "next"):
            if key in found:
                found[key] = ScoredNode(**found[key])
        yield Decision(**{"evaluated": 0, "feasible": 0, **found})
