"""A measure's value as people read it."""

from __future__ import annotations

import math

from kumulus.extras.lab.file.measures import Unit

NOT_MEASURED = "not measured"
"""What is said of a measure that was not taken, or of which too little was heard."""


def between(unit: Unit, least: float, most: float | None) -> str:
    """What a value lies between, with its unit; None or infinity is no upper bound."""
    if most is None or math.isinf(most):
        return f"{shown(unit, least)} or more"
    return f"between {shown(unit, least)} and {shown(unit, most)}"


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
