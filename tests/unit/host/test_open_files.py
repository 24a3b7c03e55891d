"""The limit of open files is raised as far as the user may, and never lowered."""

from __future__ import annotations

import subprocess
import sys

import pytest

_CHILD = """
import resource, sys
from kumulus.provider.plugin.__main__ import allow_open_files
resource.setrlimit(resource.RLIMIT_NOFILE, tuple(map(int, sys.argv[1:3])))
print(allow_open_files(int(sys.argv[3])), *resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize(
    ("soft", "hard", "enough", "after"),
    [(256, 900, 65_536, 900), (256, 900, 500, 500), (900, 900, 500, 900), (600, 900, 500, 600)],
)
def test_the_limit_afterwards(soft: int, hard: int, enough: int, after: int) -> None:
    # In a process of its own: what is lowered here could not be raised again.
    command = [sys.executable, "-c", _CHILD, *map(str, (soft, hard, enough))]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == [str(after), str(after), str(hard)]
