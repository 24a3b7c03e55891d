"""State that people share: an update locks its stack, on a file backend and on PostgreSQL alike."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from kumulus.cli.backend import half_written
from tests.support import postgres, processes
from tests.support.project import NODES, Project, Running, node_group

pytestmark = pytest.mark.e2e

SETTINGS = """\
name: waiting
runtime: {name: python, options: {toolchain: pip, virtualenv: .venv}}
stackConfigDir: stacks
"""
# An update for as long as nobody tells it to end; it tells that it has begun, and so has its lock.
PROGRAM = """\
import time
from pathlib import Path

import pulumi

from kumulus.components.engine import end_with_engine

end_with_engine()
here = Path(__file__).parent
(here / "begun").touch()
while not (here / "go").exists():
    time.sleep(0.05)
pulumi.export("done", True)
"""
SMALL = {"nodeGroups": [node_group("cpu", 2)]}


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with postgres.running() as url:
        yield url


@pytest.fixture(params=["file", "postgres"])
def backend(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The variables that say where the state is; none where Pulumi.yaml does."""
    return {"PULUMI_BACKEND_URL": request.getfixturevalue("database")} if request.param == "postgres" else {}


@pytest.fixture
def waiting(tmp_path: Path) -> Iterator[Project]:
    program = tmp_path / "program"
    program.mkdir()
    (program / "Pulumi.yaml").write_text(SETTINGS)
    (program / "__main__.py").write_text(PROGRAM)
    made = Project(tmp_path, program)
    yield made
    made.close()


def begin(project: Project, stack: str, backend: dict[str, Any]) -> Running:
    """An update that has begun and goes on until :func:`go`."""
    for name in ("begun", "go"):
        (project.directory / name).unlink(missing_ok=True)
    running = project.start("up", "--yes", "--skip-preview", stack=stack, **backend)
    processes.await_amid(running.process, (project.directory / "begun").exists, 60)
    return running


def go(project: Project) -> None:
    (project.directory / "go").touch()


def test_a_second_update_is_refused_and_the_first_goes_on(waiting: Project, backend: dict[str, Any]) -> None:
    first = begin(waiting, "one", backend)
    began = time.monotonic()
    second = waiting.pulumi("up", "--yes", "--skip-preview", stack="one", **backend)
    assert second.code != 0
    assert time.monotonic() - began < 30, "it does not wait for the lock"
    assert "the stack is currently locked by 1 lock(s)" in second.text
    assert "pulumi cancel" in second.text
    assert f"(pid {first.process.pid})" in second.text, "whose lock it is"
    # Another stack of the same backend is nobody's business.
    other = begin(waiting, "two", backend)
    go(waiting)
    assert (first.result().code, other.result().code) == (0, 0)
    assert waiting.pulumi("up", "--yes", "--skip-preview", stack="one", **backend).code == 0


def test_the_lock_of_an_update_that_was_killed_is_released_by_cancel(waiting: Project, backend: dict[str, Any]) -> None:
    first = begin(waiting, "killed", backend)
    # The language host looks after its engine every five minutes only; the program ends by itself.
    host, program = psutil.Process(first.process.pid).children(recursive=True)
    first.process.send_signal(signal.SIGKILL)
    assert first.result().code == -signal.SIGKILL
    _, alive = psutil.wait_procs([program], timeout=60)
    assert not alive
    host.kill()
    go(waiting)
    refused = waiting.pulumi("up", "--yes", "--skip-preview", stack="killed", **backend)
    assert refused.code != 0
    assert "the stack is currently locked by 1 lock(s)" in refused.text
    assert waiting.pulumi("cancel", "--yes", stack="killed", **backend).code == 0
    assert waiting.pulumi("up", "--yes", "--skip-preview", stack="killed", **backend).code == 0


def test_a_state_is_read_again_without_the_description_that_a_kill_has_cut_short(waiting: Project) -> None:
    go(waiting)
    assert waiting.pulumi("up", "--yes", "--skip-preview", stack="one").code == 0
    state = waiting.directory.parent / "state"
    [description] = state.glob(".pulumi/stacks/*/one.json.attrs")
    assert half_written(state) == []
    # What a kill between opening the file and writing it leaves: the first of two calls of the system.
    description.write_bytes(b"")
    refused = waiting.pulumi("up", "--yes", "--skip-preview", stack="one")
    assert refused.code != 0
    assert "EOF" in refused.text, "pulumi writes it otherwise now, and half_written can go"
    assert half_written(state) == [description]
    description.unlink()
    assert waiting.pulumi("up", "--yes", "--skip-preview", stack="one").code == 0


def test_a_stack_is_everybodys_who_has_the_backend(tmp_path: Path, database: str) -> None:
    """One brings it up; another checkout, with nothing of the first one's state, sees it and takes it down."""
    shared: dict[str, Any] = {"PULUMI_BACKEND_URL": database}
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    mine, theirs = Project(tmp_path / "a"), Project(tmp_path / "b")
    # The cluster is on this machine, and the copy of the stack file has the salt of the state's secrets.
    theirs.environment["KUMULUS_HOME"] = str(mine.home)
    try:
        mine.write_stack(SMALL, stack="pg")
        up = mine.pulumi("up", "--yes", "--skip-preview", **shared)
        assert up.code == 0, up.text
        assert len(mine.api().list(NODES)) == 2
        assert not mine.backend_file().exists(), "nothing of it is in files"
        theirs.stacks.joinpath("Pulumi.pg.yaml").write_text(mine.stack_file().read_text())
        theirs.stack = "pg"
        theirs.known("pg")
        seen = theirs.pulumi("preview", "--expect-no-changes", **shared)
        assert seen.code == 0, seen.text
        down = theirs.pulumi("destroy", "--yes", "--skip-preview", **shared)
        assert down.code == 0, down.text
        assert mine.processes() == {}
    finally:
        theirs.close()
        mine.close()
