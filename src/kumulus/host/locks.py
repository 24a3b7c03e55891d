"""Locks on files that the last holder removes, so that nothing is left of a lock whose object is gone."""

from __future__ import annotations

import asyncio
import fcntl
import os
from pathlib import Path

_ASK_AGAIN_S = 0.1


async def take(file: Path) -> tuple[int, bool]:
    """Wait for a lock; the kernel frees it when its holder ends, however that ends.

    It is polled: a wait in the kernel would block the whole process, which the holder may be part of.

    Args:
        file: the file, which is created with its directory. A holder may remove both.

    Returns:
        the descriptor to close in the end, and whether there was another holder meanwhile.
    """
    waited = False
    while True:
        try:
            return _taken(file), waited
        except (BlockingIOError, FileNotFoundError):
            waited = True
            await asyncio.sleep(_ASK_AGAIN_S)


def _taken(file: Path) -> int:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(file, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.stat(file).st_ino != os.fstat(lock).st_ino:
            raise FileNotFoundError("its last holder has removed the file, and another one has that name now")
    except BaseException:
        os.close(lock)
        raise
    return lock
