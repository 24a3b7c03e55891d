"""The user's own commands of a timeline."""

import asyncio
import json
import os
import re
import signal
from argparse import Namespace
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kumulus.extras.journal.book import Journal
from kumulus.extras.journal.changes import JournaledChanges, changes_from
from kumulus.extras.journal.undo import RUN_VARIABLE, end_commands
from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.timeline import TimelineProgram
from kumulus.extras.lab.run.commands import Commands
from kumulus.extras.lab.run.repetition import Repetition
from kumulus.host import processes
from tests.support.processes import await_that

RUN = "20260101-000000-abcdef"
# A child of its own, in another process group, that does not care for SIGTERM.
STUBBORN = "python3 -c 'import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); time.sleep(600)'"


@pytest.fixture
async def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Commands]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr("kumulus.extras.lab.run.commands._PATIENCE", 0.2)
    (tmp_path / "base").mkdir()
    journal = Journal(JournaledChanges(f"{RUN}-{os.getpid()}", "training", "uid", ""))
    yield Commands(journal, tmp_path / "base", tmp_path / "logs", tmp_path / "kubeconfig.yaml")
    end_commands(journal.changes.run)


async def ignores_the_signal(commands: Commands) -> None:
    (log,) = commands.logs.iterdir()
    await asyncio.to_thread(await_that, lambda: log.read_text() == "1\n", 20, "the command ignores SIGTERM")


async def test_a_command_runs_in_the_files_directory_and_knows_cluster_and_namespace(commands: Commands) -> None:
    ends: list[str] = []
    await commands.start(TimelineProgram(command='echo "$PWD $KUBECONFIG $KUMULUS_NAMESPACE"; cat; exit 0'), "ns")
    await commands.wait(ends.append)
    (verdict,) = await commands.end()
    assert (verdict.holds, verdict.found) == (True, "0")
    (log,) = commands.logs.iterdir()
    assert log.read_text() == f"{commands.base} {commands.kubeconfig} ns\n"
    assert [each.endswith("exit 0 ended with exit code 0") for each in ends] == [True]


@pytest.mark.parametrize(
    ("command", "background", "holds", "found"),
    [
        ("echo 3 pods too many >&2; exit 3", False, False, "3; its last words: 3 pods too many"),
        ("sleep 600", False, False, "had not ended when the run did"),
        ("echo starting; echo no such module; exit 1", True, False, "1; its last words: no such module"),
        ("exit 0", True, True, r"ended after \d+\.\d s"),
    ],
)
async def test_only_a_command_that_comes_to_a_good_end_is_what_is_expected(
    commands: Commands, command: str, background: bool, holds: bool, found: str
) -> None:
    await commands.start(TimelineProgram(command=command, background=background), "ns")
    (started,) = commands._started
    if command != "sleep 600":
        await asyncio.wait_for(started.process.wait(), 10)
    # One in the background was to run until the end.
    ended = f"{command} ended with exit code 1; its last lines: starting / no such module"
    assert commands.failed() == ("" if holds or not background else ended)
    (verdict,) = await commands.end()
    assert (verdict.what, verdict.holds) == (f"exit code 0: {command}", holds)
    assert re.fullmatch(found, verdict.found)


async def test_what_runs_in_the_background_is_not_waited_for_and_ends_with_the_run(commands: Commands) -> None:
    await commands.start(TimelineProgram(command="sleep 600", background=True), "ns")
    await asyncio.wait_for(commands.wait(lambda _: None), 10)
    assert commands.journal.changes.commands == ("sleep 600",)
    assert commands.failed() == ""
    (verdict,) = await commands.end()
    assert (verdict.holds, verdict.found) == (True, "ran until the end")
    assert processes.with_variable(RUN_VARIABLE, commands.journal.changes.run) == []
    assert commands.journal.changes.empty


async def test_an_operator_that_fails_ends_the_run_at_once(commands: Commands) -> None:
    of_run: Any = Repetition.__new__(Repetition)
    of_run.outcome = Namespace(records=Namespace(faulted=None), ended="", partial=False)
    quiet, stop = Namespace(ended=lambda: ""), asyncio.Event()
    experiment, client = Namespace(timeout=60), Namespace(patience=60)
    of_run._bench = Namespace(
        experiment=experiment, options=Namespace(stop=stop), switch=quiet, commands=commands, client=client
    )
    of_run._listener, of_run._now, of_run._moments = Namespace(silence=lambda: (0, "")), lambda: 0.0, lambda _: None
    await commands.start(TimelineProgram(command="exit 3", background=True), "ns")
    under_way = asyncio.create_task(asyncio.sleep(60))
    await asyncio.wait_for(of_run._wait([under_way], under_way, under_way), 10)
    assert (of_run.outcome.ended, of_run.outcome.partial) == ("exit 3 ended with exit code 3", True)


async def test_what_a_command_has_started_ends_too_even_if_it_ignores_that(commands: Commands) -> None:
    await commands.start(TimelineProgram(command=f"setsid {STUBBORN} & wait", background=True), "ns")
    run = commands.journal.changes.run
    await ignores_the_signal(commands)
    assert len(processes.with_variable(RUN_VARIABLE, run)) > 1
    await commands.end()
    assert processes.with_variable(RUN_VARIABLE, run) == []


async def test_the_journal_of_a_killed_run_ends_its_commands_and_nobody_elses(commands: Commands) -> None:
    await commands.start(TimelineProgram(command=STUBBORN, background=True), "ns")
    # While a shell becomes the command, its environment is not there to be read.
    await ignores_the_signal(commands)
    other = await asyncio.create_subprocess_exec("sleep", "600", env={**os.environ, RUN_VARIABLE: "another"})
    kept = changes_from(json.dumps(commands.journal.changes.to_plain()))
    assert kept.commands == (STUBBORN,)
    assert await asyncio.to_thread(end_commands, kept.run) >= 1
    assert processes.with_variable(RUN_VARIABLE, kept.run) == []
    assert other.returncode is None
    other.send_signal(signal.SIGKILL)
    await other.wait()


async def test_a_directory_that_is_gone_is_said(commands: Commands) -> None:
    commands.base.rmdir()
    with pytest.raises(LabError, match="the timeline's command true cannot be run: No such file or directory"):
        await commands.start(TimelineProgram(command="true"), "ns")
