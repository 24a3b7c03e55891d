"""The second try of failed tests, by a real run of pytest beside this one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.project import ROOT
from tests.support.second_try import MOST

# Of the installed plugins the one that is needed: all of them take most of the time of so small a run.
ONE_PLUGIN = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "xdist.plugin"}
TESTS = '''
import pathlib
import pytest

HERE = pathlib.Path(__file__).parent


def first(name):
    """Whether it is the first time."""
    mark = HERE / name
    there = mark.exists()
    mark.touch()
    return not there


@pytest.fixture(scope="module")
def busy():
    assert not first("fixture"), "the machine was busy"


def test_well():
    pass


@pytest.mark.parametrize("number", range({of_fixture}))
def test_of_fixture(busy, number):
    pass


def test_that_holds_alone():
    assert not first("test"), "the other way round"
    if {gone}:
        pytest.skip("what it needs is gone")


@pytest.mark.parametrize("number", range({wrong}))
def test_wrong(number):
    assert first("never") and False
'''

IN_ORDER = """
import pathlib
import pytest

MARK = pathlib.Path(__file__).parent / "mark"


@pytest.fixture(scope="module")
def module_project():
    return []


def test_begins(module_project):
    module_project.append("begun")


def test_goes_on(module_project):
    there = MARK.exists()
    MARK.touch()
    assert there and module_project == ["begun"]


def test_ends(module_project):
    pass
"""


def pytest_with(plugin: str, directory: Path, tests: str, *arguments: str) -> tuple[int, list[str]]:
    """Run tests with one of our plugins."""
    (directory / "test_it.py").write_text(tests)
    (directory / "conftest.py").write_text(f'pytest_plugins = ["tests.support.{plugin}"]\n')
    markers = "\n  e2e: starts a cluster\n  integration: starts a cluster\n"
    (directory / "pytest.ini").write_text(f"[pytest]\npythonpath = {ROOT}\nmarkers ={markers}")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rs", *arguments]
    environment = {**os.environ, **ONE_PLUGIN}
    answer = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)
    return answer.returncode, answer.stdout.splitlines()


def run(
    directory: Path, *arguments: str, wrong: int = 0, of_fixture: int = 1, gone: bool = False
) -> tuple[int, list[str]]:
    text = TESTS
    for name, value in {"wrong": wrong, "of_fixture": of_fixture, "gone": gone}.items():
        text = text.replace(f"{{{name}}}", str(value))
    return pytest_with("second_try", directory, text, *arguments)


@pytest.mark.parametrize("side_by_side", [(), ("-n", "2", "--dist", "loadfile")])
def test_what_holds_alone_is_counted_as_flaky_and_told(tmp_path: Path, side_by_side: tuple[str, ...]) -> None:
    code, said = run(tmp_path, "--second-try", *side_by_side)
    assert code == 0
    assert "1 passed, 1 skipped, 2 flaky" in said[-1]
    assert sum("failed at first: test_it.py::test_" in line for line in said) == 2
    assert any("the machine was busy" in line for line in said)
    assert any("the other way round" in line for line in said)


def test_what_fails_twice_is_a_failure(tmp_path: Path) -> None:
    code, said = run(tmp_path, "--second-try", wrong=1)
    assert code == 1
    assert "2 failed, 1 passed, 1 error" in said[-1]
    assert any("2 passed, 1 failed" in line or "1 failed, 2 passed" in line for line in said)


def test_what_is_skipped_then_is_a_failure(tmp_path: Path) -> None:
    code, said = run(tmp_path, "--second-try", gone=True)
    assert code == 1
    assert "1 failed, 1 passed" in said[-1]
    assert any("what it needs is gone" in line for line in said)


def test_the_tests_of_a_file_whose_fixture_failed_count_as_one(tmp_path: Path) -> None:
    code, said = run(tmp_path, "--second-try", of_fixture=MOST + 1)
    assert code == 0
    assert f"{MOST + 2} flaky" in said[-1]


def test_one_that_goes_on_from_others_is_tried_with_them(tmp_path: Path) -> None:
    code, said = pytest_with("second_try", tmp_path, IN_ORDER, "--second-try")
    assert code == 0
    assert "2 passed, 1 flaky" in said[-1]
    assert any("2 passed, 1 deselected" in line for line in said), "the one before it, and not the one after it"


@pytest.mark.parametrize(("asked", "wrong"), [((), 0), (("--second-try",), MOST)])
def test_unasked_or_for_many_there_is_none(tmp_path: Path, asked: tuple[str, ...], wrong: int) -> None:
    code, said = run(tmp_path, *asked, wrong=wrong)
    assert code == 1
    assert not any("a second try" in line for line in said)
