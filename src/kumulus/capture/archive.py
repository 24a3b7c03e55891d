"""A capture as one file: made to be sent, and therefore with words for names unless the user says otherwise."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

from kumulus.capture.writing import LEFT_OUT, STACK, WORKLOAD
from kumulus.surroundings import files

_SUFFIXES = (".tar.gz", ".tgz")


def is_meant(to: Path) -> bool:
    """Whether a place is to be an archive, by its name."""
    return to.name.endswith(_SUFFIXES)


def stem(to: Path) -> str:
    """A place's name, an archive's without its suffix."""
    return next((to.name.removesuffix(suffix) for suffix in _SUFFIXES if to.name.endswith(suffix)), to.name)


def beside(to: Path) -> Path:
    """The directory in which an archive is built; an interrupted capture leaves it, and resumes from it."""
    return to.with_name(f".{to.name}.parts")


def pack(folder: Path, to: Path, private: bool) -> None:
    """Make an archive of a capture's files, and remove them.

    The same capture is the same bytes: it says neither who made it nor when.

    Args:
        folder: where they are.
        to: the archive, whose files are in a directory of its name.
        private: whether other users of this machine may not read it.

    Raises:
        OSError: it cannot be written; the files are there still.
    """
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in (STACK, WORKLOAD, LEFT_OUT):
            content = (folder / name).read_bytes()
            member = tarfile.TarInfo(f"{stem(to)}/{name}")
            member.size, member.mode = len(content), 0o644
            archive.addfile(member, io.BytesIO(content))
    files.write(to, gzip.compress(packed.getvalue(), mtime=0), mode=0o600 if private else 0o644)
    for name in (STACK, WORKLOAD, LEFT_OUT):
        (folder / name).unlink()
    folder.rmdir()
