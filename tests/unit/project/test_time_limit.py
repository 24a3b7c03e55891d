"""Tests that start clusters: their order, and that they are left out when their time is over; real runs of pytest."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support import versions
from tests.support.project import ROOT
from tests.support.time_limit import changed_files, rank
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
    """What it wrote, and the tests that were begun."""
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


@pytest.mark.parametrize("number", [1, 5, 58])
@pytest.mark.parametrize("day", [0, 20_787, 20_790])
def test_every_file_is_begun_within_three_days_if_each_has_time_for_two_fifths_of_them(number: int, day: int) -> None:
    files = {f"tests/e2e/test_{each}.py" for each in range(number)}
    begun = [
        name for later in range(3) for name in sorted(files, key=rank(files, (), day + later))[: number * 2 // 5 + 1]
    ]
    assert set(begun) == files


def test_what_was_changed_comes_first_and_what_shares_a_control_plane_second() -> None:
    files = [f"tests/{name}.py" for name in ("e2e/test_a", "e2e/test_b", "integration/test_c", "integration/test_d")]
    changed = {"tests/e2e/test_b.py", "src/kumulus/host/version.py"}
    order = sorted(files, key=rank(files, changed, 1))
    assert [name.partition("/")[2] for name in order] == [
        "e2e/test_b.py",
        "integration/test_c.py",
        "integration/test_d.py",
        "e2e/test_a.py",
    ]


def test_what_a_commit_of_a_few_files_changed_is_changed(tmp_path: Path) -> None:
    assert changed_files(tmp_path) == set()
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "--quiet"], cwd=tmp_path, check=True)
    for names in (["few", "fewer"], [f"many-{number}" for number in range(50)]):
        for name in names:
            (tmp_path / name).touch()
        subprocess.run([*git, "add", "."], cwd=tmp_path, check=True)
        subprocess.run([*git, "commit", "--quiet", "-m", "a"], cwd=tmp_path, check=True)
    assert changed_files(tmp_path) == {"few", "fewer"}


def test_all_tests_of_a_file_stay_together_behind_those_without_clusters(tmp_path: Path) -> None:
    for name, mark in {"a_cluster": "@pytest.mark.e2e\n", "no_cluster": ""}.items():
        text = f"import pytest\n\n\n{mark}def test_of_{name}():\n    pass\n\n\ndef test_more_of_{name}():\n    pass\n"
        (tmp_path / f"test_{name}.py").write_text(text)
    said, _ = run(tmp_path, f"--clusters-until={time.time() + 3600}", "--collect-only", "-q")
    assert [line.partition("::")[2] for line in said.splitlines() if "cluster.py::" in line] == [
        "test_of_no_cluster",
        "test_more_of_no_cluster",
        "test_of_a_cluster",
        "test_more_of_a_cluster",
    ]


def test_tests_on_another_version_are_for_one_process_whichever_file_they_are_of(tmp_path: Path) -> None:
    default, other, *_ = versions.on_offer()
    text = f"""
import pytest


@pytest.mark.parametrize("plane", ["{other}", "{default}"])
@pytest.mark.parametrize("more", [1, 2])
def test_it(worker_id, plane, more):
    print(worker_id, plane)
"""
    for name in "abcd":
        (tmp_path / f"test_{name}.py").write_text(text)
    said, _ = run(tmp_path, "-n", "3", "--dist", "loadfile", "-rP")
    places = {line for line in said.splitlines() if line.startswith("gw")}
    assert len([place for place in places if place.endswith(other)]) == 1, said
    assert len([place for place in places if place.endswith(default)]) > 1
