"""Extracting programs from a release file: only the wanted ones, whatever else the archive contains."""

import fnmatch
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

from kumulus.toolchain.errors import ToolchainError


def take(archive: Path, members: Mapping[str, str], others: str, into: Path) -> dict[str, Path]:
    """Extract files from an archive, each under its own name.

    Args:
        archive: a .tar.gz, a .zip, or a file that is the program itself.
        members: the path in the archive of each wanted file, by name; an empty path is the archive itself.
        others: a pattern of paths; files of that pattern are taken too, under their own names.
        into: a folder to put them in.

    Returns:
        what was taken, by name.

    Raises:
        ToolchainError: the archive has no such member, or is broken.
    """
    into.mkdir(parents=True, exist_ok=True)
    if list(members.values()) == [""]:
        (name,) = members
        shutil.copyfile(archive, into / name)
        return {name: into / name}
    wanted = {path: name for name, path in members.items()}
    taken: dict[str, Path] = {}
    try:
        for path, content in _files(archive):
            # Links are not followed, and paths are only compared: nothing is written outside the folder.
            name = wanted.get(path) or (_own_name(path) if others and fnmatch.fnmatchcase(path, others) else "")
            if not name:
                continue
            if content is None:
                if path in wanted:
                    raise ToolchainError(f"{archive.name}: {path} is a link\n  Name the file that it points to")
                continue
            with (into / name).open("wb") as file:
                shutil.copyfileobj(content, file)
            taken[name] = into / name
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error) as error:
        raise ToolchainError(f"{archive.name} is no archive that can be read: {error}") from error
    lacking = [path for path, program in wanted.items() if program not in taken]
    if lacking:
        raise ToolchainError(f"{archive.name} has no {' and no '.join(lacking)}")
    return taken


def keep(archive: Path, patterns: Mapping[str, str], into: Path) -> None:
    """Extract the files of several patterns, each into a folder.

    Args:
        archive: a .tar.gz or .zip.
        patterns: the folder below `into` for each pattern of paths in the archive.
        into: an empty folder.

    Raises:
        ToolchainError: the archive is broken, or has no file of a pattern.
    """
    for pattern, folder in patterns.items():
        if not take(archive, {}, pattern, into / folder):
            raise ToolchainError(f"{archive.name} has no {pattern}")


def paths(archive: Path) -> list[str]:
    """The paths of the regular files in a .tar.gz or .zip."""
    try:
        return [path for path, content in _files(archive) if content is not None]
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, OSError) as error:
        raise ToolchainError(f"{archive.name} is no archive that can be read: {error}") from error


def _files(archive: Path) -> Iterator[tuple[str, IO[bytes] | None]]:
    """The files of an archive; of links no content, and nothing of devices and folders."""
    if archive.name.endswith(".zip"):
        with zipfile.ZipFile(archive) as zipped:
            for entry in zipped.infolist():
                if not entry.is_dir():
                    with zipped.open(entry) as content:
                        yield entry.filename, content
        return
    with tarfile.open(archive, "r:gz") as packed:
        for member in packed:
            # An image's layers may be packed by a tool that writes ./ before each path.
            if member.isreg() or member.islnk() or member.issym():
                yield member.name.removeprefix("./"), packed.extractfile(member) if member.isreg() else None


def _own_name(path: str) -> str:
    """The last part of a path; empty if it cannot be a file's name."""
    name = path.rpartition("/")[2]
    return "" if name in (".", "..") else name
