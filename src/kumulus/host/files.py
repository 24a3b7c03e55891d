"""Atomic writes of files, which survive a killed process or a power loss; locks; the last lines of logs.

Whatever Kumulus keeps for a later run is written by these: a cluster's files, journals, records of runs.
"""

import errno
import fcntl
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TextIO


def write(file: Path, content: str | bytes, mode: int = 0o644) -> None:
    """Write a file atomically: until all of it is on the disk, the previous content stays.

    Args:
        file: the file; if it is a link, what it leads to. Two writers take turns.
        mode: for a file that is to be more private than its directory; the umask applies.

    Raises:
        OSError: it cannot be written; the previous content stays.
    """
    with replacing(file, mode) as opened:
        opened.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def replacing(file: Path, mode: int = 0o644) -> Iterator[BinaryIO]:
    """Write a file of any length atomically: it gets its name when the block ends without an error.

    Raises:
        OSError: it cannot be written; the previous content stays, as it does after any error of the block.
    """
    if file.is_symlink():
        file = Path(os.path.realpath(file))
    if file.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(file))
    temporary = unfinished(file)
    with os.fdopen(_create_locked(temporary, mode), "wb") as opened:
        try:
            yield opened
            opened.flush()
            # Before the rename: otherwise a power loss may leave the new name without its content.
            os.fsync(opened.fileno())
            # Before it is closed, which frees the lock: then another writer would take it for what a killed one left.
            temporary.replace(file)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    sync(file.parent)


@contextmanager
def replacing_text(file: Path, mode: int = 0o644) -> Iterator[TextIO]:
    """As :func:`replacing`, for a text in UTF-8, whose line ends stay as they are written."""
    with replacing(file, mode) as opened:
        text = io.TextIOWrapper(opened, encoding="utf-8", newline="")
        try:
            yield text
        finally:
            text.detach()


def _create_locked(temporary: Path, mode: int) -> int:
    """Create and lock an empty file; a writer that has a file of that name is waited for, unless it was killed."""
    while True:
        try:
            opened = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        except FileExistsError:
            _remove_leftover(temporary)
            continue
        if _gets_lock(temporary, opened):
            return opened
        os.close(opened)


def _remove_leftover(temporary: Path) -> None:
    """Remove what a killed writer has left, whatever it is; what is still being written is waited for instead."""
    try:
        opened = os.open(temporary, os.O_WRONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return
    except OSError:
        # A link, or a file of another user: no writer's, as a writer could open its own.
        temporary.unlink(missing_ok=True)
        return
    try:
        if _gets_lock(temporary, opened):
            temporary.unlink()
    finally:
        os.close(opened)


def _gets_lock(temporary: Path, opened: int) -> bool:
    """Wait for the lock of an open file; False if the file has lost its name meanwhile."""
    with suppress(OSError):  # Some network file systems have no locks.
        fcntl.flock(opened, fcntl.LOCK_EX)
    try:
        return os.path.samestat(os.lstat(temporary), os.fstat(opened))
    except FileNotFoundError:
        return False


def unfinished(file: Path) -> Path:
    """Where a file's new content is while it is written: next to it, under a name that only its writers use."""
    return file.with_name(f".{file.name}.kumulus.tmp")


def remove(file: Path) -> None:
    """Remove a file for good, so that it does not come back after a power loss; a missing file is no error."""
    try:
        file.unlink()
    except FileNotFoundError:
        return
    sync(file.parent)


def sync(path: Path) -> None:
    """Flush a file, or a directory, to the disk: a new file's name survives only if its directory was flushed."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


_TAIL_BYTES = 64 * 1024
_MOST_CHARACTERS = 1000


def last_lines(log: Path, most: int) -> str:
    """The last lines of a log, indented and cut to a readable width; empty if there is none, or nothing in it.

    Args:
        most: how many lines at most; of long lines there may be fewer, as no more than 64 KiB are read.
    """
    try:
        with log.open("rb") as opened:
            size = opened.seek(0, os.SEEK_END)
            opened.seek(max(0, size - _TAIL_BYTES))
            # A log that was emptied while its program had it open begins with zero bytes.
            lines = opened.read().replace(b"\0", b"").decode(errors="replace").splitlines()
    except OSError:
        return ""
    return "\n".join(f"    {_cut(line)}" for line in lines[-most:])


def _cut(line: str) -> str:
    return line if len(line) <= _MOST_CHARACTERS else f"{line[:_MOST_CHARACTERS]} …"


_ASK_AGAIN_S = 0.1


async def take_lock(file: Path, waits: Callable[[], object] = lambda: None) -> tuple[int, bool]:
    """Wait for a lock; the kernel frees it when its holder ends, however that ends.

    It is polled: a wait in the kernel would block the whole process, which the holder may be part of.

    Args:
        file: the file, which is created with its directory. A holder may remove both.
        waits: called once, if there is another holder to wait for.

    Returns:
        the descriptor to close in the end, and whether there was another holder meanwhile.
    """
    # Its import takes a third of the time in which a command without locks starts, such as --help.
    import asyncio

    waited = False
    while True:
        try:
            return _lock_now(file), waited
        except (BlockingIOError, FileNotFoundError):
            if not waited:
                waits()
            waited = True
            await asyncio.sleep(_ASK_AGAIN_S)


def _lock_now(file: Path) -> int:
    """Take a lock without waiting, and return its descriptor.

    Raises:
        BlockingIOError: another holder has it.
        FileNotFoundError: its holder has removed the file meanwhile.
    """
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(file, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(os.stat(file), os.fstat(lock)):
            raise FileNotFoundError("its last holder has removed the file, and another one has that name now")
    except BaseException:
        os.close(lock)
        raise
    return lock
