"""Describe differences from what is wanted so that thousands of drifted nodes stay readable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kumulus.model.devices import Devices
from kumulus.model.pools import Pool
from kumulus.model.slices import Part, slice_name
from kumulus.model.words import listed
from kumulus.nodes.pools.compare import FieldDifference
from kumulus.nodes.pools.observe import Observation
from kumulus.nodes.pools.slices import SliceObservation

_NAMED = 5


def describe(pool: Pool, seen: Observation) -> dict[str, object]:
    """Return the drift as properties for the stack's state; empty when the pool is as wanted.

    Args:
        pool: what is wanted.
        seen: what was observed.

    Returns:
        ``missing`` and ``extra`` as ``2: a-use1-3, a-use1-4``; ``altered`` with the first few nodes by name and,
        beyond those, how many nodes differ in which fields; ``resourceSlices`` with the same of these.
    """
    drift: dict[str, object] = {}
    if seen.missing:
        drift["missing"] = _names([pool.node_name(part) for part in seen.missing])
    if seen.extra:
        drift["extra"] = _names(sorted(seen.extra))
    if seen.foreign:
        drift["realNodes"] = _names(sorted(seen.foreign))
    if seen.others:
        drift["othersNodes"] = _names(sorted(seen.others))
    if seen.altered:
        drift["altered"] = _altered(
            {pool.node_name(ordinal): seen.altered[ordinal][1] for ordinal in sorted(seen.altered)}, "nodes"
        )
    if seen.slices and pool.devices is not None:
        drift["resourceSlices"] = _slices(pool, pool.devices, seen.slices)
    return drift


def _altered(found: Mapping[str, Sequence[FieldDifference]], what: str) -> dict[str, str]:
    """The first few by name with their differences, and beyond those how many differ in which fields."""
    altered: dict[str, str] = {}
    for name in list(found)[:_NAMED]:
        differences = found[name]
        more = f"; and {len(differences) - 4} more" if len(differences) > 4 else ""
        altered[name] = "; ".join(map(str, differences[:4])) + more
    if len(found) > _NAMED:
        altered[f"and {len(found) - _NAMED:,} more {what}"] = _fields(found.values())
    return altered


def _slices(pool: Pool, devices: Devices, seen: SliceObservation) -> dict[str, object]:
    def name(part: Part) -> str:
        return slice_name(pool, devices, part)

    drift: dict[str, object] = {}
    if seen.missing:
        drift["missing"] = _names([name(ordinal) for ordinal in seen.missing])
    if seen.extra:
        drift["extra"] = _names(sorted(seen.extra))
    if seen.altered:
        drift["altered"] = _altered({name(part): seen.altered[part][1] for part in sorted(seen.altered)}, "slices")
    return drift


def summary(drift: Mapping[str, object]) -> str:
    """One line of :func:`describe`'s properties: ``missing 2: a-use1-3, a-use1-4; altered: a-use1-7 …``."""
    parts = [f"{key} {drift[key]}" for key in ("missing", "extra", "realNodes") if key in drift]
    altered = drift.get("altered")
    if isinstance(altered, Mapping):
        parts.append("altered " + ", ".join(map(str, altered)))
    slices = drift.get("resourceSlices")
    if isinstance(slices, Mapping):
        parts.append(f"resource slices {summary(slices)}")
    return "; ".join(parts)


def _names(names: list[str]) -> str:
    return f"{len(names):,}: {listed(names, _NAMED)}"


def _fields(found: Iterable[Sequence[FieldDifference]]) -> str:
    counts: dict[str, int] = {}
    for differences in found:
        for difference in differences:
            counts[difference.path] = counts.get(difference.path, 0) + 1
    most = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    text = ", ".join(f"{path} on {count:,}" for path, count in most[:6])
    return text + (f", and {len(most) - 6} more fields" if len(most) > 6 else "")
