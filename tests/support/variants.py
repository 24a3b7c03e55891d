"""A copy of the package with an addition, to show that nothing else has to be changed for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import kumulus


def ask_a_copy(
    directory: Path, added: Mapping[str, str], changed: Mapping[str, tuple[str, str]], questions: str
) -> str:
    """The output of a program that uses a changed copy of the package.

    Args:
        directory: an empty directory for the copy.
        added: contents of new files, by their path in the package.
        changed: for existing files, a text that occurs in them once, and its replacement.
        questions: the program.
    """
    package = directory / "src" / "kumulus"
    shutil.copytree(Path(kumulus.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for name, content in added.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(content)
    for name, (old, new) in changed.items():
        text = (package / name).read_text()
        assert text.count(old) == 1, f"{name} has {old!r} {text.count(old)} times"
        (package / name).write_text(text.replace(old, new))
    environment = {**os.environ, "PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    answer = subprocess.run(
        [sys.executable, "-c", questions], env=environment, cwd=directory, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout
