"""The record of a scheduler's decisions: one line of JSON for each pod that was bound."""

from __future__ import annotations

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
class Scored:
    """A node, and its score from each plugin.

    Attributes:
        node: its name.
        total: the sum, including the scores of extenders.
        scores: by plugin, weighted; empty if no plugin scores.
    """

    node: str
    total: int
    scores: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Decision:
    """Why a pod was bound to its node.

    Attributes:
        pod: namespace/name.
        node: where it was bound.
        evaluated: how many nodes were evaluated.
        feasible: how many of them no filter refused.
        chosen: the node's scores; None if they are not known, or nothing was scored.
        equal: how many nodes had the highest score; 0 if nothing was scored.
        next: the best node below that.
        like: the pod for which the list of nodes was made, if the list was reused (KEP-5598).
        refused: how often the pod had fitted nowhere before.
        reason: the last message about that.
        passed: how many nodes passed all of kube-scheduler's filters; 0 if no extender was called.
        filters: how many nodes each filter refused, in their order; empty if none did, or if it is not known.
        unknown: why it is not known which filters refused nodes; empty if it is known.
    """

    pod: str
    node: str
    evaluated: int
    feasible: int
    chosen: Scored | None = None
    equal: int = 0
    next: Scored | None = None
    like: str = ""
    refused: int = 0
    reason: str = ""
    passed: int = 0
    filters: Mapping[str, int] = field(default_factory=dict)
    unknown: str = ""

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
class Totals:
    """The totals of a file.

    Attributes:
        bound: how many pods were bound.
        explained: for how many of them the reason is known.
        dropped: how many are not in the file, as it had reached its limit.
        waiting: pods that were never bound, with the last message about each.
    """

    bound: int = 0
    explained: int = 0
    dropped: int = 0
    waiting: Mapping[str, str] = field(default_factory=dict)


def rows(file: Path) -> Iterator[dict[str, Any]]:
    """The objects of a file, one per line; a truncated last line is left out.

    Raises:
        OSError: it cannot be read.
    """
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            try:
                found: dict[str, Any] = json.loads(line)
            except ValueError:
                continue
            yield found


def decisions(file: Path) -> Iterator[Decision | Totals]:
    """The contents of a file; a truncated last line is left out.

    Raises:
        OSError: it cannot be read.
    """
    for found in rows(file):
        if "pod" not in found:
            yield Totals(**found)
            continue
        for key in ("chosen", "next"):
            if key in found:
                found[key] = Scored(**found[key])
        yield Decision(**{"evaluated": 0, "feasible": 0, **found})
