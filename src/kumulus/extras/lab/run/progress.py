"""What a user sees while an experiment runs: bars in a terminal, a line now and then elsewhere, or nothing."""

import shutil
import time
from collections.abc import Iterator
from typing import TextIO

from kumulus.extras.lab.run.bench import RepetitionOutcome

_BAR = 30
_LINE_EVERY = 10.0
_MOST_CELLS = 12


class RunProgress:
    """Shows outcomes as they occur; if its output is closed, it is silent, and the run continues."""

    def __init__(self, out: TextIO, quiet: bool) -> None:
        self._out = out
        self._quiet = quiet
        self._drawing = out.isatty() and not quiet
        self._drawn = 0
        self._last = 0.0
        self._before: tuple[float, int] = (0.0, 0)

    def show(self, outcome: RepetitionOutcome) -> None:
        """Show a repetition's progress."""
        try:
            self._show(outcome)
        except OSError:
            self._quiet = True

    def _show(self, outcome: RepetitionOutcome) -> None:
        if self._quiet:
            return
        if self._drawing:
            self._erase()
            width = shutil.get_terminal_size().columns
            shown = [line[: width - 1] for line in (self._line(outcome), *bars(outcome))]
            self._out.write("\n".join(shown) + "\n")
            self._drawn = len(shown)
        elif time.monotonic() - self._last >= _LINE_EVERY:
            self._last = time.monotonic()
            self._out.write(self._line(outcome) + "\n")
        self._out.flush()

    def say(self, line: str) -> None:
        """Write a line that stays."""
        if self._quiet:
            return
        try:
            self._erase()
            self._out.write(line + "\n")
            self._out.flush()
        except OSError:
            self._quiet = True

    def _erase(self) -> None:
        if self._drawn:
            self._out.write(f"\x1b[{self._drawn}F\x1b[J")
            self._drawn = 0

    def _line(self, outcome: RepetitionOutcome) -> str:
        counts, columns = outcome.records.counts, outcome.sampler.series.columns
        now, bound = (columns["t"][-1] if columns.get("t") else 0.0), counts["bound"]
        before, had = self._before
        if now < before:
            before, had = 0.0, 0
        rate = (bound - had) / (now - before) if now > before else 0.0
        self._before = (now, bound)
        ways = outcome.dispatching
        jobs = f"jobs {ways.dispatched:,}/{len(ways.jobs):,} dispatched · " if ways is not None else ""
        return (
            f"{now:5.0f} s  {jobs}pods {bound:,}/{counts['created']:,} scheduled · {rate:,.0f}/s · "
            f"{outcome.records.running:,} running · {outcome.records.pending:,} pending"
        )


def bars(outcome: RepetitionOutcome) -> Iterator[str]:
    """A line for each GPU product and zone: how much of it is allocated."""
    cells = outcome.records.allocation.by_cell()
    width = max((len(" ".join(cell)) for cell in cells), default=0)
    for (product, zone), share in list(cells.items())[:_MOST_CELLS]:
        filled = round(_BAR * share.allocated / share.capacity)
        bar = "█" * filled + "░" * (_BAR - filled)
        yield f"  {product + ' ' + zone:<{width}} {bar} {share.allocated:,.6g}/{share.capacity:,.0f} GPUs"
    if len(cells) > _MOST_CELLS:
        yield f"  … and {len(cells) - _MOST_CELLS} more"
