"""Where tools are kept, for this user and across checkouts.

- `$XDG_CACHE_HOME/kumulus/toolchain/<key>/{bin,plugins,stamps}`: the required tools of one set of pins
- `…/kubernetes/<version>-<key>/…`: the control plane of another Kubernetes version
- `…/optional/<tool>-<key>/…`: a tool that is fetched only on request; its `share/<tool>` has files of its module
- `…/downloads/`: release files being downloaded
- `…/scratch/`: Go's caches while something is being built
- `…/logs/<tool>.log`: Go's output from when it last built a tool
- `…/lock` and `…/probes.json`: see lock.py and probe.py
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from kumulus.toolchain.pins import Pins, Tool, combined


def root() -> Path:
    """The directory that holds everything this package keeps."""
    configured = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification says to ignore relative paths.
    base = Path(configured) if os.path.isabs(configured) else Path.home() / ".cache"
    return base / "kumulus" / "toolchain"


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


def owns(path: Path) -> bool:
    """Whether a file lies in this cache rather than being the user's own."""
    return path.resolve().is_relative_to(root().resolve())
