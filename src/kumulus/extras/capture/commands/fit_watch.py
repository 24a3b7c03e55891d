"""`kumulus fit --watch`: a clone that follows its source, and a line whenever the answer is another one."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from kumulus.cli import which
from kumulus.extras.capture.commands import capture, catching_up, fit

if TYPE_CHECKING:
    from pathlib import Path

    from kumulus.extras.capture.fit import Answer
    from kumulus.extras.capture.probe import Probe
    from kumulus.kube import Connection


def watch(args: argparse.Namespace, clone: which.Which, wanted: Probe) -> int:
    """Follow the source until Ctrl-C; the clone stays, without the pods that were tried in it.

    Args:
        args: the command's.
        clone: the capture's clone.
        wanted: the pods that are to fit.

    Raises:
        UserError: there is no such source, it is another cluster, or the clone's stack file was changed.
        NotTheClone: the clone is no longer that of the capture.
    """
    source = capture.connection(args.kubeconfig, args.context)
    report = Said(wanted)
    while True:
        began = time.monotonic()
        report.of(*_look(args.on, source, clone, wanted))
        time.sleep(max(0.0, began + args.every - time.monotonic()))


class Said:
    """Prints answers and troubles, but not the same one twice in a row."""

    def __init__(self, wanted: Probe) -> None:
        self._wanted = wanted
        self._troubles: list[str] = []
        self._last: int | None = None

    def of(self, answer: Answer | None, troubles: list[str]) -> None:
        """Print an answer if it differs from the last one, and troubles that are new.

        Args:
            answer: None if there is none at the moment.
            troubles: why there is none, or what the clone lacks.
        """
        now = time.strftime("%H:%M:%S")
        for each in troubles:
            if each not in self._troubles:
                print(f"{now}  {each}; going on", flush=True)
        self._troubles = troubles
        if answer is None or answer.verdict.fitted == self._last:
            return
        verdict = answer.verdict
        before = "" if self._last is None else f", before {self._last:,}"
        why = "" if verdict.all_fit else f": {verdict.reason or 'the scheduler does not say'}"
        print(f"{now}  {self._wanted.name}: {verdict.fitted:,} of {verdict.wanted:,} pods fit{before}{why}", flush=True)
        self._last = verdict.fitted


def _look(directory: Path, source: Connection, clone: which.Which, wanted: Probe) -> tuple[Answer | None, list[str]]:
    """The answer from a clone brought up to date with its source, and what is wrong, if anything."""
    from kumulus.extras.capture.dry import Undecided
    from kumulus.extras.capture.live import Expired
    from kumulus.extras.journal.errors import JournalError
    from kumulus.kube import ApiError, Unreachable

    try:
        lacks = catching_up.catch_up(directory, source, clone)
        return fit.ask(clone, wanted, directory, changes=False), lacks
    except Expired as error:
        return None, [f"the source does not take these credentials: {error}"]
    except (Undecided, ApiError, JournalError, Unreachable) as error:
        return None, [str(error)]
    except OSError as error:
        return None, [f"{error.filename or directory}: {error.strerror or error}"]
