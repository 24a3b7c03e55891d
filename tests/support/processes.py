"""Processes that a test's commands left running, and their ports: from the process table, not from pid files."""

import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psutil

HOME_VARIABLE = "KUMULUS_HOME"


def components(home: Path) -> dict[str, list[int]]:
    """Pids of the control planes' processes below a KUMULUS_HOME, by ``<cluster>/<component>``."""
    prefix = f"{home}/clusters/"
    found: dict[str, list[int]] = {}
    for process in psutil.process_iter(["cmdline"]):
        # That of a zombie is empty.
        command = process.info["cmdline"]
        if command and command[0].startswith(prefix):
            cluster, _, component = command[0].removeprefix(prefix).partition("/bin/")
            found.setdefault(f"{cluster}/{component}", []).append(process.pid)
    return found


def helpers(home: Path) -> dict[int, str]:
    """Other processes of a KUMULUS_HOME: pulumi, its language host, its plugins; command lines by pid."""
    ours = {pid for pids in components(home).values() for pid in pids}
    found: dict[int, str] = {}
    for process in psutil.process_iter(["cmdline", "status"]):
        if process.pid in ours or process.pid == os.getpid() or process.info["status"] == psutil.STATUS_ZOMBIE:
            continue
        try:
            mine = process.environ().get(HOME_VARIABLE) == str(home)
        except (psutil.Error, OSError):
            continue
        if mine:
            found[process.pid] = " ".join(process.info["cmdline"] or [])
    return found


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """A process that is stopped by a signal, all the time; it goes on afterwards."""
    process = psutil.Process(pid)
    process.suspend()
    try:
        # A signal is not there at once: each of its threads has to have come to a stop.
        while process.status() != psutil.STATUS_STOPPED:
            time.sleep(0.01)
        yield
        assert process.status() == psutil.STATUS_STOPPED
    finally:
        process.resume()


@contextmanager
def occupied(port: int = 0) -> Iterator[int]:
    """Listen on a port of this machine."""
    with closing(socket.socket()) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen()
        yield listener.getsockname()[1]


def kill(pids: Iterable[int]) -> None:
    """Kill processes and wait until they are gone."""
    doomed = []
    for pid in pids:
        try:
            process = psutil.Process(pid)
            process.kill()
            doomed.append(process)
        except psutil.NoSuchProcess:
            continue
    # One that waits for the disk goes only when that has answered.
    await_that(lambda: not any(map(_lives, doomed)), 120, "killed processes are gone")


def await_that(holds: Callable[[], bool], timeout: float, what: str, pause: float = 0.02) -> None:
    """Poll until a condition holds that cannot be watched, such as the end of a process."""
    give_up = time.monotonic() + timeout
    while not holds():
        assert time.monotonic() < give_up, f"after {timeout:.0f} s still not so: {what}"
        time.sleep(pause)


def await_amid(
    process: subprocess.Popen[Any],
    holds: Callable[[], object],
    timeout: float,
    pause: float = 0.02,
    log: Path | None = None,
) -> None:
    """Poll until a condition holds while a process lives; what it has said is shown where it ends before.

    Args:
        log: the file that it writes to; None where it has pipes.
    """
    give_up = time.monotonic() + timeout
    while not holds():
        assert process.poll() is None, log.read_text() if log else process.communicate()
        assert time.monotonic() < give_up, log and log.read_text()
        time.sleep(pause)


@contextmanager
def repeated(look: Callable[[], object], pause: float) -> Iterator[None]:
    """Do something again and again on another thread while the block runs; ``pause`` is in seconds."""
    ended = threading.Event()

    def run() -> None:
        while not ended.wait(pause):
            look()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _lives(process: psutil.Process) -> bool:
    try:
        # The main thread may be a zombie while other threads still hold files and ports.
        return bool(process.status() != psutil.STATUS_ZOMBIE or process.num_threads() > 1)
    except psutil.NoSuchProcess:
        return False
