"""The cluster's own scheduler, stopped and started: a process of the kwok runtime with its own command line."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import psutil

from kumulus.host import processes
from kumulus.lab.cluster.components import SCHEDULER, Components
from kumulus.lab.errors import LabError


class OwnScheduler:
    """Stops and starts the scheduler of a local cluster.

    Args:
        directory: the cluster's directory.
        components: its processes.
    """

    def __init__(self, directory: Path, components: Components) -> None:
        self._directory = directory
        self._components = components
        self._how: tuple[list[str], dict[str, str], str] | None = None

    @property
    def stopped(self) -> bool:
        """Whether it was stopped here and not started again."""
        return self._how is not None

    def stop(self) -> None:
        """End it.

        Raises:
            LabError: it does not run on this machine.
        """
        pids = self._components.pids(SCHEDULER)
        if not pids:
            raise LabError(
                "the cluster's scheduler does not run on this machine, so the timeline cannot stop it; "
                "leave scheduler: out of the timeline, or use a stack of the kwok runtime"
            )
        process = psutil.Process(pids[0])
        self._how = (process.cmdline(), process.environ(), process.cwd())
        processes.end(pids)

    def start(self) -> None:
        """Start it again, as it was started before."""
        if self._how is None:
            return
        command, environment, directory = self._how
        log = self._directory / "logs" / f"{SCHEDULER}.log"
        with log.open("ab") as out:
            started = subprocess.Popen(
                command,
                env=environment,
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
                umask=0o077,
            )
        self._how = None
        # kwokctl trusts its pid files.
        pid_file = self._directory / "pids" / f"{SCHEDULER}.pid"
        if pid_file.parent.is_dir():
            pid_file.write_text(str(started.pid))
        self._components.look({SCHEDULER: [started.pid]})

    def log_tail(self) -> str:
        """The last line of its log."""
        try:
            with (self._directory / "logs" / f"{SCHEDULER}.log").open("rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - 4096))
                lines = log.read().decode(errors="replace").splitlines()
        except OSError:
            return ""
        return lines[-1][:300] if lines else ""
