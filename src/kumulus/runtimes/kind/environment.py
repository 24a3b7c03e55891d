"""The variables to run kind with.

kind starts its nodes by `docker run --privileged`, which asks for every capability there is. An engine that lacks one
itself, as in some containers and virtual machines, refuses. Only there, `shim/docker` is put before the real `docker`
on kind's PATH, and does not ask for the missing one; see docs/decisions/kind-offline.md.
"""

import os
import re
import shutil
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

# By number, from linux/capability.h.
# fmt: off
_NAMES = (
    "CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP",
    "LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "IPC_OWNER",
    "SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT", "SYS_ADMIN", "SYS_BOOT", "SYS_NICE",
    "SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD", "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP",
    "MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ", "PERFMON", "BPF",
    "CHECKPOINT_RESTORE",
)
# fmt: on
_DEFAULT_SOCKET = "unix:///var/run/docker.sock"
_PROC = Path("/proc")
_SECONDS = 2.0


SHIM = Path(__file__).resolve().parent / "shim"


@dataclass(frozen=True)
class Environment:
    """How to run kind on this machine."""

    variables: Mapping[str, str]
    """Its whole environment."""
    notice: str
    """A line for the user about what is unusual; empty if nothing is."""


def environment(base: Mapping[str, str]) -> Environment:
    """How to run kind, given its usual variables; these are unchanged wherever `--privileged` works."""
    missing = withheld(base)
    folders = [folder for folder in base.get("PATH", os.defpath).split(os.pathsep) if folder != str(SHIM)]
    docker = shutil.which("docker", path=os.pathsep.join(folders)) if missing else None
    if docker is None:
        return Environment(dict(base), "")
    variables = {
        **base,
        "PATH": os.pathsep.join([str(SHIM), *folders]),
        "KUMULUS_DOCKER": docker,
        "KUMULUS_CAPABILITIES_WITHHELD": " ".join(missing),
    }
    names = " and ".join(f"CAP_{name}" for name in missing)
    return Environment(variables, f"Docker's engine lacks {names}: kind's nodes go without (docs/clusters.md)")


# Which capabilities Docker's engine cannot give, read from the engine's own process, not from this one.


def withheld(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The capabilities that the engine lacks and so cannot give to a privileged container, such as `SYS_RESOURCE`.

    Empty where they cannot be known: for an engine on another machine, or in another pid namespace.

    Args:
        environment: the variables that the `docker` command is run with.
    """
    address = environment.get("DOCKER_HOST") or _DEFAULT_SOCKET
    if not address.startswith("unix://"):
        return ()
    pid = _listener(address.removeprefix("unix://"))
    return lacking(pid) if pid is not None else ()


def lacking(pid: int) -> tuple[str, ...]:
    """The capabilities that this kernel has and a process can never have, read from its bounding set."""
    try:
        status = (_PROC / str(pid) / "status").read_text()
        last = int((_PROC / "sys/kernel/cap_last_cap").read_text())
    except (OSError, ValueError):
        return ()
    bounding = re.search(r"^CapBnd:\s*([0-9a-f]+)$", status, re.MULTILINE)
    if bounding is None:
        return ()
    bits = int(bounding[1], 16)
    return tuple(name for number, name in enumerate(_NAMES[: last + 1]) if not bits >> number & 1)


def _listener(path: str) -> int | None:
    # The kernel reports the process that began to listen, or 0 if this process cannot see it.
    peer = getattr(socket, "SO_PEERCRED", None)
    if peer is None:
        return None
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_SECONDS)
        try:
            connection.connect(os.fspath(path))
            credentials = connection.getsockopt(socket.SOL_SOCKET, peer, struct.calcsize("3i"))
        except OSError:
            return None
    pid: int = struct.unpack("3i", credentials)[0]
    return pid or None
