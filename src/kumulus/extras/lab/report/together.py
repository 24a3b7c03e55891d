"""Runs of one experiment with the same settings, as repetitions of one run: such as were made in turn with others."""

import statistics
from collections.abc import Sequence

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.report.compare import same_settings
from kumulus.extras.lab.report.model import Report
from kumulus.model.words import counted

_WORST_FIRST = ("partial", "failure", "success")


def together(reports: Sequence[Report]) -> Report:
    """Runs as repetitions of one, whose load is the median of theirs, and whose status is the worst.

    It is called by what stands before the last `-` of their labels, where that is the same: `a` of `a-1` and `a-2`.
    """
    first, *others = reports
    for other in others:
        if not same_settings(first, other) or first.metadata.inputs != other.metadata.inputs:
            one, two = first.metadata.called, other.metadata.called
            raise LabError(f"{one} and {two} are not repetitions of one run: their settings or their files differ")
    if not others:
        return first
    runs = [each.metadata for each in reports]
    called = {each.label.rpartition("-")[0] or each.label for each in runs}
    label = called.pop() if len(called) == 1 else ""
    tests = [test for each in reports for test in each.results.tests]
    worst = min((each.results for each in reports), key=lambda results: _WORST_FIRST.index(results.status))
    load = statistics.median(each.machine.load for each in runs)
    about: dict[str, object] = {
        "label": label or "+".join(each.run_id for each in runs),
        "run_id": counted(len(runs), "run"),
        "repetitions": len(tests),
        "machine": first.metadata.machine.model_copy(update={"load": load}),
    }
    return Report(metadata=first.metadata.model_copy(update=about), results=worst.model_copy(update={"tests": tests}))
