"""Which spot machines a cloud takes back after a notice; the plugin imports this file."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from kumulus.model.durations import written

NOTICE = 120.0
"""Default notice in seconds; AWS gives two minutes before it interrupts a spot instance."""

RECLAIM_ANNOTATION = "kumulus.io/reclaimed-at"
"""When a node's machine is taken back, RFC 3339 in UTC; KWOK deletes the node then."""


@dataclass(frozen=True)
class Interruption:
    """How machines of an autoscaler are taken back.

    Args:
        notice: seconds from the notice until they are gone.
        labels: what their nodes have to have.
        count: at most this many of them; 0 for all.
        percent: only this share of them, in per cent.
        seed: what they are drawn with.
    """

    notice: float = NOTICE
    labels: Mapping[str, str] = field(default_factory=dict)
    count: int = 0
    percent: float = 100.0
    seed: str = ""

    def to_plain(self) -> dict[str, object]:
        """The plain form, JSON-able."""
        return {
            "notice": self.notice,
            "labels": dict(self.labels),
            "count": self.count,
            "percent": self.percent,
            "seed": self.seed,
        }

    def drawn(self, among: Sequence[str]) -> tuple[str, ...]:
        """The machines that are taken back, drawn by the seed; at least one if there are any.

        Args:
            among: names of all candidates, in an order that is the same in every run: an autoscaler chooses random
                names, so positions in that order are drawn here.
        """
        order = sorted(range(len(among)), key=lambda at: hashlib.blake2b(f"{self.seed}/{at}".encode()).digest())
        wanted = max(1, round(len(order) * self.percent / 100))
        return tuple(among[at] for at in sorted(order[: min(wanted, self.count) if self.count else wanted]))

    def described(self, which: str) -> str:
        """A description: `20% of the spot machines go after a notice of 2m: e2-standard-4 in us-central1-a`.

        Args:
            which: types and zones; empty for all.
        """
        much = f"{self.count} of the" if self.count else f"{self.percent:g}% of the" if self.percent < 100 else "all"
        owner = ", ".join(filter(None, (which, *(f"{key}={value}" for key, value in sorted(self.labels.items())))))
        text = f"{much} spot machines go after a notice of {written(self.notice)}"
        return f"{text}: {owner}" if owner else text


def interruption_from(raw: Mapping[str, object]) -> Interruption:
    """An interruption from the plain form that `Interruption.to_plain` writes; numbers may be floats."""
    return Interruption(
        float(cast(float, raw.get("notice", NOTICE))),
        dict(cast(Mapping[str, str], raw.get("labels") or {})),
        int(cast(float, raw.get("count") or 0)),
        float(cast(float, raw.get("percent", 100.0))),
        str(raw.get("seed") or ""),
    )
