"""The examples of docs/testing.md, copied from the page into an empty folder, and what runs them there."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from kumulus import toolchain
from kumulus.testing.plane import PREFIX
from tests.support.project import ROOT

BLOCK = re.compile(r"```(?:python|yaml|go)\n(?:#|//) (\S+)\n(.+?)```", re.S)


def write(folder: Path, *names: str) -> Path:
    """Write these files of the page into a folder, or all of them; returns the folder."""
    for name, text in BLOCK.findall((ROOT / "docs" / "testing.md").read_text()):
        if not names or name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
    return folder


def run(folder: Path, *command: str, path: Sequence[Path] = (), env: Mapping[str, str] | None = None) -> str:
    """Run a program of Python's in the folder; returns what it printed, and fails if it leaves a cluster."""
    temporary = folder / "tmp"
    temporary.mkdir()
    environment = {
        **(env or os.environ),
        "PYTHONPATH": f"{ROOT / 'src'}:{folder / 'packages'}",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "TMPDIR": str(temporary),
        # Where Volcano puts a socket.
        "DEBUG_SOCKET_DIR": str(temporary),
        "PATH": os.pathsep.join([*map(str, path), os.environ["PATH"]]),
    }
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert list(temporary.glob(f"{PREFIX}*")) == []
    return said


def have(folder: Path, *packages: str) -> None:
    """Install packages beside the test; skip it, saying so, where they are not to be had."""
    got(sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder / "packages"), *packages)


def got(*command: str, cwd: Path | None = None) -> str:
    """Run a program that gets what others publish; skip the test, saying so, where that is not to be had."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=900)
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip() or "nothing was said").splitlines()[-1]
        pytest.skip(f"{' '.join(command)}: {said}")
    return done.stdout


def module(name: str, tool: str) -> Path:
    """The folder of a Go module, at the version of the tool that is built from it; skips the test as :func:`got`."""
    try:
        toolchain.find(tool)
    except toolchain.ToolchainError as error:
        pytest.skip(str(error))
    if shutil.which("go") is None:
        pytest.skip(f"there is no go to fetch the module {name} with")
    return Path(json.loads(got("go", "mod", "download", "-json", f"{name}@v{toolchain.version(tool)}"))["Dir"])


def pytest_of(*options: str) -> list[str]:
    """The command of pytest with Kumulus' plugin."""
    return ["pytest", "-p", "kumulus.testing.plugin", "-p", "no:cacheprovider", *options]
