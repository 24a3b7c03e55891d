"""Projects to run pulumi on, and one running fleet for the tests that only change it."""

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support import processes
from tests.support.installed import User, build
from tests.support.project import Project

FAILED = pytest.StashKey[bool]()
"""On a test that has failed; on the session, whether the last that had the fleet did."""
_HERE = Path(__file__).parent


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Remember on each test whether it failed, for the fixtures it shares with others."""
    report = yield
    if report.failed:
        item.stash[FAILED] = True
    return report


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """A project for one test."""
    made = Project(tmp_path)
    yield made
    made.close()


@pytest.fixture
def user(tmp_path: Path) -> Iterator[User]:
    """Somebody with a home of their own, who leaves nothing running."""
    home = tmp_path / "home"
    home.mkdir()
    made = User(home)
    yield made
    processes.kill(made.processes())


@pytest.fixture(scope="session")
def archives(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The sdist and the wheel."""
    return build(tmp_path_factory.mktemp("build"))


@pytest.fixture(scope="module")
def module_project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A project that the tests of a module share, in their order."""
    made = Project(tmp_path_factory.mktemp("project"))
    yield made
    made.close()


@dataclass
class Fleet:
    """The quickstart stack, up."""

    project: Project
    """Where it was brought up."""
    cluster: dict[str, Any]
    """Its ``kumulus:cluster`` as deployed; a test that changes it also has to apply the change."""

    def write(self) -> None:
        """Write the stack file as ``cluster`` has it."""
        self.project.write_stack(self.cluster)

    def group(self, name: str) -> dict[str, Any]:
        """One of its node groups, to be changed."""
        found: dict[str, Any] = next(group for group in self.cluster["nodeGroups"] if group["name"] == name)
        return found

    def nodes(self) -> int:
        """How many nodes the stack file declares."""
        return sum(place["replicas"] for group in self.cluster["nodeGroups"] for place in group["placement"])


_RUNNING = pytest.StashKey[list[Fleet]]()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """With the last of these tests, end the fleet: it would take CPU from all tests that come after them."""
    if nextitem is None or _HERE not in nextitem.path.parents:
        for fleet in item.session.stash.get(_RUNNING, []):
            fleet.project.close()
        item.session.stash[_RUNNING] = []


@pytest.fixture(scope="session")
def _fleets(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[bool], Fleet]]:
    request.session.stash[_RUNNING] = []

    def running(afresh: bool) -> Fleet:
        current = request.session.stash[_RUNNING]
        if afresh and current:
            current.pop().project.close()
        if not current:
            project = Project(tmp_path_factory.mktemp("fleet"))
            current.append(Fleet(project, project.copy_stack("quickstart")))
            try:
                project.up()
            except BaseException:
                # Nor does the next test get one that is not up.
                current.pop().project.close()
                raise
        return current[0]

    yield running
    for fleet in request.session.stash[_RUNNING]:
        fleet.project.close()


@pytest.fixture
def fleet(request: pytest.FixtureRequest, _fleets: Callable[[bool], Fleet]) -> Iterator[Fleet]:
    """The one running fleet; after a test that failed on it, the next gets a new one."""
    yield _fleets(request.session.stash.get(FAILED, False))
    request.session.stash[FAILED] = request.node.stash.get(FAILED, False)
