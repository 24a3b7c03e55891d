"""Who makes the kind cluster of a name, or was the last to begin: the engine knows names only, whoever asks it.

kind looks for containers of a name before it pulls the node image. If it fails afterwards, it removes all containers of
that name, among them those that a run of another directory has made meanwhile. So only one run of this user makes a
cluster of one name at a time. Its directory is noted, and the note stays: what a killed run has left cannot be told
from the cluster that another directory's run has made since by anything else.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from kumulus.host import locks
from kumulus.host.machine import state_home


@asynccontextmanager
async def making(cluster: str) -> AsyncIterator[None]:
    """Wait until no other run makes a cluster of that name; where no state can be kept, nobody is waited for."""
    lock = None
    with suppress(OSError):
        lock, _ = await locks.take(_file(cluster))
    try:
        yield
    finally:
        if lock is not None:
            os.close(lock)


def note(directory: Path) -> None:
    """Note that a cluster is about to be made for a directory, whose name is the cluster's."""
    with suppress(OSError):
        # In place: a new file would not be locked.
        _file(directory.name).write_text(str(directory))


def is_anothers(directory: Path) -> bool:
    """Whether the last run that began to make a cluster of that name was another directory's."""
    return _last(directory.name) not in ("", str(directory))


def forget(directory: Path) -> None:
    """Remove the note of a directory whose cluster is gone."""
    with suppress(OSError):
        if _last(directory.name) == str(directory):
            _file(directory.name).unlink()


def _last(cluster: str) -> str:
    try:
        return _file(cluster).read_text()
    except (OSError, ValueError):
        return ""


def _file(cluster: str) -> Path:
    return state_home() / "kumulus" / "kind" / cluster
