"""Where each tool is: on PATH, downloaded or built into the cache, or nowhere yet."""

import json
import os
import re
import shutil
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kumulus.host import files, installation
from kumulus.host.installation import pulumi_home
from kumulus.toolchain import cache, pins
from kumulus.toolchain.errors import ToolchainError, ToolMissing
from kumulus.toolchain.pins import CONTROL_PLANE, Pins, Tool
from kumulus.toolchain.progress import answer
from kumulus.toolchain.versions import normal, satisfies


@dataclass(frozen=True)
class Location:
    """Where a tool was found."""

    tool: Tool
    path: Path | None
    """Its executable; None when it is missing."""
    version: str
    """The version that was found or, of one that is missing, the pinned one."""
    source: str
    """`PATH`, `downloaded`, `built`, `plugins` or `missing`."""
    note: str = ""
    """What else was found, such as an unsuitable version on PATH."""


def find(tool: str, version: str | None = None) -> Path:
    """The executable to run for a tool.

    Args:
        version: for the control plane's programs, a Kubernetes version; the default one when not given.
    """
    known = pins.load()
    wanted = known.tool(tool)
    kumulus = installation.command()
    remedy = f"{kumulus} tools"
    if version is not None and normal(version) != wanted.version:
        if tool not in CONTROL_PLANE:
            raise ToolchainError(f"{tool} is available in version {wanted.version} only, not {normal(version)}")
        wanted = next(program for program in known.control_plane(version) if program.name == tool)
        remedy = f"{kumulus} tools --kubernetes v{wanted.version}"
    elif wanted.optional or wanted.on_demand:
        remedy = f"{kumulus} tools --with {tool}"
    location = locate(known, wanted)
    if location.path is None:
        note = f" ({location.note})" if location.note else ""
        raise ToolMissing(f"{tool} v{wanted.version} is missing{note}\n  To get it: {remedy}")
    return location.path


def kept(tool: str) -> Path:
    """The directory of the files kept with a tool, such as its CRDs."""
    known = pins.load()
    found, wanted = find(tool), known.tool(tool)
    return found if wanted.files_only else cache.kept(cache.home_of(known, wanted), wanted)


def version(tool: str) -> str:
    """The version a tool is pinned at, without a leading `v`."""
    return pins.load().tool(tool).version


def kubernetes_versions() -> list[str]:
    """The Kubernetes versions a control plane can have, the default one first, without a leading `v`."""
    return [each.version for each in pins.load().kubernetes]


def locate(known: Pins, tool: Tool) -> Location:
    """Look for a tool on PATH, then in the cache."""
    note = ""
    if tool.beside is not None:
        if found := _next_to_other(known, tool, known.tool(tool.beside)):
            return found
    elif tool.probe_pattern is not None or tool.accepts == pins.ANY:
        on_path = _first_on_path(tool.name)
        if on_path is not None:
            version = "" if tool.accepts == pins.ANY else version_of(on_path, tool)
            note = _objection(known, tool, on_path, version)
            if version is not None and not note:
                return Location(tool, on_path, normal(version), "PATH")
    home = cache.home_of(known, tool)
    origin = cache.origin(home, tool)
    if origin is not None:
        cache.used(cache.stamp_file(home, tool))
        version = tool.release.version if origin == "downloaded" and tool.release is not None else tool.version
        return Location(tool, cache.executable(home, tool), version, origin, note)
    installed = _installed_plugin(tool)
    if installed is not None:
        return Location(tool, installed, tool.version, "plugins", note)
    return Location(tool, None, tool.version, "missing", note)


def plugin_directory(pulumi_home: Path, tool: Tool) -> Path:
    """Where the engine looks for a resource plugin of this version."""
    name = tool.name.removeprefix("pulumi-resource-")
    return pulumi_home / "plugins" / f"resource-{name}-v{tool.version}"


def is_installed(pulumi_home: Path, tool: Tool) -> bool:
    """Whether the engine has all of this plugin; it leaves a `.partial` file next to an unfinished one."""
    directory = plugin_directory(pulumi_home, tool)
    return os.access(directory / tool.name, os.X_OK) and not directory.with_name(f"{directory.name}.partial").exists()


def _next_to_other(known: Pins, tool: Tool, other: Tool) -> Location | None:
    """A tool that counts on PATH only in the directory of another one; None if that one is not taken from PATH."""
    neighbour = locate(known, other)
    if neighbour.source != "PATH" or neighbour.path is None:
        return None
    resolved = neighbour.path.resolve().parent / tool.name
    path = resolved if resolved.exists() else neighbour.path.parent / tool.name
    return Location(tool, path, neighbour.version, "PATH")


def _installed_plugin(tool: Tool) -> Path | None:
    # A plugin that Pulumi downloaded itself saves the longest of all builds.
    if tool.folder != "plugins":
        return None
    for home in (pulumi_home(), Path.home() / ".pulumi"):
        if is_installed(home, tool):
            return plugin_directory(home, tool) / tool.name
    return None


def _first_on_path(name: str) -> Path | None:
    directories = [folder for folder in os.get_exec_path() if folder and not cache.owns(Path(folder))]
    found = shutil.which(name, path=os.pathsep.join(directories)) if directories else None
    return Path(found).absolute() if found else None


def _objection(known: Pins, tool: Tool, on_path: Path, version: str | None) -> str:
    """Why an executable on PATH is not taken; empty if it is."""
    if version is None:
        return f"{on_path} does not say its version"
    if tool.accepts != pins.ANY and not satisfies(version, tool.accepts):
        return f"{on_path} is {normal(version)}, needed is {tool.accepts.removeprefix('==')}"
    companions = [other.name for other in known.tools if other.beside == tool.name]
    # The real pulumi looks next to its own resolved file, a wrapper next to the link.
    folders = on_path.resolve().parent, on_path.parent
    if any(all((folder / name).exists() for name in companions) for folder in folders):
        return ""
    return f"{on_path} has no {' and '.join(companions)} next to it"


_TIMEOUT_S = 15


def version_of(executable: Path, tool: Tool) -> str | None:
    """The version that the executable reports, or None if its output has none; what it says is remembered."""
    status = executable.stat()
    # With the real path: a link may be changed to a file of the same size and time.
    key = f"{tool.name} {executable} {executable.resolve()}"
    fingerprint = [status.st_mtime_ns, status.st_size]
    known = _remembered()
    if key in known and known[key][0] == fingerprint:
        return known[key][1]
    try:
        version = _said_version(executable, tool)
    except (OSError, subprocess.TimeoutExpired):
        # Not remembered: on a busy machine, it may answer the next time.
        return None
    _remember(key, fingerprint, version)
    return version


def ask_version(executable: Path, tool: Tool) -> str | None:
    """Run an executable to get its version; None if its output has none, or if it cannot be run."""
    try:
        return _said_version(executable, tool)
    except (OSError, subprocess.TimeoutExpired):
        return None


def _said_version(executable: Path, tool: Tool) -> str | None:
    environment = {**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "true"}
    said = answer([executable, *tool.probe_args], timeout=_TIMEOUT_S, env=environment)
    match = re.search(tool.probe_pattern or "", said.stdout + said.stderr)
    return match[1] if match else None


def _versions_file() -> Path:
    return cache.root() / "probes.json"


def _remembered() -> dict[str, tuple[list[int], str | None]]:
    """The versions that executables have reported, each with the fingerprint of its executable at the time."""
    try:
        document = json.loads(_versions_file().read_text())
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def _remember(key: str, fingerprint: list[int], version: str | None) -> None:
    # Read again, and replaced as a whole: another process may have written it. A lost entry only costs a probe.
    document = {**_remembered(), key: (fingerprint, version)}
    # A read-only cache is only slower.
    with suppress(OSError):
        _versions_file().parent.mkdir(parents=True, exist_ok=True)
        files.write(_versions_file(), json.dumps(document))
