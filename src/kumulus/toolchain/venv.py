"""The project's virtual environment: made once, brought up to date when the requirements change.

Every file that pip installs has to have a hash that the requirements list: another file that an index serves later
under the same version is refused. Kumulus itself is installed from its own directory, without dependencies.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

from kumulus.toolchain import lock
from kumulus.toolchain.errors import ToolchainError
from kumulus.toolchain.progress import say

BASE = ("requirements.txt",)
DEVELOPMENT = ("requirements.txt", "requirements-dev.txt")
_LINES_OF_LOG = 8


def python(project: Path) -> Path:
    """The environment's interpreter."""
    return project / ".venv" / "bin" / "python"


def is_current(project: Path, development: bool = False) -> bool:
    """Whether the environment has what the requirements ask for, judged by what was last installed into it."""
    try:
        stamp = _stamp(project, development)
        return stamp in _stamp_file(project).read_text().split() and os.access(python(project), os.X_OK)
    except OSError:
        return False


def ensure(project: Path, development: bool = False) -> None:
    """Create the environment, or install what changed in the requirements; returns at once if nothing did.

    Args:
        project: the directory with requirements.txt.
        development: with requirements-dev.txt too.

    Raises:
        ToolchainError: Python cannot create one, or pip failed; says what to do.
    """
    if is_current(project, development):
        return
    with lock.exclusive(project / ".venv.lock", "making .venv", say):
        if is_current(project, development):
            return
        if not _works(project):
            _create(project)
        say(f"installing {' and '.join(DEVELOPMENT if development else BASE)} into .venv")
        # Written again below; until then, the environment counts as unfinished.
        _stamp_file(project).unlink(missing_ok=True)
        # Computed before pip reads them: requirements that change during the installation are installed next time.
        stamps = {_stamp(project, False), _stamp(project, development)}
        wanted = "requirements-dev.txt" if development else "requirements.txt"
        _pip(project, ["--require-hashes", "-r", wanted])
        # Editable, so that a Pulumi program elsewhere on this machine can import the components; `compat` is a plain
        # path entry, so packages added later need no new installation.
        _pip(project, ["--no-deps", "--no-build-isolation", "--config-settings", "editable_mode=compat", "-e", "."])
        _stamp_file(project).write_text("\n".join(sorted(stamps)) + "\n")


def ensure_policies(folder: Path) -> None:
    """Create a policy pack's environment, or install what changed in its requirements; instant if nothing did.

    Args:
        folder: the pack, with its requirements.txt.

    Raises:
        ToolchainError: Python cannot create one, or pip failed; says what to do.
    """
    with lock.exclusive(folder / ".venv.lock", "making .venv", say):
        wanted = hashlib.sha256(f"{folder} ".encode() + (folder / "requirements.txt").read_bytes()).hexdigest()
        stamp = _stamp_file(folder)
        if stamp.exists() and stamp.read_text().strip() == wanted and os.access(python(folder), os.X_OK):
            return
        if not _works(folder):
            _create(folder)
        say(f"installing {folder.name}/requirements.txt into {folder.name}/.venv")
        stamp.unlink(missing_ok=True)
        _pip(folder, ["--require-hashes", "-r", "requirements.txt"])
        stamp.write_text(f"{wanted}\n")


def _stamp_file(project: Path) -> Path:
    return project / ".venv" / "kumulus-installed"


def _stamp(project: Path, development: bool) -> str:
    digest = hashlib.sha256()
    # A virtual environment is bound to its path and to the Python it was made from.
    digest.update(f"{project} {development}".encode())
    for name in (*(DEVELOPMENT if development else BASE), "pyproject.toml"):
        digest.update((project / name).read_bytes())
    return digest.hexdigest()


def _works(project: Path) -> bool:
    try:
        code = "import sys, pip; sys.exit(sys.version_info < (3, 11))"
        return subprocess.run([python(project), "-c", code], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def _create(project: Path) -> None:
    if importlib.util.find_spec("ensurepip") is None or importlib.util.find_spec("venv") is None:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        raise ToolchainError(
            f"this Python ({sys.executable}) cannot make virtual environments: it comes without ensurepip"
            f"\n  On Debian and Ubuntu: apt install python{version}-venv"
        )
    say(f"making .venv with Python {sys.version.split()[0]}")
    shutil.rmtree(project / ".venv", ignore_errors=True)
    command = [_base_python(), "-m", "venv", str(project / ".venv")]
    answer = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if answer.returncode != 0:
        output = (answer.stdout + answer.stderr).strip()
        raise ToolchainError(f"python -m venv failed:\n  {output}")


def _base_python() -> str:
    # If we run from the environment that is to be replaced, this is the Python it was made from.
    return getattr(sys, "_base_executable", None) or sys.executable


def _pip(project: Path, arguments: list[str]) -> None:
    command = [str(python(project)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments]
    answer = subprocess.run(
        command, cwd=project, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, check=False
    )
    if answer.returncode != 0:
        last = "\n".join(f"  {line}" for line in answer.stderr.strip().splitlines()[-_LINES_OF_LOG:])
        raise ToolchainError(f"pip could not install {' '.join(arguments)}:\n{last}\n  The next run tries again.")
