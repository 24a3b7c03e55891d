"""Find processes in the process table, as those that run from one directory; and end them.

A cluster's are started as ``<directory>/bin/<program>``. Pid files go stale at a reboot: a recycled pid would count as
running, and stopping would kill a stranger. So the process table is asked instead: a process is ours when its
``argv[0]`` lies in the directory's ``bin``.
"""

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path

import psutil

# man 2 prctl: PR_SET_PDEATHSIG is 1, SIGKILL 9. The process that it is tied to may have ended before the call.
_TIED = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9)
if os.getppid() == int(sys.argv[1]):
    os.execvp(sys.argv[2], sys.argv[2:])
"""


def tied(command: Sequence[str]) -> list[str]:
    """A command that runs this one so that the kernel kills it when the thread that starts it ends; on Linux alone.

    A wrapper asks for that: to ask between fork and exec is not safe in a process with threads.
    """
    wrapper = [sys.executable, "-I", "-S", "-c", _TIED, str(os.getpid())] if sys.platform == "linux" else []
    return [*wrapper, *command]


def running(directory: Path) -> dict[str, list[int]]:
    """Return the pids of the directory's running programs, by program name.

    Args:
        directory: such as a cluster's directory, spelled as it was when they were started.
    """
    prefix = str(directory / "bin") + "/"
    found: dict[str, list[int]] = {}
    for process in psutil.process_iter(["cmdline"]):
        # That of a zombie is empty; asking for the status of each process would take twice as long.
        command = process.info["cmdline"]
        if command and command[0].startswith(prefix):
            found.setdefault(command[0][len(prefix) :], []).append(process.pid)
    return found


def with_directories(parent: str) -> dict[Path, list[int]]:
    """Return the pids of all users' programs that run from directories in a folder of some name, by directory.

    Args:
        parent: the folder's name, such as ``clusters``.
    """
    found: dict[Path, list[int]] = {}
    for process in psutil.process_iter(["cmdline"]):
        program = Path((process.info["cmdline"] or [""])[0])
        match program.parts[-4:]:
            case [folder, _, "bin", _] if folder == parent and program.is_absolute():
                found.setdefault(program.parents[1], []).append(process.pid)
    return found


def user_and_memory(pids: Iterable[int]) -> tuple[str, int]:
    """The user of the processes that still run, and the resident memory that they take together, in bytes."""
    user, memory = "", 0
    for pid in pids:
        with suppress(psutil.Error):
            process = psutil.Process(pid)
            user, memory = process.username(), memory + process.memory_info().rss
    return user, memory


def orphaned(directory: Path, programs: Mapping[str, Sequence[int]]) -> set[int]:
    """Return the pids of the directory's programs whose working directory is no longer the one at that path.

    They work in the directory that was at that path before it was moved away, or restored from a copy.
    """
    return _pids_where(programs, lambda pid: not os.path.samestat(os.stat(f"/proc/{pid}/cwd"), os.stat(directory)))


def suspended(programs: Mapping[str, Sequence[int]]) -> set[int]:
    """Return the pids of processes that a signal has stopped: they exist, but do nothing."""
    return _pids_where(programs, lambda pid: psutil.Process(pid).status() == psutil.STATUS_STOPPED)


def _pids_where(programs: Mapping[str, Sequence[int]], condition: Callable[[int], bool]) -> set[int]:
    """The pids for which a condition holds; a process that has ended meanwhile, or cannot be read, is left out."""
    found = set()
    for pid in chain(*programs.values()):
        with suppress(OSError, psutil.Error):
            if condition(pid):
                found.add(pid)
    return found


def youngest(pids: Iterable[int]) -> float:
    """For how many seconds all of these processes have run; 0 where one has ended."""
    try:
        return time.time() - max(psutil.Process(pid).create_time() for pid in pids)
    except psutil.Error:
        return 0.0


def naming(program: str, argument: str) -> list[int]:
    """Return the pids of a program's processes that were started with this argument, such as a path of ours."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        command = process.info["cmdline"] or []
        # A script is the second word, after its interpreter.
        programs = {Path(each).name for each in command[:2]}
        if program in programs and argument in command[1:] and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process.pid)
    return found


def with_variable(name: str, value: str) -> list[int]:
    """Return the pids of this user's processes that have an environment variable with a value."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.environ().get(name) == value and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
    return found


def end(pids: list[int], timeout: float = 10.0) -> None:
    """Kill processes and wait until they are gone.

    With SIGKILL, like kwokctl: etcd's data survives it (write-ahead log), and no other program stores any.
    """
    processes = []
    for pid in pids:
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            process.kill()
            processes.append(process)
    deadline = time.monotonic() + timeout
    while any(_is_alive(process) for process in processes) and time.monotonic() < deadline:
        time.sleep(0.01)


def _is_alive(process: psutil.Process) -> bool:
    """Whether it still runs: a zombie holds no file and no port, and only waits for its parent to notice.

    The first of several threads may be a zombie while others still hold files and ports.
    """
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE or process.num_threads() > 1)
    except psutil.NoSuchProcess:
        return False


def listener(port: int) -> str:
    """Name the process that listens on a local TCP port, for messages: ``pid 4711 (nginx)``, or "another process"."""
    with suppress(psutil.Error):
        for connection in psutil.net_connections(kind="tcp"):
            if connection.status == psutil.CONN_LISTEN and connection.laddr[1:] == (port,) and connection.pid:
                return f"pid {connection.pid} ({psutil.Process(connection.pid).name()})"
    return "another process"
