"""Run kind and container tools, each with all that it starts ended if it is given up; the variables that kind needs.

kind starts its nodes by `docker run --privileged`, which asks for every capability there is. An engine that lacks one
itself, as in some containers and virtual machines, refuses. Only there, `shim/docker` is put before the real `docker`
on kind's PATH, and does not ask for the missing one; see docs/decisions/kind-offline.md.
"""

import asyncio
import os
import re
import shutil
import signal
import socket
import struct
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_LINES_KEPT = 60
# For the output of a killed command to end.
_ENDING_S = 5.0


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    code: int
    stdout: str
    stderr: str
    """The last lines of its standard error."""


class CommandCancelled(Exception):
    """The user cancelled; the command was ended."""


class CommandTimeout(Exception):
    """The command did not end in time; it was ended."""


async def run(
    *arguments: str,
    timeout: float,
    environment: Mapping[str, str] | None = None,
    on_line: Callable[[str], None] | None = None,
    stop: asyncio.Event | None = None,
) -> Ended:
    """Run an executable with arguments and wait for its end.

    ``timeout`` is in seconds; ``environment`` is all its variables, those of this process by default; ``on_line`` is
    called with every line of its standard error; ``stop`` ends it when it is set.

    Raises:
        FileNotFoundError: there is no such executable.
        CommandCancelled: ``stop`` was set.
        CommandTimeout: it did not end in time.
    """
    process = await asyncio.create_subprocess_exec(
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment,
        umask=0o077,
        # Ctrl-C in the terminal is for Pulumi's engine, which passes it on; and the command's children end with it.
        start_new_session=True,
        limit=1 << 20,
    )
    reading = asyncio.create_task(_output(process, on_line))
    stopping = asyncio.create_task(stop.wait()) if stop else None
    try:
        waiting = {reading, stopping} if stopping else {reading}
        done, _ = await asyncio.wait(waiting, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        if reading in done:
            return reading.result()
        raise CommandCancelled if stopping in done else CommandTimeout
    finally:
        if stopping:
            stopping.cancel()
        # Also after an error of `on_line`.
        _end(process)
        await asyncio.wait({reading}, timeout=_ENDING_S)
        reading.cancel()


async def _output(process: asyncio.subprocess.Process, on_line: Callable[[str], None] | None) -> Ended:
    assert process.stdout is not None
    assert process.stderr is not None
    printed = asyncio.create_task(process.stdout.read())
    lines: list[str] = []
    try:
        async for raw in process.stderr:
            line = raw.decode(errors="replace").rstrip()
            lines.append(line)
            del lines[:-_LINES_KEPT]
            if on_line:
                on_line(line)
        return Ended(await process.wait(), (await printed).decode(errors="replace"), "\n".join(lines))
    finally:
        printed.cancel()


def _end(process: asyncio.subprocess.Process) -> None:
    """Kill the command and all that it has started, if it still runs."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


# By number, from linux/capability.h.
# fmt: off
_CAPABILITIES = (
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
_CONNECTING_S = 2.0
SHIM = Path(__file__).resolve().parent / "shim"


@dataclass(frozen=True)
class KindEnvironment:
    """How to run kind on this machine."""

    variables: Mapping[str, str]
    notice: str
    """A line for the user about what is unusual; empty if nothing is."""


def environment(base: Mapping[str, str]) -> KindEnvironment:
    """How to run kind, given its usual variables; these are unchanged wherever `--privileged` works."""
    missing = withheld(base)
    folders = [folder for folder in base.get("PATH", os.defpath).split(os.pathsep) if folder != str(SHIM)]
    docker = shutil.which("docker", path=os.pathsep.join(folders)) if missing else None
    if docker is None:
        return KindEnvironment(dict(base), "")
    variables = {
        **base,
        "PATH": os.pathsep.join([str(SHIM), *folders]),
        "KUMULUS_DOCKER": docker,
        "KUMULUS_CAPABILITIES_WITHHELD": " ".join(missing),
    }
    names = " and ".join(f"CAP_{name}" for name in missing)
    return KindEnvironment(variables, f"Docker's engine lacks {names}: kind's nodes go without (docs/clusters.md)")


def withheld(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The capabilities that the engine lacks and so cannot give to a privileged container, such as `SYS_RESOURCE`.

    They are those of its own process. Empty where that is out of sight: on another machine, in another pid namespace.
    """
    address = environment.get("DOCKER_HOST") or _DEFAULT_SOCKET
    if not address.startswith("unix://"):
        return ()
    pid = _listener(address.removeprefix("unix://"))
    return _lacking(pid) if pid is not None else ()


def _lacking(pid: int) -> tuple[str, ...]:
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
    return tuple(name for number, name in enumerate(_CAPABILITIES[: last + 1]) if not bits & (1 << number))


def _listener(path: str) -> int | None:
    """The process that began to listen at a socket; None if it is out of our sight: the kernel then reports 0."""
    peer = getattr(socket, "SO_PEERCRED", None)
    if peer is None:
        return None
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_CONNECTING_S)
        try:
            connection.connect(os.fspath(path))
            credentials = connection.getsockopt(socket.SOL_SOCKET, peer, struct.calcsize("3i"))
        except OSError:
            return None
    pid: int = struct.unpack("3i", credentials)[0]
    return pid or None
