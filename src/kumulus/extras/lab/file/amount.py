"""How far a measure may be from a former one: `10%` of it, `1pt` for a share, or an amount in its unit such as `2s`."""

from __future__ import annotations

from dataclasses import dataclass

from kumulus.extras.lab.file.expect import bound
from kumulus.extras.lab.file.measures import BETTER, UNITS

_POINTS = "pt"


@dataclass(frozen=True)
class Amount:
    """A distance from a former value.

    Args:
        value: a share of the former value, or in the measure's unit.
        relative: which of the two.
        written: as the user wrote it.
    """

    value: float
    relative: bool
    written: str

    def above(self, former: float) -> float:
        """What is so much more than a former value."""
        return former + self._of(former)

    def below(self, former: float) -> float:
        """What is so much less than a former value."""
        return former - self._of(former)

    def _of(self, former: float) -> float:
        return abs(former) * self.value if self.relative else self.value


def amount(measure: str, written: str) -> Amount | None:
    """An amount of a measure; None for what is none."""
    text = written.strip()
    if text.endswith("%"):
        value = _number(text.removesuffix("%"))
        return None if value is None else Amount(value / 100, True, text)
    if UNITS[measure] == "share":
        value = _number(text.removesuffix(_POINTS)) if text.endswith(_POINTS) else None
        return None if value is None else Amount(value / 100, False, text)
    found = bound(UNITS[measure], text)
    if found is None:
        found = _number(text) if UNITS[measure] not in ("s", "bytes") else None
    return None if found is None or found < 0 else Amount(found, False, text)


def examples(measure: str) -> str:
    """What an amount of a measure may be, for messages."""
    absolute = {"s": "2s", "share": "1pt", "bytes": "50Mi"}.get(UNITS[measure], "2")
    return f"10% or {absolute}"


def towards_worse(measure: str) -> str:
    """Whether more (`+`) or less (`-`) of a measure is worse; empty where neither is."""
    return {"lower": "+", "higher": "-", "": ""}[BETTER[measure]]


def _number(text: str) -> float | None:
    return float(text) if text.replace(".", "", 1).isdecimal() else None
