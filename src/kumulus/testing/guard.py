"""The process that takes a cluster down when the process it is for has ended, however that ended.

    python -P -m kumulus.testing.guard FOLDER PID

It waits for that process with a pidfd; meanwhile, it uses no CPU, and has imported nothing that it needs only later.
"""

import json
import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

_PACKAGES = Path(__file__).resolve().parents[2]
NOTE = "guard.json"
"""The file in a cluster's folder that says by which process it is guarded."""


class NotGuarded(Exception):
    """There is no process of that id to guard a cluster for."""


def begin(folder: Path, pid: int) -> int:
    """Start a guard, which is on watch when this returns; returns its process id.

    Args:
        pid: the process that the cluster ends with.

    Raises:
        NotGuarded: there is no such process.
    """
    process = subprocess.Popen(
        # -P keeps the working directory off the import path.
        [sys.executable, "-P", "-m", "kumulus.testing.guard", str(folder), str(pid)],
        env={**os.environ, "PYTHONPATH": str(_PACKAGES)},
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        # A Ctrl-C does not reach it.
        start_new_session=True,
    )
    assert process.stdout is not None
    with process.stdout:
        if not process.stdout.read(1):
            process.wait()
            raise NotGuarded(f"there is no process {pid} for the cluster to end with")
    (folder / NOTE).write_text(json.dumps({"pid": process.pid}), encoding="utf-8")
    # It may outlive this process, and Popen would complain of that. :func:`dismiss` collects its exit status.
    process.returncode = 0
    return process.pid


def dismiss(folder: Path) -> None:
    """End a cluster's guard, if it has one and is not this process."""
    try:
        pid = int(json.loads((folder / NOTE).read_text(encoding="utf-8"))["pid"])
        command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError, KeyError, TypeError):
        return
    # The id may be another process's by now.
    if pid != os.getpid() and os.fsencode(folder) in command and b"kumulus.testing.guard" in command:
        os.kill(pid, signal.SIGKILL)
        # It may be another process's child.
        with suppress(ChildProcessError):
            os.waitpid(pid, 0)
    (folder / NOTE).unlink(missing_ok=True)


def main(arguments: list[str]) -> None:
    """Wait for the end of the process, and take the cluster down."""
    folder, pid = Path(arguments[0]), int(arguments[1])
    watched = os.pidfd_open(pid)
    os.write(1, b".")
    os.close(1)
    waiting = select.poll()
    waiting.register(watched, select.POLLIN)
    waiting.poll()
    from kumulus.testing.plane import remove

    remove(folder)


if __name__ == "__main__":
    main(sys.argv[1:])
