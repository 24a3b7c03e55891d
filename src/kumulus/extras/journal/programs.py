"""Describe a program of a local cluster that is stopped for a while, and start it again as it was."""

import os
import subprocess
from pathlib import Path

import psutil

from kumulus.extras.journal.changes import StoppedProgram
from kumulus.host import files, processes

# The variables that Kubernetes programs read. Others may contain the user's secrets, which belong in no file.
_ENVIRONMENT = (
    *("PATH", "HOME", "TMPDIR", "LANG", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("GOGC", "GOMEMLIMIT", "GOMAXPROCS", "GODEBUG"),
)


def described(directory: Path, name: str, pid: int) -> StoppedProgram:
    """What is needed to restart a program that is about to be stopped.

    Raises:
        psutil.Error: it has ended.
    """
    process = psutil.Process(pid)
    environment = {key: value for key, value in process.environ().items() if key in _ENVIRONMENT}
    return StoppedProgram(str(directory), name, tuple(process.cmdline()), environment, process.cwd())


def start(stopped: StoppedProgram) -> int:
    """Start a program again, unless it runs; returns its pid.

    Raises:
        OSError: it cannot be started, as when its cluster is gone.
    """
    directory = Path(stopped.directory)
    if pids := processes.running(directory).get(stopped.name):
        return pids[0]
    log = directory / "logs" / f"{stopped.name}.log"
    with log.open("ab") as out:
        started = subprocess.Popen(
            stopped.command,
            env=dict(stopped.environment),
            cwd=stopped.working_directory if os.path.isdir(stopped.working_directory) else directory,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            umask=0o077,
        )
    # kwokctl relies on its pid files.
    pid_file = directory / "pids" / f"{stopped.name}.pid"
    if pid_file.parent.is_dir():
        files.write(pid_file, str(started.pid))
    return started.pid
