"""Where clusters live on this machine: room for one more, kept private, and what is wrong with a place."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from provider.errors import ProviderError
from provider.runtimes.place import Place

_NEEDED_BYTES = 1 << 30


def prepare_home(place: Place) -> None:
    """Make the directory that clusters are in.

    Raises:
        ProviderError: it cannot be made, or its disk is full.
    """
    try:
        # A home that is there already, such as /srv, keeps its mode: each cluster's directory is private anyway.
        place.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        place.directory.parent.mkdir(mode=0o700, exist_ok=True)
        free = free_bytes(place.home)
    except OSError as error:
        raise ProviderError(os_error(error, place)) from None
    if free < _NEEDED_BYTES:
        raise ProviderError(
            f"no disk space: {free / 2**20:,.0f} MiB free at {place.home}, a control plane needs "
            f"{_NEEDED_BYTES / 2**20:,.0f} MiB; free some, or set KUMULUS_HOME to a directory on another disk"
        )


def keep_private(place: Place, files: Iterable[Path]) -> None:
    """Keys and kubeconfigs are for their owner only, whatever the mode a program gave them."""
    for path in files:
        path.chmod(0o600)
    place.directory.chmod(0o700)


def remove(place: Place) -> None:
    """Remove a cluster's files; finding none is success.

    Raises:
        ProviderError: they cannot be removed.
    """
    try:
        shutil.rmtree(place.directory)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise ProviderError(f"{place.directory} cannot be removed: {error.strerror}") from None


def remove_empty(place: Place) -> None:
    """Remove the directories that clusters are in, where this was the last."""
    for empty in (place.directory.parent, place.home):
        with suppress(OSError):
            empty.rmdir()


def os_error(error: OSError, place: Place) -> str:
    """An error of the file system in words, with the remedy."""
    if error.errno == errno.ENOSPC:
        return f"no disk space left at {place.home}; free some, or set KUMULUS_HOME to a directory on another disk"
    reason = error.strerror or str(error) or type(error).__name__
    return f"{error.filename or place.directory}: {reason}; KUMULUS_HOME can name another directory"


def free_bytes(path: Path) -> int:
    """Bytes free for us on the file system of a path that may not exist yet."""
    while not path.exists():
        path = path.parent
    state = os.statvfs(path)
    return state.f_bavail * state.f_frsize
