"""Identify a process in text, so that another process can tell whether the first still runs.

A pid alone is reused, a host's name is shared, and a clock can step. So a process is identified by its kernel (the id
of its boot), its pid namespace, its pid there, and the ticks from the boot to its start (man 5 proc, field 22 of
/proc/PID/stat), which no clock changes.
"""

import os
from pathlib import Path

from kumulus.host import machine

_PROC = Path("/proc")
_BOOT = _PROC / "sys/kernel/random/boot_id"
# Where they are among the fields.
_STATE, _STARTED = 2, 21
# The process has ended, but its parent has not yet asked for its exit status.
_ENDED = ("Z", "X", "x")


def own() -> str:
    """This process: its machine, boot, pid namespace, pid and start, separated by spaces."""
    return _named(os.getpid())


def parent() -> str | None:
    """The process that started this one, in the format of :func:`own`; None where that cannot be looked up."""
    try:
        return _named(os.getppid())
    except OSError:
        return None


def runs(process: str) -> bool | None:
    """Whether a process that :func:`own` has named still runs; None where that cannot be known from here.

    It cannot for processes of another machine, of another user or container on this one, and for malformed names; nor,
    where another machine may have this one's id (:func:`machine.is_alone`), for processes of another boot.
    """
    parts = process.split(" ")
    if len(parts) != 5:
        return None
    its_machine, boot, namespace, pid, started = parts
    if boot != _boot():
        # If it is this machine, it has been rebooted since, and no process outlives that.
        return False if machine.is_alone() and its_machine == machine.this().id else None
    if namespace != _namespace():
        return None
    try:
        stat = _stat(int(pid))
    except (OSError, ValueError):
        return False
    return stat[_STARTED] == started and stat[_STATE] not in _ENDED


def _named(pid: int) -> str:
    return f"{machine.this().id} {_boot()} {_namespace()} {pid} {_stat(pid)[_STARTED]}"


def _boot() -> str:
    return _BOOT.read_text().strip()


def _namespace() -> str:
    return str((_PROC / "self/ns/pid").stat().st_ino)


def _stat(pid: int) -> list[str]:
    """The fields of a process; its name, the second, is in brackets, and may contain spaces and brackets."""
    pid_and_name, _, rest = (_PROC / str(pid) / "stat").read_text().rpartition(")")
    return [*pid_and_name.split(" (", maxsplit=1), *rest.split()]
