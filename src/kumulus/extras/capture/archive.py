"""A capture as one file, made for sending, and therefore with words for names unless the user says otherwise."""

import gzip
import io
import tarfile
import zlib
from pathlib import Path

from kumulus.extras.capture.writing import LEFT_OUT, STACK, WORKLOAD
from kumulus.host import files

_SUFFIXES = (".tar.gz", ".tgz")


def is_meant(to: Path) -> bool:
    """Whether a path names an archive."""
    return to.name.endswith(_SUFFIXES)


def is_others(to: Path) -> bool:
    """Whether a file is there that is no archive of a capture."""
    try:
        with tarfile.open(to) as archive:
            first = archive.next()
    except FileNotFoundError:
        return False
    except (tarfile.TarError, EOFError, zlib.error):
        return True
    return first is None or Path(first.name).name != STACK


def stem(to: Path) -> str:
    """A path's name, without the suffix of an archive."""
    return next((to.name.removesuffix(suffix) for suffix in _SUFFIXES if to.name.endswith(suffix)), to.name)


def next_to(to: Path) -> Path:
    """The directory in which an archive is built; an interrupted capture leaves it behind, and resumes from it."""
    return to.with_name(f".{to.name}.parts")


def pack(folder: Path, to: Path, private: bool) -> None:
    """Make an archive of a capture's files.

    The same capture gives the same bytes: the archive says neither who made it nor when.

    Args:
        to: the archive; in it, the files are in a directory of the same name.
        private: whether to keep other users of this machine from reading it.
    """
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in (STACK, WORKLOAD, LEFT_OUT):
            content = (folder / name).read_bytes()
            member = tarfile.TarInfo(f"{stem(to)}/{name}")
            member.size, member.mode = len(content), 0o644
            archive.addfile(member, io.BytesIO(content))
    files.write(to, gzip.compress(packed.getvalue(), mtime=0), mode=0o600 if private else 0o644)


def remove(folder: Path) -> None:
    """Remove the directory in which an archive was built, with the files that are in the archive now.

    Raises:
        OSError: something else is in it, or it cannot be removed.
    """
    for name in (STACK, WORKLOAD, LEFT_OUT):
        (folder / name).unlink()
    folder.rmdir()
