"""Only one run at a time changes a cluster."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kumulus.runtimes.place import Place


@asynccontextmanager
async def exclusive(place: Place) -> AsyncIterator[None]:
    """Let only one run at a time change a cluster; the kernel frees the lock when its holder ends.

    The lock is polled: a wait in the kernel would block the whole plugin, which the other run may be part of.
    """
    path = place.home / "clusters" / f".{place.name}.lock"
    while True:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            await asyncio.sleep(0.1)
            continue
        if path.exists() and os.stat(path).st_ino == os.fstat(lock).st_ino:
            break
        os.close(lock)  # its last holder removed the file: the file locked here is no longer the lock
    try:
        yield
    finally:
        if not place.directory.exists():
            path.unlink(missing_ok=True)
        os.close(lock)
