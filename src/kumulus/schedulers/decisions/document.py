"""What is kept of a scheduler's decisions: one line of JSON for each pod that was bound."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

NAME = "decisions.jsonl"
"""The file, in the directory of the scheduler."""
LIMIT = 256 << 20
"""Bytes of a file; bindings after that are counted and not kept. It is room for some 300,000."""


@dataclass(frozen=True)
class Scored:
    """A node, and what each plugin gave it.

    Attributes:
        node: its name.
        total: what it came to, extenders' part included.
        scores: by plugin, weighted; empty where no plugin scores.
    """

    node: str
    total: int
    scores: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Decision:
    """How a pod came to its node.

    Attributes:
        pod: namespace/name.
        node: where it was bound.
        evaluated: how many nodes were looked at.
        feasible: how many of them no filter refused.
        chosen: the node's scores; None where they are not known, or nothing was scored.
        equal: how many nodes had the highest score; 0 where nothing was scored.
        next: the best node below that.
        like: the pod for which the list of nodes was made, where it was used again (KEP-5598).
        refused: how often it had fitted nowhere before.
        reason: what was said then the last time.
        passed: how many nodes passed all of kube-scheduler's filters; 0 where no extender was asked.
        filters: how many nodes each filter refused, in their order; empty where none did, or it is not known.
        unknown: why it is not known which filters refused nodes; empty where it is.
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
        """Whether it is known what decided: scores, or that no other node fitted."""
        return self.chosen is not None or (self.feasible == 1 and not self.like)

    def line(self) -> str:
        """As it is kept."""
        fields = {name: value for name, value in asdict(self).items() if value not in (None, "", 0, {})}
        return json.dumps(fields, separators=(",", ":"))


@dataclass(frozen=True)
class Totals:
    """What a whole file has.

    Attributes:
        bound: how many pods were bound.
        explained: of how many it is known why.
        dropped: how many are not in the file, as it had reached its limit.
        waiting: pods that were never bound, with what was said of them last.
    """

    bound: int = 0
    explained: int = 0
    dropped: int = 0
    waiting: Mapping[str, str] = field(default_factory=dict)


def rows(file: Path) -> Iterator[dict[str, Any]]:
    """The objects of a file, one a line; a last line that was cut off is left out.

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
    """What a file has; a last line that was cut off is left out.

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
