"""The cluster's own scheduler, stopped and started: a process of the kwok runtime with its own command line."""

from __future__ import annotations

from pathlib import Path

from kumulus.extras.journal import programs
from kumulus.extras.journal.book import Journal
from kumulus.extras.journal.changes import Stopped
from kumulus.extras.lab.cluster.components import SCHEDULER, Components
from kumulus.extras.lab.errors import LabError
from kumulus.host import processes
from kumulus.host.files import last_lines


class OwnScheduler:
    """Stops and starts the scheduler of a local cluster.

    Args:
        directory: the cluster's directory.
        components: its processes.
        journal: makes sure the scheduler is started again if the run is killed.
    """

    def __init__(self, directory: Path, components: Components, journal: Journal) -> None:
        self._directory = directory
        self._components = components
        self._journal = journal
        self._how: Stopped | None = None

    @property
    def stopped(self) -> bool:
        """Whether it was stopped here and not started again."""
        return self._how is not None

    def stop(self) -> None:
        """Stop the scheduler.

        Raises:
            LabError: it does not run on this machine.
        """
        pids = self._components.pids(SCHEDULER)
        if not pids:
            raise LabError(
                "the cluster's scheduler does not run on this machine, so the timeline cannot stop it; "
                "leave scheduler: out of the timeline, or use a stack of the kwok runtime"
            )
        self._how = programs.described(self._directory, SCHEDULER, pids[0])
        self._journal.add(stopped=self._how)
        processes.end(pids)

    def start(self) -> None:
        """Start the scheduler again, as it was started before."""
        if self._how is None:
            return
        pid = programs.start(self._how)
        self._how = None
        self._journal.drop(stopped=None)
        self._components.look({SCHEDULER: [pid]})

    def log_tail(self) -> str:
        """The last line of the scheduler's log."""
        return last_lines(self._directory / "logs" / f"{SCHEDULER}.log", 1).strip()
