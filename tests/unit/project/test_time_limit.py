"""Tests that start clusters are left out when their time is over, by a real run of pytest beside this one."""

import time
from pathlib import Path

from tests.unit.project.test_second_try import pytest_with

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


def run(directory: Path, *arguments: str) -> tuple[list[str], set[str]]:
    """What was said, and the tests that were begun."""
    _, said = pytest_with("time_limit", directory, TESTS, *arguments)
    return said, {path.name for path in directory.glob("test_*") if not path.suffix}


def test_after_the_time_only_tests_without_clusters_begin(tmp_path: Path) -> None:
    said, begun = run(tmp_path, f"--clusters-until={time.time() - 1}", "-n", "2")
    assert "1 passed, 2 skipped" in said[-1]
    assert any("no time is left for tests that start clusters" in line for line in said)
    assert begun == {"test_without"}


def test_before_it_all_run(tmp_path: Path) -> None:
    said, begun = run(tmp_path, f"--clusters-until={time.time() + 3600}")
    assert "3 passed" in said[-1]
    assert begun == {"test_by_pulumi", "test_on_a_cluster", "test_without"}
