"""Many small stacks at once on one machine: all come up, do not affect each other, and are destroyed."""

import time
from collections.abc import Iterator

import pytest

from kumulus.runtimes.kwok.layout import Layout
from tests.support import processes
from tests.support.project import NODES, Project, node_group
from tests.support.trials import Trial, note

pytestmark = pytest.mark.e2e
SIZE = 20


@pytest.fixture
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    made = Project(tmp_path_factory.mktemp("many"))
    yield made
    made.close()


def test_small_stacks_come_up_at_once_and_never_meet(project: Project) -> None:
    stacks = [f"team-{number}" for number in range(10)]
    for stack in stacks:
        project.write_stack({"nodeGroups": [node_group(stack, SIZE)]}, stack=stack)
    started = time.monotonic()
    commands = [project.start("up", "--yes", "--skip-preview", stack=stack) for stack in stacks]
    for command in commands:
        result = command.result(500)
        assert result.code == 0, result.text
    seconds = time.monotonic() - started

    for stack in stacks:
        assert {node["name"] for node in project.api(stack).metadata(NODES)} == {
            f"{stack}-z-{ordinal}" for ordinal in range(SIZE)
        }
    running = project.processes()
    assert len(running) == 5 * len(stacks)
    assert {len(pids) for pids in running.values()} == {1}
    ports = [port for stack in stacks for port in Layout(project.cluster(stack)).ports().values()]
    assert len(set(ports)) == len(ports) == 6 * len(stacks)
    assert len({project.identity(stack) for stack in stacks}) == len(stacks)

    commands = [project.start("destroy", "--yes", "--skip-preview", stack=stack) for stack in stacks]
    for command in commands:
        result = command.result(300)
        assert result.code == 0, result.text
    assert project.processes() == {}
    assert not project.home.exists()
    processes.await_that(lambda: not project.processes(), 10, "nothing runs any more")
    note(
        Trial(f"{len(stacks)} stacks at once", "create", "at once", "all came up", True, round(seconds, 1), len(stacks))
    )
