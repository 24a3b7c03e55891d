"""Where tools are kept, for this user and across checkouts.

- `$XDG_CACHE_HOME/kumulus/toolchain/<key>/{bin,plugins,stamps}`: the required tools of one set of pins
- `…/kubernetes/<version>-<key>/…`: the control plane of another Kubernetes version
- `…/optional/<tool>-<key>/…`: a tool that is fetched only on request; its `share/<tool>` has files of its module
- `…/downloads/`: release files being downloaded
- `…/scratch/`: Go's caches while something is being built
- `…/logs/<tool>.log`: Go's output from when it last built a tool
- `…/lock`: see :func:`exclusive`; `…/probes.json`: see locate.py
- `…/../charts/`: Helm charts, which are small

What has not been used for :data:`KEPT_DAYS` goes when something else is fetched.
"""

import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from kumulus.toolchain.errors import ToolchainError
from kumulus.toolchain.pins import Pins, Tool, combined

KEPT_DAYS = 90


def root() -> Path:
    """The directory that holds everything this package keeps."""
    configured = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification says to ignore relative paths.
    base = Path(configured) if os.path.isabs(configured) else Path.home() / ".cache"
    return base / "kumulus" / "toolchain"


def charts() -> Path:
    """The directory of Helm charts."""
    return root().parent / "charts"


def downloads() -> Path:
    """The directory of release files that are being downloaded."""
    return root() / "downloads"


def tools(pins: Pins) -> Path:
    """The directory of the required tools."""
    return root() / pins.key


def control_plane(pins: Pins, version: str) -> Path:
    """The directory of one Kubernetes version's control plane."""
    programs = pins.control_plane(version)
    if programs[0].version == pins.default_kubernetes:
        return tools(pins)
    return root() / "kubernetes" / f"v{programs[0].version}-{combined(programs)}"


def home_of(pins: Pins, tool: Tool) -> Path:
    """The directory a tool is installed under."""
    if tool.optional:
        return root() / "optional" / f"{tool.name}-{tool.stamp()}"
    if tool.version != pins.tool(tool.name).version:
        return control_plane(pins, tool.version)
    return tools(pins)


def executable(home: Path, tool: Tool) -> Path:
    """The file a tool is installed as; for a tool of files only, their directory."""
    return kept(home, tool) if tool.files_only else home / tool.folder / tool.name


def kept(home: Path, tool: Tool) -> Path:
    """The directory of the files a tool keeps of its module."""
    return home / "share" / tool.name


def stamp_file(home: Path, tool: Tool) -> Path:
    """The file that says what an installed tool was made from."""
    return home / "stamps" / tool.name


def origin(home: Path, tool: Tool) -> Literal["built", "downloaded"] | None:
    """How the tool was obtained, if it is complete and matches the current pins; otherwise None."""
    try:
        stamp = stamp_file(home, tool).read_text()
        complete = os.access(executable(home, tool), os.X_OK) and (not tool.keep or kept(home, tool).is_dir())
    except OSError:
        return None
    if complete and tool.release is not None and stamp == tool.release.stamp(tool.name):
        return "downloaded"
    return "built" if complete and stamp == tool.stamp() else None


def is_current(home: Path, tool: Tool) -> bool:
    """Whether the tool is installed there, complete, and matches the current pins."""
    return origin(home, tool) is not None


def used(file: Path) -> None:
    """Note that a file of the cache is used now; many file systems do not note it when it is read."""
    with suppress(OSError):
        os.utime(file)


def is_old(files: Iterable[Path]) -> bool:
    """Whether none of these files was used in the last :data:`KEPT_DAYS` days; False for no files."""
    oldest = time.time() - KEPT_DAYS * 86_400
    try:
        times = [max(stat.st_atime, stat.st_mtime) for stat in map(os.stat, files)]
    except OSError:
        return False
    return bool(times) and max(times) < oldest


def remove_old(known: Pins) -> list[Path]:
    """Remove the tools of other pins that are old and that no process runs; returns their directories.

    A cluster that was made with them finds those of the current pins at its next start.
    """
    current = {home_of(known, tool) for tool in known.tools}
    current |= {control_plane(known, each.version) for each in known.kubernetes}
    homes = {stamps.parent for pattern in ("*/stamps", "*/*/stamps") for stamps in root().glob(pattern)}
    old = [home for home in homes - current if is_old((home / "stamps").iterdir()) and not running(home)]
    for home in old:
        shutil.rmtree(home, ignore_errors=True)
    return old


def remove_old_charts() -> None:
    """Remove the charts that are old."""
    for file in charts().glob("*.tgz"):
        if is_old([file]):
            file.unlink(missing_ok=True)


def running(home: Path) -> dict[int, str]:
    """The processes that run a program below a directory of the cache, with their commands, by process id.

    Those of other users are left out: the cache is this user's. On a system without /proc, none is found. It does
    without psutil, as it runs before the virtual environment exists.
    """
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (process / "exe").readlink().is_relative_to(home.resolve()):
                command = (process / "cmdline").read_bytes().decode(errors="replace").partition("\0")[0]
                found[int(process.name)] = command
    return found


def owns(path: Path) -> bool:
    """Whether a file lies in this cache rather than being the user's own."""
    return path.resolve().is_relative_to(root().resolve())


def holder(file: Path) -> str:
    """The id of the process that holds the lock of :func:`exclusive` in this file; empty if none does."""
    try:
        with file.open() as opened:
            try:
                fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return _noted(opened.fileno())
    except OSError:
        pass
    return ""


def _noted(lock: int) -> str:
    """The id that the holder of a lock has written into its file, of which this is the descriptor."""
    return os.pread(lock, 32, 0).decode(errors="replace").strip() or "unknown"


@contextmanager
def exclusive(file: Path, doing: str, say: Callable[[str], None]) -> Iterator[bool]:
    """Hold the lock for the block; yields whether another process held it first.

    The kernel releases the lock with the process, so a killed one leaves nothing to clean up.

    Args:
        file: the lock file; its content is the holder's process id, and it stays.
        doing: what processes need this lock for, such as "building the tools".
        say: called with a line for the user if there is a process to wait for.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise ToolchainError(f"cannot write {file}: {error.strerror}") from error
    try:
        waited = False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waited = True
            say(f"waiting for process {_noted(descriptor)}, which is {doing}")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield waited
    finally:
        os.close(descriptor)
