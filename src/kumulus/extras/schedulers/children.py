"""Child processes of one directory: each runs as `bin/<name>` there and writes to `logs/<name>.log`."""

import os
import signal
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO

from kumulus.extras.schedulers.errors import SchedulerError
from kumulus.extras.schedulers.launch.plan import SchedulerProgram
from kumulus.host import processes
from kumulus.host.files import last_lines

_LINES_OF_LOG = 8
# Go collects garbage each time the heap has doubled; the control plane's programs let it grow threefold, and so do
# these, so that a comparison with the cluster's own scheduler is fair.
_ENVIRONMENT = {"GOGC": "200"}
# Variables that would make a program believe that it runs in a pod, or use one of the user's clusters.
_NOT_INHERITED = ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "KUBECONFIG", "POD_NAMESPACE", "NAMESPACE")


def start(directory: Path, program: SchedulerProgram, output: IO[bytes] | None = None) -> subprocess.Popen[bytes]:
    """Start a program that ends when the calling thread does; returns at once. The ``output`` is its log by default."""
    executable, log = directory / "bin" / program.name, log_file(directory, program.name)
    for folder in (executable.parent, log.parent):
        folder.mkdir(mode=0o700, exist_ok=True)
    executable.unlink(missing_ok=True)
    executable.symlink_to(program.binary)
    if not os.access(executable, os.X_OK) or program.binary.is_dir():
        raise SchedulerError(f"{program.binary} is not an executable file\n  Check the scheduler's binary")
    inherited = {name: value for name, value in os.environ.items() if name not in _NOT_INHERITED}
    with log.open("ab") as file:
        try:
            # In a separate session, so that Ctrl-C reaches only our process, which then ends this one in good order.
            return subprocess.Popen(
                processes.tied([str(executable), *program.arguments]),
                cwd=directory,
                env={**inherited, **_ENVIRONMENT, **program.environment},
                stdin=subprocess.DEVNULL,
                stdout=output or file,
                stderr=output or file,
                start_new_session=True,
            )
        except OSError as error:
            raise SchedulerError(f"{program.binary} cannot be run: {error.strerror}") from None


def reader(directory: Path, program: SchedulerProgram) -> subprocess.Popen[bytes]:
    """Start the process that a program's output is piped through: it writes to the log and ends with its input."""
    log = log_file(directory, program.name)
    log.parent.mkdir(mode=0o700, exist_ok=True)
    with log.open("ab") as output:
        return subprocess.Popen(
            list(program.through),
            cwd=directory,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


def log_file(directory: Path, name: str) -> Path:
    """Where a program's output goes."""
    return directory / "logs" / f"{name}.log"


def log_tail(directory: Path, name: str) -> str:
    """The last lines of a program's output, indented; empty without output."""
    return last_lines(log_file(directory, name), _LINES_OF_LOG)


def running(directory: Path) -> dict[str, int]:
    """The pids of the processes that run from a directory, by program."""
    return {name: pids[0] for name, pids in processes.running(directory).items()}


def end(directory: Path, started: Iterable[subprocess.Popen[bytes]] = ()) -> None:
    """Kill the processes that run from a directory, and wait until they are gone: none of them has state to save.

    Of those that this one has ``started``, their own children are killed with them.
    """
    for process in started:
        # Until the process is waited for, no other process can get its pid.
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    processes.end([pid for pids in processes.running(directory).values() for pid in pids])
