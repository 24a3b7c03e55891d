"""Clusters for tests, in a program that a user interrupts."""

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SOON = "from kumulus.testing import Cluster\n\n\ndef test_it():\n    with Cluster(nodes=1):\n        pass\n"
LATER = """\
import asyncio
from kumulus.testing import AsyncCluster


async def wait():
    async with AsyncCluster(nodes=1):
        pass


def test_it():
    asyncio.run(wait())
"""


FIXTURE = "def test_it(kumulus):\n    pass\n"
OWN = "def test_it(kumulus_cluster):\n    pass\n"


@pytest.mark.parametrize(("test", "options"), [(SOON, ["-s"]), (LATER, ["-s"]), (FIXTURE, []), (OWN, [])])
def test_pytest_whose_cluster_waits_for_the_tools_of_another_process_says_so_and_ends_by_ctrl_c(
    test: str, options: list[str], tmp_path: Path
) -> None:
    lock = tmp_path / "kumulus" / "toolchain" / "lock"
    lock.parent.mkdir(parents=True)
    (tmp_path / "test_it.py").write_text(test)
    variables = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "pytest", *options, "-p", "no:cacheprovider", "test_it.py"]
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with subprocess.Popen(
            command, cwd=tmp_path, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as waiting:
            try:
                assert waiting.stdout is not None
                said = ""
                while "waiting for process" not in said:
                    line = waiting.stdout.readline()
                    assert line, said
                    said += line
                waiting.send_signal(signal.SIGINT)
                waiting.wait(30)
            finally:
                waiting.kill()
    assert "which is getting the tools" in said
