"""What is said of a scheduler's process that has ended."""

import asyncio
from pathlib import Path

import pytest

from kumulus.extras.schedulers import running
from kumulus.extras.schedulers.children import log_file
from kumulus.extras.schedulers.errors import SchedulerError
from kumulus.extras.schedulers.launch.plan import SchedulerProgram
from kumulus.extras.schedulers.running import Running
from kumulus.kube import Client, Connection
from tests.support import processes
from tests.support.mirror import Answer, serving


def ended(directory: Path, log: str) -> Running:
    """A Kueue of which nothing runs any more, with its log."""
    file = log_file(directory, "kueue")
    file.parent.mkdir()
    file.write_text(log)
    program = SchedulerProgram("kueue", directory / "kueue", ("--config=mine.yaml",), {}, "")
    return Running("kueue", "0.19.2", (), {}, directory / "kubeconfig.yaml", directory, (program,))


@pytest.mark.parametrize(
    ("log", "remedies"),
    [("fsnotify: too many open files\n", 1), ("panic: no such flag\n", 0), ("", 0)],
)
def test_an_end_for_want_of_inotify_instances_comes_with_its_remedy(tmp_path: Path, log: str, remedies: int) -> None:
    failure = ended(tmp_path, log).failure()
    assert failure is not None
    assert failure.startswith("kueue has ended")
    assert ("; its last words:\n    " + log.strip() in failure) == bool(log)
    assert failure.count("`sudo sysctl fs.inotify.max_user_instances=") == remedies


@pytest.mark.parametrize(("log", "checked"), [("fsnotify: too many open files\n", False), ("no such flag\n", True)])
async def test_a_start_that_fails_comes_with_what_to_check(tmp_path: Path, log: str, checked: bool) -> None:
    nobody = Client(Connection("http://127.0.0.1:1", "nobody"))
    with pytest.raises(SchedulerError) as raised:
        await ended(tmp_path, log).work(nobody, None, 5.0)
    command = f"{tmp_path}/kueue --config=mine.yaml"
    assert str(raised.value).endswith(f"configuration, and what it is started with: {command}") == checked


async def test_a_program_that_answers_before_it_works_is_ready_when_its_answer_says_so() -> None:
    with serving() as server:
        server.files["/metrics"] = Answer(b"cycles_total 0\n")
        program = SchedulerProgram("kai", Path("/kai"), (), {}, f"{server.url}/metrics", ready_says="cycle_seconds{")
        waiting = asyncio.ensure_future(running.answering([program]))
        await asyncio.to_thread(processes.await_that, lambda: len(server.asked) > 2, 10, "it is asked again")
        assert not waiting.done()
        server.files["/metrics"] = Answer(b'cycle_seconds{action="allocate"} 1\n')
        await asyncio.wait_for(waiting, 10)
