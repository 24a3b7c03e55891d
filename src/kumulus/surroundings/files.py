"""Files that are written whole or not at all, also when the process is killed or the power goes.

Whatever Kumulus keeps for a later run is written here: a cluster's files, journals, records of runs.
"""

from __future__ import annotations

import os
from pathlib import Path


def write(file: Path, content: str | bytes, mode: int = 0o644) -> None:
    """Write a file: afterwards it is on the disk as a whole, and until then what was there before is.

    Args:
        file: the file. Two writers of one file have to take turns.
        content: what it is to hold; text as UTF-8.
        mode: of a file that is to be more private than its directory; the umask takes from it.

    Raises:
        OSError: it cannot be written; what was there before still is.
    """
    temporary = file.with_suffix(".tmp")
    # What a writer that was killed has left, whatever its mode.
    temporary.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as opened:
            opened.write(content.encode() if isinstance(content, str) else content)
            opened.flush()
            # Before the new name: else a loss of power may leave the name with nothing behind it.
            os.fsync(opened.fileno())
        temporary.replace(file)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(file.parent)


def remove(file: Path) -> None:
    """Remove a file for good: it does not come back when the power goes. Finding none is success.

    Raises:
        OSError: it cannot be removed.
    """
    try:
        file.unlink()
    except FileNotFoundError:
        return
    sync_directory(file.parent)


def sync_directory(directory: Path) -> None:
    """Have the names in a directory on the disk: a new file's is there only when its directory is."""
    opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
