"""Which runs differ by seed alone: they are one line of a picture, called by what sets it apart from other lines."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kumulus.extras.lab.file.baseline import KEPT_AS
from kumulus.extras.lab.report.model import Report, Test

# What a run was compared with, and the file that may have another seed, make no other figures.
_OTHERS = ("experiment.yaml", KEPT_AS)
DIGITS = 8
"""How much of a SHA-256 is shown."""

_Pairs = tuple[tuple[str, str], ...]


class Line(NamedTuple):
    """Everything but the seed that the figures of a run depend on.

    Attributes:
        label: what it is called, unless other lines are called so, too.
        details: its stack, scheduler, ties and the scheduler's settings, each with what it is.
        files: the SHA-256 of its inputs by name, without the experiment's own, which may have the seed.
    """

    label: str
    details: _Pairs
    files: _Pairs


def line_of(report: Report, test: Test | None, label: str) -> Line:
    """The line that a repetition belongs to.

    Args:
        report: of the run.
        test: the repetition; None of a run that has come to none.
        label: what the line is called.
    """
    metadata, used = report.metadata, test and test.details.policy
    # A cluster's own scheduler has a configuration file in a directory of its own, whatever is in it.
    settings = {key: value for key, value in metadata.scheduler.settings.items() if key != "config"}
    details = {"stack": metadata.stack, "scheduler": metadata.scheduler.name, "ties": used.ties if used else ""}
    files = {name: digest for name, digest in metadata.inputs.files.items() if name not in _OTHERS}
    return Line(label, tuple({**details, **dict(sorted(settings.items()))}.items()), tuple(sorted(files.items())))


def names(lines: Iterable[Line]) -> dict[Line, str]:
    """A name of its own for each line: its label, and after that what sets it apart from lines of the same label."""
    by_label: dict[str, list[Line]] = {}
    for line in dict.fromkeys(lines):
        by_label.setdefault(line.label, []).append(line)
    return {line: _name(line, alike) for alike in by_label.values() for line in alike}


def _name(line: Line, alike: list[Line]) -> str:
    every = [dict(each.details) for each in alike]
    apart = [
        f"{what} {value or 'none'}"
        for what, value in line.details
        if any(each.get(what, "") != value for each in every)
    ]
    for name, digest in line.files:
        others = [dict(each.files).get(name) for each in alike]
        if any(other not in (None, digest) for other in others):
            apart.append(f"{name} {digest[:DIGITS]}")
        elif None in others:
            apart.append(name)
    return " · ".join([line.label, *([", ".join(apart)] if apart else [])])
