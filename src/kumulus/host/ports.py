"""Give each cluster local ports of its own, also when several are made at the same time.

kwokctl looks for unused ports by itself, but two runs at once can find the same ones before either listens. So a
port is claimed with a file lock first; the kernel drops the lock when its holder ends, however it ends.
"""

from __future__ import annotations

import fcntl
import os
import random
import socket
import stat
import tempfile
from pathlib import Path
from types import TracebackType

# Below Linux's ephemeral range (32768-60999), so that no outgoing connection takes a port before it is used.
_RANGE = range(20000, 32768)


class NoFreePort(Exception):
    """Not enough free ports in the range."""


def in_use(port: int) -> bool:
    """Whether something listens on that port of 127.0.0.1."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


class Claims:
    """Ports claimed until the context ends: long enough for the components to listen on them.

    Args:
        avoid: ports that stopped clusters will want back.
    """

    def __init__(self, avoid: set[int] | None = None) -> None:
        self._avoid = avoid or set()
        self._locks: dict[int, int] = {}
        self._folder = _folder()

    def __enter__(self) -> Claims:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for port, lock in self._locks.items():
            self.path(port).unlink(missing_ok=True)
            os.close(lock)
        self._locks.clear()

    def path(self, port: int) -> Path:
        """The file that stands for a port while it is claimed."""
        return self._folder / str(port)

    def take(self) -> int:
        """Claim a free port."""
        for port in random.sample(_RANGE, min(500, len(_RANGE))):
            if port not in self._avoid and self.claim(port) and not in_use(port):
                return port
        raise NoFreePort(f"no free port between {_RANGE.start} and {_RANGE.stop - 1} on 127.0.0.1")

    def claim(self, port: int) -> bool:
        """Claim one particular port against other Kumulus runs; False when another run has it."""
        lock = os.open(self.path(port), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The last owner may have just removed the file, and another process can then lock a new file of that name.
            held = os.stat(self.path(port)).st_ino == os.fstat(lock).st_ino
        except OSError:
            held = False
        if not held:
            os.close(lock)
            return False
        self._locks[port] = lock
        return True


def _folder() -> Path:
    """The folder of this user's claims: the same one, whatever HOME a run has.

    Its parent is writable for everybody, so another user can create the folder first. That folder is not used, because
    its owner could block all ports for this user: the claims are then below HOME.
    """
    folder = Path(tempfile.gettempdir()) / f"kumulus-ports-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        found = None
    if found and stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022:
        return folder
    return Path.home() / ".cache" / "kumulus" / "ports"
