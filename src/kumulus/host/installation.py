"""How Kumulus is installed: as a checkout of its repository, or in a Python environment."""

import functools
import os
import shutil
import sys
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


@functools.cache
def checkout() -> Path | None:
    """The checkout that this package is in, or None if it is installed."""
    source, root = _PACKAGE.parent, _PACKAGE.parents[1]
    there = source.name == "src" and (root / "kumulus").is_file() and (root / "requirements.txt").is_file()
    return root if there else None


def python() -> Path:
    """The interpreter for programs and the provider plugin: it has Kumulus and what it needs."""
    root = checkout()
    return root / ".venv" / "bin" / "python" if root else Path(sys.executable)


def scripts() -> Path:
    """The directory with that interpreter, and with the command `kumulus` in most installations."""
    return python().parent


def command() -> str:
    """How to type the command in the current directory, for advice that can be pasted."""
    root = checkout()
    found = shutil.which("kumulus")
    if root is None or (found and Path(found).absolute().parent == scripts()):
        return "kumulus"
    path = os.path.relpath(root / "kumulus")
    return path if path.startswith(os.pardir) else os.path.join(os.curdir, path)


def way_to_add(extra: str) -> str:
    """How to install the packages of one of Kumulus' extras, as a command that can be pasted."""
    return f"{command()} venv --with {extra}" if checkout() else f"pip install 'kumulus[{extra}]'"
