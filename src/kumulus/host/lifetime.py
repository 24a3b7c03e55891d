"""Which process it is, in words that another process understands: so that it can tell whether the first still runs.

A pid alone is given again, a host's name is shared, and a clock can step. So a process is known by its kernel (the id
of its boot), the pid namespace it is in, its pid there, and the ticks from the boot to its start (man 5 proc, field 22
of /proc/PID/stat), which no clock changes.
"""

from __future__ import annotations

import os
from pathlib import Path

from kumulus.host import machine

_PROC = Path("/proc")
_BOOT = _PROC / "sys/kernel/random/boot_id"
_STARTED, _STATE = 21, 2
# Gone, but for its parent that has not asked how it ended.
_ENDED = ("Z", "X", "x")


def own() -> str:
    """This process: its machine, boot, pid namespace, pid and start, apart by a space."""
    return _named(os.getpid())


def parent() -> str | None:
    """The process that started this one, as :func:`own` names one; None where that cannot be looked up."""
    try:
        return _named(os.getppid())
    except OSError:
        return None


def runs(process: str) -> bool | None:
    """Whether a process that :func:`own` has named still runs; None where that cannot be known from here.

    It cannot of another machine's, of another user's or container's on this one, and of what was never a name.
    """
    parts = process.split(" ")
    if len(parts) != 5:
        return None
    its_machine, boot, namespace, pid, started = parts
    if boot != _boot():
        # The machine has been started again since, and nothing outlives that.
        return False if its_machine == machine.this().id else None
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
    """The fields of a process; its name, the second, may have spaces and brackets in it."""
    head, _, rest = (_PROC / str(pid) / "stat").read_text().rpartition(")")
    return [head.partition(" ")[0], head, *rest.split()]
