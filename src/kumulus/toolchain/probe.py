"""Asking executables on PATH for their version, once per file: starting a dozen of them would take seconds."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

from kumulus.toolchain import cache
from kumulus.toolchain.pins import Tool

_TIMEOUT_SECONDS = 15


def version_of(executable: Path, tool: Tool) -> str | None:
    """The version that the executable reports, or None if its output has none."""
    status = executable.stat()
    # With the real path: a link may be changed to a file of the same size and time.
    key = f"{tool.name} {executable} {executable.resolve()}"
    fingerprint = [status.st_mtime_ns, status.st_size]
    known = _remembered()
    if key in known and known[key][0] == fingerprint:
        return known[key][1]
    version = ask(executable, tool)
    _remember(key, fingerprint, version)
    return version


def ask(executable: Path, tool: Tool) -> str | None:
    """Run an executable to get its version; None if its output has none."""
    try:
        answer = subprocess.run(
            [executable, *tool.probe_args],
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=_TIMEOUT_SECONDS,
            env={**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "true"},
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(tool.probe_pattern or "", answer.stdout + answer.stderr)
    return match[1] if match else None


def _file() -> Path:
    return cache.root() / "probes.json"


def _remembered() -> dict[str, tuple[list[int], str | None]]:
    try:
        document = json.loads(_file().read_text())
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def _remember(key: str, fingerprint: list[int], version: str | None) -> None:
    # Read again, and replaced as a whole: another process may have written it. A lost entry only costs a probe.
    document = {**_remembered(), key: (fingerprint, version)}
    temporary = _file().with_suffix(f".{os.getpid()}")
    try:
        _file().parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps(document))
        temporary.replace(_file())
    except OSError:
        # A read-only cache is only slower.
        temporary.unlink(missing_ok=True)
