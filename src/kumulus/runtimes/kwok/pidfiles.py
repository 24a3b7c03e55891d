"""kwokctl's pid files, which go stale, and runs of kwokctl that outlived the plugin."""

from __future__ import annotations

from pathlib import Path

import psutil

from kumulus.host import files


def ended(directory: Path) -> str | None:
    """Name a component that kwokctl has started, by its pid file, but that does not run; None when all do."""
    prefix = str(directory / "bin") + "/"
    for file in sorted((directory / "pids").glob("*.pid")):
        try:
            process = psutil.Process(int(file.read_text()))
            # Without a command line it is just being loaded, which takes a while from a busy disk.
            if process.status() != psutil.STATUS_ZOMBIE and process.cmdline()[:1] in ([], [prefix + file.stem]):
                continue
        except (psutil.Error, OSError, ValueError):
            pass
        return file.stem
    return None


def setting_up(home: Path, name: str) -> list[int]:
    """Return the pids of kwokctl runs for a cluster that outlived the plugin that started them.

    Args:
        home: the ``KWOK_WORKDIR`` of the cluster.
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


def correct_pid_files(directory: Path, components: dict[str, list[int]]) -> None:
    """Make kwokctl's pid files agree with the process table, so that kwokctl starts only the dead components."""
    folder = directory / "pids"
    folder.mkdir(exist_ok=True)
    for file in folder.glob("*.pid"):
        if file.stem not in components:
            file.unlink()
    for name, pids in components.items():
        files.write(folder / f"{name}.pid", str(pids[0]))
