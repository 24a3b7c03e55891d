"""What a run recorded about scheduling: the scheduler's decisions, and the scores that a policy gave nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.extender import column
from kumulus.extras.lab.extender.column import Column
from kumulus.extras.schedulers.decisions import document
from kumulus.extras.schedulers.decisions.document import Decision, Totals


@dataclass
class Decided:
    """What was recorded in all repetitions.

    Attributes:
        decisions: one for each binding.
        totals: of each start of the scheduler.
        columns: the scores that a policy gave nodes, by pod.
    """

    decisions: list[Decision] = field(default_factory=list)
    totals: list[Totals] = field(default_factory=list)
    columns: dict[str, Column] = field(default_factory=dict)

    def of(self, repetition: int | None) -> Sequence[Decision]:
        """The decisions of one repetition; None for all of them."""
        if repetition is None:
            return self.decisions
        return [each for each in self.decisions if each.pod.partition("/")[0].endswith(f"-{repetition}")]


def read(run: Path) -> Decided | None:
    """What was recorded below the directory of a run; None if its file did not ask for it.

    Raises:
        LabError: a file cannot be read.
    """
    files = sorted(run.glob(f"scheduler*/{document.NAME}"))
    if not files:
        return None
    found = Decided()
    try:
        for file in files:
            for each in document.decisions(file):
                if isinstance(each, Totals):
                    found.totals.append(each)
                else:
                    found.decisions.append(each)
        for file in sorted(run.glob(f"scheduler*/{column.NAME}")):
            found.columns |= {each.pod: each for each in column.columns(file)}
    except OSError as error:
        raise LabError(f"{error.filename} cannot be read: {error.strerror}") from None
    return found
