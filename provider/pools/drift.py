"""Say what differs from what is wanted so that thousands of drifted nodes stay readable."""

from __future__ import annotations

from collections.abc import Mapping

from provider.pools.observe import Observation
from spec.names import node_name
from spec.pools import Pool

_NAMED = 5


def describe(pool: Pool, seen: Observation) -> dict[str, object]:
    """Return the drift as properties for the stack's state; empty when the pool is as wanted.

    Args:
        pool: what is wanted.
        seen: what was observed.

    Returns:
        ``missing`` and ``extra`` as ``2: a-use1-3, a-use1-4``; ``altered`` with the first few nodes by name and,
        beyond those, how many nodes differ in which fields.
    """
    drift: dict[str, object] = {}
    if seen.missing:
        drift["missing"] = _names([node_name(pool.name, ordinal) for ordinal in seen.missing])
    if seen.extra:
        drift["extra"] = _names(sorted(seen.extra))
    if seen.foreign:
        drift["realNodes"] = _names(sorted(seen.foreign))
    if seen.altered:
        altered: dict[str, str] = {}
        for ordinal in sorted(seen.altered)[:_NAMED]:
            differences = seen.altered[ordinal][1]
            altered[node_name(pool.name, ordinal)] = "; ".join(map(str, differences[:4])) + (
                f"; and {len(differences) - 4} more" if len(differences) > 4 else ""
            )
        if len(seen.altered) > _NAMED:
            altered[f"and {len(seen.altered) - _NAMED:,} more nodes"] = _fields(seen)
        drift["altered"] = altered
    return drift


def summary(drift: Mapping[str, object]) -> str:
    """One line of :func:`describe`'s properties: ``missing 2: a-use1-3, a-use1-4; altered: a-use1-7 …``."""
    parts = [f"{key} {drift[key]}" for key in ("missing", "extra", "realNodes") if key in drift]
    altered = drift.get("altered")
    if isinstance(altered, Mapping):
        parts.append("altered " + ", ".join(map(str, altered)))
    return "; ".join(parts)


def _names(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return f"{len(names):,}: {', '.join(names[:_NAMED])}{more}"


def _fields(seen: Observation) -> str:
    counts: dict[str, int] = {}
    for _, differences in seen.altered.values():
        for difference in differences:
            counts[difference.path] = counts.get(difference.path, 0) + 1
    most = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    text = ", ".join(f"{path} on {count:,}" for path, count in most[:6])
    return text + (f", and {len(most) - 6} more fields" if len(most) > 6 else "")
