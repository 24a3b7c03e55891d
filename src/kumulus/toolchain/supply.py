"""Making tools available: those on PATH or in the cache are used; missing ones are downloaded or built, once."""

import contextlib
import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from kumulus.host import interrupts
from kumulus.toolchain import accepted, build, cache, golang, pins, releases
from kumulus.toolchain.download import Downloads
from kumulus.toolchain.errors import ToolchainError, ToolMissing
from kumulus.toolchain.locate import locate
from kumulus.toolchain.pins import Pins, Tool
from kumulus.toolchain.progress import ToolLine, say


def ensure(kubernetes: str | None = None, extra: Sequence[str] = (), known: Pins | None = None) -> None:
    """Get those of the required tools, and of further ones asked for, that are missing.

    Args:
        kubernetes: another Kubernetes version whose control plane is wanted too.
        extra: names of optional tools, or of sets of them, that are wanted too.
    """
    known = known or pins.load()
    wanted = list(known.required)
    if kubernetes is not None:
        wanted += [tool for tool in known.control_plane(kubernetes) if tool not in wanted]
    wanted += [tool for name in extra for tool in known.named(name) if tool not in wanted]
    _provide(known, wanted)


def provide(names: Sequence[str], kubernetes: str | None = None) -> None:
    """Get those of these tools, or sets of tools, that are missing, and no others.

    Args:
        kubernetes: the version for tools that belong to a control plane.
    """
    known = pins.load()
    _provide(known, chosen(names, kubernetes, known))


def chosen(names: Sequence[str], kubernetes: str | None, known: Pins) -> list[Tool]:
    """The tools of these names, those of a control plane at a Kubernetes version, in the order of the pins."""
    programs = {tool.name: tool for tool in known.control_plane(kubernetes)} if kubernetes else {}
    wanted = {tool.name for name in names for tool in known.named(name)}
    return [programs.get(tool.name, tool) for tool in known.tools if tool.name in wanted]


def built(names: Sequence[str], known: Pins | None = None) -> dict[str, Path]:
    """Download or build tools, whatever is on PATH: ours need no libraries, so they run in any container.

    Args:
        names: of tools, or of sets of them.

    Returns:
        Their executables by name; for tools of files only, their directory.
    """
    known = known or pins.load()
    wanted = [replace(tool, probe_pattern=None, accepts="") for name in names for tool in known.named(name)]
    _provide(known, wanted)
    return {tool.name: cache.executable(cache.home_of(known, tool), tool) for tool in wanted}


def _provide(known: Pins, wanted: Sequence[Tool]) -> None:
    if not missing(known, wanted):
        return
    scratch = cache.root() / "scratch"
    with cache.exclusive(cache.root() / "lock", "getting the tools", say), interrupts.like_ctrl_c():
        # The previous holder of the lock may have built the same tools.
        lacking = missing(known, wanted)
        # No other process is building now, so what is left here is from a killed run.
        shutil.rmtree(scratch / "work", ignore_errors=True)
        try:
            _make(known, _not_reused(known, lacking, scratch), scratch)
        except KeyboardInterrupt:
            left = len(missing(known, wanted))
            say(f"\ninterrupted with {left} of {len(lacking)} tools to go; the next run goes on from here")
            raise
        # These are gigabytes, and useless once everything is built.
        shutil.rmtree(scratch, ignore_errors=True)
        shutil.rmtree(cache.downloads(), ignore_errors=True)
        if old := cache.remove_old(known):
            say(f"removed tools of other versions, not used for {cache.KEPT_DAYS} days: {len(old)} directories")


def missing(known: Pins, wanted: Sequence[Tool]) -> list[Tool]:
    """Those of the tools that are neither on PATH nor in the cache."""
    return [tool for tool in wanted if locate(known, tool).path is None]


def _not_reused(known: Pins, lacking: Sequence[Tool], scratch: Path) -> list[Tool]:
    """Take tools that are unchanged from the directories of other pins; returns those that are left."""
    reused = [tool for tool in lacking if build.reuse(tool, cache.home_of(known, tool), scratch)]
    if reused:
        say(f"{', '.join(tool.name for tool in reused)}: unchanged, taken from an earlier run")
    return [tool for tool in lacking if tool not in reused]


def _make(known: Pins, lacking: Sequence[Tool], scratch: Path) -> None:
    """Download tools, or build them."""
    mode = releases.mode()
    if waiting := [tool for tool in lacking if tool.unpinned]:
        raise ToolMissing(accepted.how_to_accept(waiting))
    downloaded = [] if mode == "build" else Downloads(known, required=mode == "download").get(lacking)
    left = [tool for tool in lacking if tool not in downloaded]
    _build(known, [tool for tool in left if tool.buildable], scratch)
    for tool in left:
        if not tool.buildable:
            why = "KUMULUS_TOOLS=build downloads nothing" if mode == "build" else "that did not succeed"
            raise ToolMissing(f"{tool.name} v{tool.version} can only be downloaded, and {why}")


def _build(known: Pins, to_build: Sequence[Tool], scratch: Path) -> None:
    if not to_build:
        return
    _check_disk(known.gigabytes_to_build(to_build), scratch)
    (scratch / "work").mkdir(parents=True, exist_ok=True)
    say(f"building {len(to_build)} tool{'s' if to_build[1:] else ''}{duration(to_build)}")
    builder = build.Builder(golang.obtain(known.go_minimum, scratch, say), scratch, cache.root() / "logs")
    for number, tool in enumerate(to_build, start=1):
        step = ToolLine(f"[{number}/{len(to_build)}] {tool.name} v{tool.version}")
        try:
            builder.build(tool, cache.home_of(known, tool), step)
        except ToolchainError:
            step.end("failed")
            raise
        except OSError as error:
            step.end("failed")
            raise ToolchainError(f"{tool.name} could not be built: {error}") from error
        step.end(f"built in {step.seconds} s")
        if all(later.workspace != tool.workspace for later in to_build[number:]):
            builder.drop_caches(tool.workspace)


def _check_disk(total: float, scratch: Path) -> None:
    scratch.mkdir(parents=True, exist_ok=True)
    # What an interrupted run has already put there needs no further space.
    needed = total - size(scratch) / 1e9
    free = shutil.disk_usage(scratch).free / 1e9
    if free < needed:
        raise ToolchainError(
            f"not enough disk space to build the tools: {free:.1f} GB free in {cache.root()},"
            f" needed for a while: {needed:.1f} GB"
            "\n  Make room, or set XDG_CACHE_HOME to a directory with more; about 0.7 GB stay in use."
        )


def duration(tools: Sequence[Tool]) -> str:
    """About how long building tools takes here: `, about 8 min`; empty if that was not measured of each."""
    seconds = [tool.cpu for tool in tools if tool.cpu is not None]
    if len(seconds) < len(tools):
        return ""
    minutes = sum(seconds) / 60 / (os.cpu_count() or 1)
    return f", about {max(minutes, 1):.0f} min"


def size(path: Path) -> int:
    """How many bytes a file has, or the files in a directory and below have together; hard links of one count once."""
    if path.is_file():
        return path.stat().st_size
    sizes: dict[int, int] = {}
    for folder, _, files in os.walk(path):
        for file in files:
            with contextlib.suppress(OSError):
                status = os.lstat(os.path.join(folder, file))
                sizes[status.st_ino] = status.st_size
    return sum(sizes.values())
