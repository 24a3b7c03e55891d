"""What a user can fix, as opposed to our mistakes."""

import errno
import os
from collections.abc import Mapping
from pathlib import Path


class UserError(Exception):
    """Something the user can fix. The message's first line says what is wrong, the rest what to do.

    Whatever a command does may raise it; docstrings name it only where there is more to say.
    """


# What is in the way where a file belongs, and what to do.
_IN_THE_WAY = {
    errno.EROFS: "Run it where files can be written",
    errno.ENOTDIR: "Remove the file that is there instead of a directory, or name another place",
    errno.EEXIST: "Remove the file that is there instead of a directory, or name another place",
    errno.EISDIR: "Remove the directory that is there instead of a file, or name another place",
    errno.ENAMETOOLONG: "Name another place",
}


def os_message(error: OSError) -> str | None:
    """Two lines for a full disk, or a file that cannot be read or written where it is; None for any other error."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        place = f"{error.filename}: " if error.filename is not None else ""
        return f"{place}no space left on the disk that is written to\n  Make room there, and run it again"
    if error.filename is None:
        return None
    if isinstance(error, PermissionError):
        remedy = "Run it as the user it belongs to, or in a copy of your own"
        return f"{error.filename}: permission denied\n  {remedy}"
    remedy = _IN_THE_WAY.get(error.errno or 0, "")
    return f"{error.filename}: {os.strerror(error.errno or 0).lower()}\n  {remedy}" if remedy else None


def refuse_others(files: Mapping[Path, str], writer: str = "an import") -> None:
    """Refuse to overwrite files that an earlier import, or another writer, did not write.

    Args:
        files: the files to be written, with how the first line of each begins.
        writer: who writes them, for the message.
    """
    for file, beginning in files.items():
        try:
            with file.open("rb") as opened:
                there = opened.read(len(beginning.encode()))
        except FileNotFoundError:
            continue
        except OSError as error:
            raise UserError(f"{file}: {error.strerror}") from None
        # An import that was killed may have left the beginning of the first line, or nothing.
        if not beginning.encode().startswith(there):
            raise taken(file, writer)


def taken(file: Path, writer: str) -> UserError:
    """The refusal to overwrite a file that another than `writer` wrote, such as "an import"."""
    return UserError(f"{file} is there already, and was not written by {writer}\n  Name another, or delete it")
