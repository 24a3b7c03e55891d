"""Whether the expectations of an experiment hold."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kumulus.extras.lab.file.amount import NOT_MEASURED, between, shown
from kumulus.extras.lab.file.expect import Expectation, OfFault
from kumulus.extras.lab.file.measures import UNITS
from kumulus.extras.lab.measure.faulted import Faulted, most_at_once
from kumulus.extras.lab.measure.records import ExperimentRecords
from kumulus.extras.lab.measure.statistics import Between, Measured
from kumulus.model.words import counted, listed

_WORDS = {"atMost": "at most", "atLeast": "at least", "equals": "exactly"}


@dataclass(frozen=True)
class ExpectationVerdict:
    """One expectation, and whether it holds."""

    what: str
    holds: bool
    found: str


def verdicts(
    expected: Sequence[Expectation], measured: Mapping[str, Measured], records: ExperimentRecords
) -> list[ExpectationVerdict]:
    """Judge each expectation: a measure that is not known may still be known to be on one side of a threshold."""
    found: list[ExpectationVerdict] = []
    for each in expected:
        if each.measure:
            found += [_threshold(each.measure, kind, bound, measured) for kind, bound in each.bounds().items()]
            found += [_within(each, measured)] if each.within else []
        elif each.onFaultedNodes is not None:
            found.append(_on_faulted(each, records))
        elif isinstance(each.nodes, OfFault):
            found.append(_cordoned(each, each.nodes.fault, records.faulted))
        else:
            found.append(_nodes(str(each.workload), each.nodes or [], records))
    return found


def _threshold(measure: str, kind: str, bound: float, measured: Mapping[str, Measured]) -> ExpectationVerdict:
    unit = UNITS[measure]
    what = f"{measure} {_WORDS[kind]} {shown(unit, bound)}"
    value = measured.get(measure)
    if value is None:
        return ExpectationVerdict(what, False, NOT_MEASURED)
    if not isinstance(value, Between):
        return ExpectationVerdict(what, _holds(kind, value, bound), shown(unit, value))
    ends, found = [_holds(kind, end, bound) for end in value], between(unit, *value)
    if all(ends):
        return ExpectationVerdict(what, True, found)
    never = not any(ends) and not value.least <= bound <= value.most
    return ExpectationVerdict(what, False, found if never else f"{NOT_MEASURED}: {found}")


def _holds(kind: str, value: float, bound: float) -> bool:
    if kind == "equals":
        return math.isclose(value, bound, rel_tol=1e-9, abs_tol=1e-9)
    return value <= bound if kind == "atMost" else value >= bound


def _within(each: Expectation, measured: Mapping[str, Measured]) -> ExpectationVerdict:
    parts = [_threshold(each.measure, kind, bound, measured) for kind, bound in each.around_baseline().items()]
    # The words are the same whatever the baseline is: CI systems know a test by them.
    what, unit = f"{each.measure} within {each.within}", UNITS[each.measure]
    if each.baseline is None:
        return ExpectationVerdict(what, False, "the baseline has not been read")
    found = f"{parts[0].found}, {shown(unit, each.baseline)} in the baseline"
    return ExpectationVerdict(what, all(part.holds for part in parts), found)


def _nodes(workload: str, wanted: Sequence[str], records: ExperimentRecords) -> ExpectationVerdict:
    there = sorted({record.node for record in records.pods.values() if record.workload == workload and record.node})
    return ExpectationVerdict(
        f"{workload} on {', '.join(sorted(wanted))}", there == sorted(wanted), ", ".join(there) or "no node"
    )


def _cordoned(each: Expectation, fault: str, faulted: Faulted) -> ExpectationVerdict:
    what = f"nodes of {fault} {'cordoned' if each.cordoned else 'schedulable again'} within {each.within}"
    late: list[str] = []
    unproven: list[str] = []
    took: list[float] = []
    for struck in (struck for struck in faulted.faults if struck.fault == fault):
        since = struck.began if each.cordoned else struck.ended
        for node in sorted(struck.nodes):
            at = faulted.cordoned_at(node, since, bool(each.cordoned)) if since < math.inf else math.inf
            took.append(at - since)
            if not took[-1] <= (each.seconds or 0.0):
                late.append(node)
            elif faulted.unproven(struck, node, bool(each.cordoned)):
                unproven.append(node)
    if not took:
        return ExpectationVerdict(what, False, "the fault did not begin")
    nodes = counted(len(took), "node")
    wrong = [f"{len(took) - len(late)} of {nodes}; not {listed(late)}"] if late else []
    if unproven:
        before = f"cordoned before the fault began; to undo: kubectl uncordon {listed(unproven, separator=' ')}"
        why = before if each.cordoned else f"not cordoned while the fault lasted: {listed(unproven)}"
        wrong.append(f"{len(unproven)} of {nodes} {'was' if len(unproven) == 1 else 'were'} {why}")
    if wrong:
        return ExpectationVerdict(what, False, "; ".join(wrong))
    return ExpectationVerdict(what, True, f"{nodes}, the last after {max(took):.1f} s")


def _on_faulted(each: Expectation, records: ExperimentRecords) -> ExpectationVerdict:
    most, wait, faulted = each.onFaultedNodes or 0, each.seconds or 0.0, records.faulted
    pods = "no pod" if not most else f"at most {counted(most, 'pod')}"
    what = f"{each.workload}: {pods} on faulted nodes after {each.within}"
    of_workload = [pod for pod in records.pods.values() if pod.workload == each.workload]
    found: list[tuple[int, str]] = []
    for struck in faulted.faults:
        begin, end = min(struck.began + wait, struck.ended), min(struck.ended, faulted.lasted)
        if end < begin:
            return ExpectationVerdict(
                what, False, f"the run ended {end - struck.began:.1f} s after {struck.fault} began"
            )
        there = faulted.pods_on(struck, of_workload)
        had = f"{counted(len(there), 'pod')} had been on those of {struck.fault}"
        found.append((most_at_once(there, begin, end), had))
    if not found:
        return ExpectationVerdict(what, False, "no fault began on nodes")
    count, had = max(found)
    if count <= most and not any(faulted.had(struck, of_workload) for struck in faulted.faults):
        names = listed(sorted({struck.fault for struck in faulted.faults}))
        untried = f"no pod of {each.workload} was on the nodes of {names} when the fault began, so nothing was tried"
        return ExpectationVerdict(what, False, untried)
    return ExpectationVerdict(what, count <= most, f"{count}; {had}")
