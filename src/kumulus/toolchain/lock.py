"""Only one process at a time may change the cache; others wait, and say for which."""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from kumulus.toolchain.errors import ToolchainError


@contextlib.contextmanager
def exclusive(file: Path, doing: str, say: Callable[[str], None]) -> Iterator[bool]:
    """Hold the lock for the block; yields whether another process held it first.

    The kernel releases the lock with the process, so a killed one leaves nothing to clean up.

    Args:
        file: the lock file; its content is the holder's process id, and it stays.
        doing: what processes need this lock for, such as "building the tools".
        say: called with a line for the user if there is a process to wait for.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise ToolchainError(f"cannot write {file}: {error.strerror}") from error
    try:
        waited = False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waited = True
            holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
            say(f"waiting for process {holder}, which is {doing}")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield waited
    finally:
        os.close(descriptor)
