"""Only one run at a time changes a cluster."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from kumulus.host import locks
from kumulus.runtimes.place import Place


@asynccontextmanager
async def exclusive(place: Place) -> AsyncIterator[bool]:
    """Let only one run at a time change a cluster.

    Yields whether another run held the lock first: then the cluster may be no longer what it was, or whose it was.
    """
    path = lock_file(place)
    lock, waited = await locks.take(path)
    try:
        yield waited
    finally:
        if not place.directory.exists():
            path.unlink(missing_ok=True)
        os.close(lock)


def lock_file(place: Place) -> Path:
    """The file whose lock a run holds while it changes a cluster."""
    return place.home / "clusters" / f".{place.name}.lock"
