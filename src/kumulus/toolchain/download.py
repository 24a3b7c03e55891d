"""Getting tools from official release files, or from the mirror with copies of them; nothing else is unpacked."""

import fnmatch
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from kumulus.host.files import sync
from kumulus.toolchain import build, cache, fetch, locate, releases
from kumulus.toolchain.errors import ToolchainError
from kumulus.toolchain.fetch import NotFetched
from kumulus.toolchain.pins import Pins, Tool
from kumulus.toolchain.progress import ToolLine, say, transferred
from kumulus.toolchain.releases import Release
from kumulus.toolchain.versions import normal, satisfies


@dataclass
class Downloads:
    """Downloads those of some tools that have a release file."""

    known: Pins
    required: bool = False
    """Whether a tool that cannot be downloaded is an error; otherwise it is left to be built."""
    _hosts_reached: set[str] = field(default_factory=set)
    _hosts_out: set[str] = field(default_factory=set)

    def get(self, lacking: Sequence[Tool]) -> list[Tool]:
        """Download the tools that have a release file; returns those that were installed."""
        files = _by_file(lacking)
        if self.required:
            _require_releases(lacking)
        if not files or not self._answers(files[0][0]):
            return []
        got: list[Tool] = []
        for number, (release, tools) in enumerate(files, start=1):
            title = f"[{number}/{len(files)}] {', '.join(tool.name for tool in tools)} v{release.version}"
            if self._download(release, tools, title):
                got += tools
        return got

    def _answers(self, first: Release) -> bool:
        """Whether the host of the first file answers; if it does not, others are not asked either."""
        try:
            self._reach(releases.address(first.url))
        except NotFetched as error:
            if self.required:
                raise _not_downloadable(first, error) from None
            say(f"nothing is downloaded: {error}; building instead (KUMULUS_TOOLS=build does not ask)")
            return False
        return True

    def _reach(self, address: str) -> None:
        host = urlsplit(address).netloc
        if host not in self._hosts_reached:
            fetch.reachable(address)
            self._hosts_reached.add(host)

    def _download(self, release: Release, tools: Sequence[Tool], title: str) -> bool:
        """Download a file and install its tools; False if it is to be built instead."""
        address = releases.address(release.url)
        host = urlsplit(address).netloc
        if host in self._hosts_out:
            return False
        step = ToolLine(title)
        try:
            self._reach(address)
            file = fetched(release.url, release.name, release.algorithm, release.sum, step)
            size = file.stat().st_size
            try:
                _install(self.known, release, tools, file)
            finally:
                file.unlink(missing_ok=True)
            step.end(f"downloaded {size / 1e6:.0f} MB in {step.seconds} s")
        except NotFetched as error:
            step.end(f"not downloaded: {error}")
            if self.required:
                raise _not_downloadable(release, error) from None
            if error.host_out:
                self._hosts_out.add(host)
            return False
        except ToolchainError:
            step.end("failed")
            raise
        except OSError as error:
            step.end("failed")
            raise ToolchainError(f"{release.name} could not be stored: {error}") from error
        return True


def fetched(url: str, name: str, algorithm: str, wanted: str, step: ToolLine) -> Path:
    """Fetch a file into the directory of downloads, and show how far it is; errors as of :func:`fetch.fetch`.

    Args:
        name: the file's own name, which its name there ends with.
        algorithm, wanted: of its checksum, as for :func:`fetch.fetch`.
    """
    folder = cache.downloads()
    folder.mkdir(parents=True, exist_ok=True)
    # Named after its checksum, so that only a download of the same file is resumed.
    file = folder / f"{wanted[:12]}-{name}"
    before = fetch.arrived(file)

    def tick(have: int, total: int | None) -> None:
        nonlocal before
        # A server that does not resume begins again.
        before = min(before, have)
        step.tick(transferred(have, total, step.begun, before))

    fetch.fetch(releases.addresses(url), file, algorithm, wanted, tick)
    return file


def _require_releases(lacking: Sequence[Tool]) -> None:
    without = [f"{tool.name} v{tool.version}" for tool in lacking if tool.release is None]
    if without:
        raise ToolchainError(
            f"no release file is known for {releases.platform()} of: {', '.join(without)}"
            "\n  KUMULUS_TOOLS=auto builds what cannot be downloaded."
        )


def _by_file(lacking: Sequence[Tool]) -> list[tuple[Release, list[Tool]]]:
    files: dict[str, tuple[Release, list[Tool]]] = {}
    for tool in lacking:
        if tool.release is not None:
            files.setdefault(tool.release.url, (tool.release, []))[1].append(tool)
    return list(files.values())


def _install(known: Pins, release: Release, tools: Sequence[Tool], file: Path) -> None:
    """Install the tools of a release file, with the files that belong next to them."""
    work = file.with_name(f"{file.name}.unpacked")
    shutil.rmtree(work, ignore_errors=True)
    try:
        programs = [tool for tool in tools if not tool.files_only]
        taken = _programs(release, programs, file, work) if programs else {}
        if others := taken.keys() - release.members.keys():
            # The tools of a file with such others are all installed in one folder.
            folder = cache.executable(cache.home_of(known, tools[0]), tools[0]).parent
            folder.mkdir(parents=True, exist_ok=True)
            for name in others:
                sync(taken[name])
                taken[name].replace(folder / name)
        for tool in tools:
            home = cache.home_of(known, tool)
            if kept := {each.path: each.to for each in tool.keep if not each.module}:
                share = work / f"{tool.name}.share"
                keep(file, kept, share)
                build.put_kept(share, tool, home)
            build.install(taken.get(tool.name, work), tool, home, release.stamp(tool.name))
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _programs(release: Release, tools: Sequence[Tool], file: Path, work: Path) -> dict[str, Path]:
    """The programs of a release file, and those that belong next to them, by name."""
    taken = take(file, {tool.name: release.members[tool.name] for tool in tools}, release.others, work)
    for made in taken.values():
        made.chmod(0o755)
    for tool in tools:
        _check(taken[tool.name], tool, release)
    return taken


def _check(made: Path, tool: Tool, release: Release) -> None:
    """Reject a program that does not run here, for example because a library is missing: it is better built."""
    if tool.probe_pattern is None:
        return
    version = locate.ask_version(made, tool)
    if version is None or not satisfies(version, f"=={release.version}"):
        raise NotFetched(f"{tool.name} of it does not run here as v{normal(release.version)}", host_out=False)


def _not_downloadable(release: Release, error: NotFetched) -> ToolchainError:
    return ToolchainError(
        f"{release.name} cannot be downloaded: {error}\n  from: {releases.address(release.url)}"
        "\n  KUMULUS_TOOLS=auto builds what cannot be downloaded; KUMULUS_MIRROR=URL takes all from another place."
    )


def take(archive: Path, members: Mapping[str, str], others: str, into: Path) -> dict[str, Path]:
    """Extract files from an archive, each under its own name.

    Args:
        archive: a .tar.gz, a .zip, or a file that is the program itself.
        members: the path in the archive of each wanted file, by name; an empty path is the archive itself.
        others: a pattern of paths; files of that pattern are taken too, under their own names.
        into: a folder to put them in.

    Returns:
        what was taken, by name.
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
    """Extract the files of several patterns of paths.

    Args:
        patterns: by pattern, the folder for its files, below `into`.
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
