"""The baseline of an experiment: a run of before, which expectations say how far they may be from."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.expect import Expectation
from kumulus.extras.lab.file.model import Experiment
from kumulus.model.errors import Problem, SpecError, shown

if TYPE_CHECKING:
    from kumulus.extras.lab.report.model import Report

KEPT_AS = "baseline.json"
"""What a run's inputs call it."""

_REMEDY = "write it anew: kumulus experiment baseline RUN FILE"


def baseline(text: str, name: str, experiment: Experiment, source: str) -> Report:
    """The run in a baseline's file."""
    # Most experiments have none.
    from kumulus.extras.lab.report.model import report_of

    wrong = ""
    try:
        report = report_of(text, name)
    except LabError as error:
        raise SpecError([Problem("baseline", str(error), _REMEDY)], source) from None
    if report.metadata.experiment != experiment.name:
        wrong = f"{name} is of the experiment {shown(report.metadata.experiment)}"
    elif report.results.status == "partial":
        wrong = f"{name} is of a run that was cut off"
    if wrong:
        raise SpecError([Problem("baseline", wrong, _REMEDY)], source)
    return report


def against(experiment: Experiment, report: Report, source: str) -> Experiment:
    """An experiment whose expectations know the values of its baseline: the medians of its repetitions."""
    wrong: list[Problem] = []
    found: list[Expectation] = []
    for index, each in enumerate(experiment.expect):
        if not each.of_baseline:
            found.append(each)
            continue
        measures = (test.details.measures for test in report.results.tests)
        if values := [known[each.measure] for known in measures if each.measure in known]:
            found.append(each.against(statistics.median(values)))
        else:
            wrong.append(Problem(f"expect[{index}].measure", f"{each.measure} is not in the baseline", _REMEDY))
    if wrong:
        raise SpecError(wrong, source)
    return experiment.model_copy(update={"expect": found})
