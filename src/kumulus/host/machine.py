"""Which machine this is, by an identity that no other machine has and a name for people; and its memory.

See docs/decisions/machine.md.
"""

import hashlib
import os
import re
import secrets
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from kumulus.host import files

MACHINE_ID = Path("/etc/machine-id")
_DIGITS = 32
_NAMESPACE = Path("/proc/self/ns/pid")
# PROC_PID_INIT_INO of include/linux/proc_ns.h: that of all processes outside containers.
_FIRST_NAMESPACE = 0xEFFFFFFC


@dataclass(frozen=True)
class HostMachine:
    """A machine, as one user of it."""

    id: str
    """Hexadecimal digits that reveal nothing else about it."""
    name: str
    """What its users call it; it may change, and two may have the same."""


def this(machine_id: Path = MACHINE_ID) -> HostMachine:
    """The machine that this process runs on.

    Args:
        machine_id: the file with systemd's machine id; without it, as in containers, only our own id counts.
    """
    parts = f"kumulus {_text(machine_id)} {_drawn()}"
    return HostMachine(hashlib.sha256(parts.encode()).hexdigest()[:_DIGITS], socket.gethostname() or "localhost")


def is_alone(machine_id: Path = MACHINE_ID, namespace: Path = _NAMESPACE) -> bool:
    """Whether no other machine can have the id of this one: what has it and another boot is this one before a reboot.

    Without systemd's id, machines with one home have one id. So have containers of one image, wherever they run.
    """
    try:
        outside = namespace.stat().st_ino == _FIRST_NAMESPACE
    except OSError:
        return False
    return outside and re.fullmatch("[0-9a-f]{32}", _text(machine_id)) is not None


def _drawn() -> str:
    """The random id of this user on this machine, drawn at the first call; empty where it cannot be stored.

    systemd's id alone is the same in each container of an image, and in each copy of a virtual machine.
    """
    file = state_home() / "kumulus" / "machine"
    if found := _text(file):
        return found
    with suppress(OSError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = file.with_name(f"machine.{os.getpid()}.tmp")
        try:
            temporary.write_text(f"{secrets.token_hex(16)}\n")
            # A power loss must leave neither an empty file nor none, which would make this another machine.
            files.sync(temporary)
            # When two processes draw at the same time, the first one's id stays.
            os.link(temporary, file)
            files.sync(file.parent)
        except FileExistsError:
            pass
        finally:
            temporary.unlink(missing_ok=True)
    return _text(file)


def state_home() -> Path:
    """Where this user's programs keep persistent state: `$XDG_STATE_HOME`, or `~/.local/state`."""
    configured = os.environ.get("XDG_STATE_HOME", "")
    # The XDG specification says that relative paths are to be ignored.
    return Path(configured) if os.path.isabs(configured) else Path.home() / ".local" / "state"


def _text(file: Path) -> str:
    try:
        return file.read_text().strip()
    except (OSError, ValueError):
        return ""


# The limits of control groups, versions 2 and 1; a container sees its own limit there.
_LIMITS = ("memory.max", "memory/memory.limit_in_bytes")


def memory_bytes(groups: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes of memory that programs started here may use together."""
    found = [int(psutil.virtual_memory().total)]
    for name in _LIMITS:
        try:
            text = (groups / name).read_text().strip()
        except OSError:
            continue
        if text.isdigit():
            found.append(int(text))
    return min(found)
