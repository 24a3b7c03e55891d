"""Tests that start clusters are left out when their time is over, by a real run of pytest beside this one."""

import os
import subprocess
import sys
import time
from pathlib import Path

from tests.support.project import ROOT
from tests.unit.project.test_second_try import ONE_PLUGIN

TESTS = """
import pathlib
import pytest

HERE = pathlib.Path(__file__).parent


@pytest.fixture
def cluster(request):
    (HERE / request.node.name).touch()


@pytest.mark.e2e
def test_by_pulumi(cluster):
    pass


@pytest.mark.integration
def test_on_a_cluster(cluster):
    pass


def test_without(cluster):
    pass
"""
CONFIGURATION = "[pytest]\npythonpath = {root}\nmarkers =\n  e2e: starts a cluster\n  integration: starts a cluster\n"


def run(directory: Path, *arguments: str) -> tuple[str, set[str]]:
    """The last line, and the tests that were begun."""
    (directory / "test_it.py").write_text(TESTS)
    (directory / "conftest.py").write_text('pytest_plugins = ["tests.support.time_limit"]\n')
    (directory / "pytest.ini").write_text(CONFIGURATION.format(root=ROOT))
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rs", *arguments]
    environment = {**os.environ, **ONE_PLUGIN}
    answer = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)
    return answer.stdout, {path.name for path in directory.glob("test_*") if not path.suffix}


def test_after_the_time_only_tests_without_clusters_begin(tmp_path: Path) -> None:
    said, begun = run(tmp_path, f"--clusters-until={time.time() - 1}", "-n", "2")
    assert "1 passed, 2 skipped" in said.splitlines()[-1]
    assert "no time is left for tests that start clusters" in said
    assert begun == {"test_without"}


def test_before_it_all_run(tmp_path: Path) -> None:
    said, begun = run(tmp_path, f"--clusters-until={time.time() + 3600}")
    assert "3 passed" in said.splitlines()[-1]
    assert begun == {"test_by_pulumi", "test_on_a_cluster", "test_without"}
