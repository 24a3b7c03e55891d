"""Find, and end, the processes of one cluster.

kwokctl starts each component as ``<cluster directory>/bin/<component>`` and trusts pid files that go stale at a
reboot: a recycled pid would count as running, and stopping would kill a stranger. So the process table is asked
instead: a process is ours when its ``argv[0]`` lies in the cluster's ``bin`` directory.
"""

from __future__ import annotations

import time
from pathlib import Path

import psutil


def running(directory: Path) -> dict[str, list[int]]:
    """Return the pids of the cluster's components that run, by component name.

    Args:
        directory: the cluster's directory, as kwokctl was given it.
    """
    prefix = str(directory / "bin") + "/"
    found: dict[str, list[int]] = {}
    for process in psutil.process_iter(["cmdline", "status"]):
        command = process.info["cmdline"]
        if command and command[0].startswith(prefix) and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.setdefault(command[0][len(prefix) :], []).append(process.pid)
    return found


def ended(directory: Path) -> str | None:
    """Name a component that kwokctl has started, by its pid file, and that does not run; None when all do.

    Args:
        directory: the cluster's directory.
    """
    prefix = str(directory / "bin") + "/"
    for file in sorted((directory / "pids").glob("*.pid")):
        try:
            process = psutil.Process(int(file.read_text()))
            if process.status() != psutil.STATUS_ZOMBIE and process.cmdline()[:1] == [prefix + file.stem]:
                continue
        except (psutil.Error, OSError, ValueError):
            pass
        return file.stem
    return None


def setting_up(home: Path, name: str) -> list[int]:
    """Return the pids of kwokctl runs for a cluster that outlived the plugin that began them.

    Args:
        home: the ``KWOK_WORKDIR`` of the cluster.
        name: the cluster's name.
    """
    found = []
    for process in psutil.process_iter(["cmdline"]):
        command = process.info["cmdline"]
        if not command or Path(command[0]).name != "kwokctl" or command[1:3] != ["--name", name]:
            continue
        try:
            if process.environ().get("KWOK_WORKDIR") == str(home):
                found.append(process.pid)
        except (psutil.Error, OSError):
            continue
    return found


def end(pids: list[int], timeout: float = 10.0) -> None:
    """Kill processes and wait until they are gone.

    SIGKILL as kwokctl itself does: etcd's data survives it (write-ahead log), and nothing else holds any.

    Args:
        pids: processes found by :func:`running` just before.
        timeout: seconds to wait.
    """
    processes = []
    for pid in pids:
        try:
            process = psutil.Process(pid)
            process.kill()
            processes.append(process)
        except psutil.NoSuchProcess:
            continue
    deadline = time.monotonic() + timeout
    while any(_lives(process) for process in processes) and time.monotonic() < deadline:
        time.sleep(0.01)


def _lives(process: psutil.Process) -> bool:
    """Whether it still runs: a zombie holds no file and no port, and only waits for its parent to notice.

    Of several threads the first may be a zombie while others still hold both.
    """
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE or process.num_threads() > 1)
    except psutil.NoSuchProcess:
        return False


def correct_pid_files(directory: Path, components: dict[str, list[int]]) -> None:
    """Make kwokctl's pid files say what the process table says, so that it starts what is dead and only that."""
    folder = directory / "pids"
    folder.mkdir(exist_ok=True)
    for file in folder.glob("*.pid"):
        if file.stem not in components:
            file.unlink()
    for name, pids in components.items():
        (folder / f"{name}.pid").write_text(str(pids[0]))


def listener(port: int) -> str:
    """Say who listens on a local TCP port, for an error message: ``pid 4711 (nginx)``, or "another process"."""
    try:
        for connection in psutil.net_connections(kind="tcp"):
            if connection.status == psutil.CONN_LISTEN and connection.laddr[1:] == (port,) and connection.pid:
                return f"pid {connection.pid} ({psutil.Process(connection.pid).name()})"
    except psutil.Error:
        pass
    return "another process"
