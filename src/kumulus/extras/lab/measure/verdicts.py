"""Whether the expectations of an experiment hold."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kumulus.extras.lab.file.expect import Expectation
from kumulus.extras.lab.file.measures import UNITS
from kumulus.extras.lab.file.units import NOT_MEASURED, between, shown
from kumulus.extras.lab.measure.records import Records
from kumulus.extras.lab.measure.statistics import Between, Measured

_WORDS = {"atMost": "at most", "atLeast": "at least", "equals": "exactly"}


@dataclass(frozen=True)
class Verdict:
    """One expectation, and whether it holds.

    Args:
        what: the expectation in words.
        holds: whether it does.
        found: what was found.
    """

    what: str
    holds: bool
    found: str


def verdicts(expected: Sequence[Expectation], measured: Mapping[str, Measured], records: Records) -> list[Verdict]:
    """Judge each expectation: a measure that is not known may still be known to be on one side of a threshold."""
    found: list[Verdict] = []
    for each in expected:
        if each.measure:
            found += [_threshold(each.measure, kind, bound, measured) for kind, bound in each.bounds().items()]
            found += [_within(each, measured)] if each.within else []
        else:
            found.append(_nodes(str(each.workload), each.nodes or [], records))
    return found


def _threshold(measure: str, kind: str, bound: float, measured: Mapping[str, Measured]) -> Verdict:
    unit = UNITS[measure]
    what = f"{measure} {_WORDS[kind]} {shown(unit, bound)}"
    value = measured.get(measure)
    if value is None:
        return Verdict(what, False, NOT_MEASURED)
    if not isinstance(value, Between):
        return Verdict(what, _holds(kind, value, bound), shown(unit, value))
    ends, found = [_holds(kind, end, bound) for end in value], between(unit, *value)
    if all(ends):
        return Verdict(what, True, found)
    never = not any(ends) and not value.least <= bound <= value.most
    return Verdict(what, False, found if never else f"{NOT_MEASURED}: {found}")


def _holds(kind: str, value: float, bound: float) -> bool:
    if kind == "equals":
        return math.isclose(value, bound, rel_tol=1e-9, abs_tol=1e-9)
    return value <= bound if kind == "atMost" else value >= bound


def _within(each: Expectation, measured: Mapping[str, Measured]) -> Verdict:
    parts = [_threshold(each.measure, kind, bound, measured) for kind, bound in each.around_baseline().items()]
    # The words are the same whatever the baseline is: CI systems know a test by them.
    what, unit = f"{each.measure} within {each.within}", UNITS[each.measure]
    if each.baseline is None:
        return Verdict(what, False, "the baseline has not been read")
    found = f"{parts[0].found}, {shown(unit, each.baseline)} in the baseline"
    return Verdict(what, all(part.holds for part in parts), found)


def _nodes(workload: str, wanted: Sequence[str], records: Records) -> Verdict:
    there = sorted({record.node for record in records.pods.values() if record.workload == workload and record.node})
    return Verdict(f"{workload} on {', '.join(sorted(wanted))}", there == sorted(wanted), ", ".join(there) or "no node")
