"""Amounts of a measure as people write and read them: thresholds in its unit, distances from a former one, values."""

import math
from dataclasses import dataclass

from kumulus.extras.lab.file.measures import BETTER, UNITS, Unit
from kumulus.model import durations
from kumulus.model.quantity import QuantityError, parse

_POINTS = "pt"


NOT_MEASURED = "not measured"
"""What is said of a measure that was not taken, or of which too little was heard."""


def bound(unit: Unit, raw: object) -> float | None:
    """A threshold as a number in its measure's unit (seconds, a share of 1, a count, bytes); None when it is none."""
    if isinstance(raw, bool) or not isinstance(raw, str | int | float):
        return None
    # A bare number is a duration or a share only where it cannot be misread.
    plain = unit not in ("s", "share") or raw in (0, 1)
    value = _from_text(unit, raw.strip()) if isinstance(raw, str) else float(raw) if plain else None
    return value if value is not None and math.isfinite(value) else None


def _from_text(unit: Unit, raw: str) -> float | None:
    try:
        if unit == "s":
            return durations.seconds(raw)
        if unit == "bytes":
            return float(parse(raw).nanos) / 1e9
        return float(raw.removesuffix("%")) / 100 if raw.endswith("%") and unit == "share" else None
    except (ValueError, QuantityError):
        return None


@dataclass(frozen=True)
class Margin:
    """How far a measure may be from a former one."""

    value: float
    """A share of the former value, or in the measure's unit."""
    relative: bool
    """Which of the two."""
    written: str

    def above(self, former: float) -> float:
        """What is so much more than a former value."""
        return former + self._of(former)

    def below(self, former: float) -> float:
        """What is so much less than a former value."""
        return former - self._of(former)

    def _of(self, former: float) -> float:
        return abs(former) * self.value if self.relative else self.value


def amount(measure: str, written: str) -> Margin | None:
    """A distance of a measure: `10%`, `1pt` of a share, `2s`; None for what is none."""
    text = written.strip()
    if text.endswith("%"):
        value = _number(text.removesuffix("%"))
        return None if value is None else Margin(value / 100, True, text)
    if UNITS[measure] == "share":
        value = _number(text.removesuffix(_POINTS)) if text.endswith(_POINTS) else None
        return None if value is None else Margin(value / 100, False, text)
    found = bound(UNITS[measure], text)
    if found is None:
        found = _number(text) if UNITS[measure] not in ("s", "bytes") else None
    return None if found is None or found < 0 else Margin(found, False, text)


def examples(measure: str) -> tuple[str, str]:
    """What a distance of a measure may be, for messages."""
    return "10%", {"s": "2s", "share": "1pt", "bytes": "50Mi"}.get(UNITS[measure], "2")


def towards_worse(measure: str) -> str:
    """Whether more (`+`) or less (`-`) of a measure is worse; empty where neither is."""
    return {"lower": "+", "higher": "-", "": ""}[BETTER[measure]]


def _number(text: str) -> float | None:
    return float(text) if text.replace(".", "", 1).isdecimal() else None


def between(unit: Unit, least: float, most: float | None) -> str:
    """What a value lies between, with its unit; `about` what both round to; None or infinity is no upper bound."""
    if most is None or math.isinf(most):
        return f"{shown(unit, least)} or more"
    low, high = shown(unit, least), shown(unit, most)
    return f"about {low}" if low == high else f"between {low} and {high}"


def signed(unit: Unit, value: float, decimals: int = 1) -> str:
    """A difference of two values with its sign: `+1.25 s`, `-3`; of two shares, `+1.2 points`.

    Args:
        decimals: of points.
    """
    amount = f"{100 * abs(value):.{decimals}f} points" if unit == "share" else shown(unit, abs(value))
    return f"{'-' if value < 0 else '+'}{amount}"


def shown(unit: Unit, value: float) -> str:
    """A value with its unit: `1.25 s`, `99.8 %`, `2,550`, `310/s`, `241 MB`."""
    match unit:
        case "s":
            return (
                f"{value * 1000:.0f} ms" if 0 < value < 0.1 else f"{value:,.2f} s" if value < 100 else f"{value:,.0f} s"
            )
        case "share":
            return f"{value:.1%}".replace("%", " %")
        case "perSecond":
            return f"{value:,.0f}/s" if value >= 10 else f"{value:.2f}/s"
        case "bytes":
            return f"{value / 1e6:,.0f} MB"
        case "usd":
            return f"${value:,.2f}" if value >= 1 or not value else f"${value:.3g}"
        case "ratio":
            return f"{value:,.2f}" if value < 100 else f"{value:,.0f}"
        case "gpuSeconds":
            return f"{value:,.0f} GPU-s"
        case "gpuHours":
            return f"{value:,.2f} GPU-h" if value < 100 else f"{value:,.0f} GPU-h"
        case "count":
            # GPUs are counted with their parts.
            return f"{value:,.2f}" if value % 1 and value < 100 else f"{value:,.0f}"
