"""How Kumulus is there: as a checkout of its repository, or installed into a Python environment."""

from __future__ import annotations

import functools
import os
import shutil
import sys
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


@functools.cache
def checkout() -> Path | None:
    """The checkout that this package is the source of, or None where it is installed."""
    source, root = _PACKAGE.parent, _PACKAGE.parents[1]
    there = source.name == "src" and (root / "kumulus").is_file() and (root / "requirements.txt").is_file()
    return root if there else None


def python() -> Path:
    """The interpreter that programs and the provider plugin run with: it has Kumulus and what it needs."""
    root = checkout()
    return root / ".venv" / "bin" / "python" if root else Path(sys.executable)


def scripts() -> Path:
    """The directory with that interpreter, and with the command `kumulus` in most installations."""
    return python().parent


def command() -> str:
    """What to type for the command, where the user is: for advice that can be pasted."""
    root = checkout()
    found = shutil.which("kumulus")
    if root is None or (found and Path(found).absolute().parent == scripts()):
        return "kumulus"
    path = os.path.relpath(root / "kumulus")
    return path if path.startswith(os.pardir) else os.path.join(os.curdir, path)
