"""What the client did not hear of a run, in words: its figures are no better than what it heard."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kumulus.extras.lab.file.units import shown
from kumulus.extras.lab.measure.statistics import RESOLUTION
from kumulus.extras.lab.report.model import Test
from kumulus.model.words import counted

MEASURES = ("client.stall", "client.interruptions", "pods.untimed")
"""The measures of it."""


def unheard(tests: Sequence[Test]) -> Iterator[str]:
    """What was not heard in some repetitions; nothing if all was.

    Args:
        tests: the repetitions.
    """
    measures = [test.details.measures for test in tests]
    stall, interruptions, pods = ([each.get(name, 0.0) for each in measures] for name in MEASURES)
    if max(stall, default=0.0) > RESOLUTION:
        yield f"the client stood still for {shown('s', max(stall))}"
    if sum(interruptions):
        yield f"its watches were interrupted {counted(round(sum(interruptions)), 'time')}"
    if sum(pods):
        yield f"a time is not known of {counted(round(sum(pods)), 'pod')}"
