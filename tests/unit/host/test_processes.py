"""Which of a directory's programs run, by the process table."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from kumulus.host import processes
from tests.support.processes import await_that


@pytest.fixture
def program(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """One that runs from the directory."""
    (tmp_path / "bin").mkdir()
    found = shutil.which("sleep")
    assert found is not None
    (tmp_path / "bin" / "etcd").symlink_to(found)
    with subprocess.Popen([str(tmp_path / "bin" / "etcd"), "600"]) as process:
        yield process
        process.kill()


def test_a_program_runs_until_it_ends_though_nobody_has_asked_how(
    tmp_path: Path, program: subprocess.Popen[bytes]
) -> None:
    await_that(lambda: processes.running(tmp_path) == {"etcd": [program.pid]}, 10, "it runs")
    assert processes.running(tmp_path / "bin") == {}
    program.kill()
    await_that(lambda: psutil.Process(program.pid).status() == psutil.STATUS_ZOMBIE, 10, "it has ended")
    assert processes.running(tmp_path) == {}


def test_the_status_of_other_programs_is_not_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would take as long again, in each preview and update several times."""
    asked: list[list[str]] = []

    def none(fields: list[str]) -> list[psutil.Process]:
        asked.append(fields)
        return []

    monkeypatch.setattr(psutil, "process_iter", none)
    processes.running(tmp_path)
    assert asked == [["cmdline"]]
