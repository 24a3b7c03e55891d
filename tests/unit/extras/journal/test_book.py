"""The journal of a run: on the disk before a change, whole at any moment, and found by whoever comes next."""

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import fields
from pathlib import Path

import pytest

from kumulus.extras.journal import book, recover
from kumulus.extras.journal.book import Journal
from kumulus.extras.journal.changes import (
    Exchanged,
    JournaledChanges,
    JournaledRestore,
    RaisedQuota,
    Rerouted,
    SecondScheduler,
    StoppedProgram,
    changes_from,
)
from kumulus.extras.journal.errors import Busy, NotWritten, Unfinished
from kumulus.host import lifetime
from kumulus.kube import Client
from tests.support.apiserver import ok, serving

CLUSTER = "5d4f"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


def journal(run: str = "one", process: str | None = None) -> Journal:
    made = Journal(JournaledChanges(run, "training", CLUSTER, lifetime.own() if process is None else process))
    made.add()
    return made


def test_what_is_added_is_on_the_disk_and_what_is_dropped_is_not() -> None:
    made = journal()
    made.add(faults=["lost"], nodes=["/api/v1/nodes/a", "/api/v1/nodes/b"])
    made.add(faults=["lost", "late"], scheduler=SecondScheduler("kueue", "/tmp/kueue"))
    [found], unread = book.read(CLUSTER)
    assert found.changes == made.changes
    assert (found.changes.faults, unread) == (("lost", "late"), [])
    assert stat.S_IMODE(found.file.stat().st_mode) == 0o600
    made.drop(faults=["lost"], nodes=made.changes.nodes, scheduler=None)
    assert book.read(CLUSTER)[0][0].changes == JournaledChanges(
        "one", "training", CLUSTER, lifetime.own(), faults=("late",)
    )


def test_everything_that_can_be_changed_is_the_same_after_it_was_written() -> None:
    stopped = StoppedProgram("/c", "kube-scheduler", ("/c/bin/kube-scheduler", "-v=2"), {"PATH": "/bin"}, "/c")
    had = Exchanged(('{"kind": "NodePool"}',), ("/made",), "{}")
    led = Rerouted("/secret", "https://127.0.0.1:1", "https://127.0.0.1:2")
    parts = (
        ("n",),
        ("o",),
        ("f",),
        ("/x",),
        stopped,
        SecondScheduler("volcano", "/v"),
        had,
        ("/worker/kubeconfig",),
        (led,),
    )
    quota = RaisedQuota("/quota", '{"pods": "3"}', '{"pods": "5"}')
    back = JournaledRestore("/cluster/kubeconfig.yaml", "/full.snapshot", False, ("/api/v1/namespaces/a/pods/b",))
    last = (("/pods",), (quota,), back, ("./check.sh",), "fit", "kumulus clone there -s mine")
    changes = JournaledChanges("r", "e", CLUSTER, "p", *parts, *last)
    assert changes_from(json.dumps(changes.to_plain())) == changes
    assert JournaledChanges("r", "e", CLUSTER, "p", command="fit").empty
    for each in fields(JournaledChanges)[4:]:
        if each.name != "command":
            only = {each.name: getattr(changes, each.name)}
            assert not JournaledChanges("r", "e", CLUSTER, "p", **only).empty, each.name


def test_a_run_with_nothing_to_put_back_leaves_no_journal_and_one_with_something_is_over() -> None:
    done, undone = journal("done"), journal("undone")
    undone.add(namespaces=["left"])
    done.close()
    undone.close()
    assert [each.changes.run for each in book.unrestored(CLUSTER)] == ["undone"]
    book.discard(CLUSTER)
    assert not book.directory(CLUSTER).exists()


def test_only_runs_that_are_gone_have_left_something() -> None:
    journal("lives")
    journal("elsewhere", "another-machine another-boot 1 2 3")
    machine, boot, namespace, pid, _ = lifetime.own().split(" ")
    journal("gone", f"{machine} {boot} {namespace} {pid} 1")
    assert [each.changes.run for each in book.unrestored(CLUSTER)] == ["gone"]
    assert book.unrestored("another cluster") == []


@pytest.mark.parametrize("content", ["", "{", "[]", '{"run": "x"}', "\x00\x00"])
def test_a_file_that_is_no_journal_is_told_and_left_alone(content: str) -> None:
    kept = journal()
    spoiled = kept.file.with_name("spoiled.json")
    spoiled.write_text(content)
    found, unread = book.read(CLUSTER)
    assert [each.changes.run for each in found] == ["one"]
    assert unread == [spoiled]


def test_a_run_that_is_or_may_be_under_way_is_named_with_the_remedy_and_one_that_is_gone_is_not() -> None:
    machine, boot, namespace, pid, _ = lifetime.own().split(" ")
    journal("gone", f"{machine} {boot} {namespace} {pid} 1")
    journal("over", "")
    assert book.under_way(CLUSTER) == ""
    lives = journal("one")
    assert book.under_way(CLUSTER) == (
        f"experiment training runs on this cluster (run one, process {pid}); "
        f"wait for it, or end it in order: kill {pid}"
    )
    lives.discard()
    elsewhere = journal("two", "another-machine another-boot 1 2 3")
    said = book.under_way(CLUSTER)
    assert said.startswith("experiment training may run on this cluster (run two), on another machine or in another")
    assert said.endswith(f"or remove {elsewhere.file} when it is gone for good")


def test_a_journal_that_cannot_be_written_is_told_with_the_remedy(state: Path) -> None:
    (state / "kumulus").write_text("in the way")
    with pytest.raises(NotWritten, match="cannot be written: Not a directory; make room, or set XDG_STATE_HOME"):
        journal()


WRITING = """
from kumulus.extras.journal.book import Journal
from kumulus.extras.journal.changes import JournaledChanges
made = Journal(JournaledChanges("one", "training", "5d4f", ""))
number = 0
while True:
    number += 1
    made.add(faults=[f"fault-{number}"])
    print(number, flush=True)
"""


@pytest.mark.parametrize("writes", [1, 7, 20])
def test_a_writer_that_is_killed_leaves_a_whole_journal_with_all_that_it_had_added(writes: int) -> None:
    with subprocess.Popen([sys.executable, "-c", WRITING], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        for _ in range(writes):
            said = writer.stdout.readline()
        writer.send_signal(signal.SIGKILL)
        assert writer.wait() == -signal.SIGKILL
        said = ([said, *writer.stdout])[-1]
    [found], unread = book.read(CLUSTER)
    assert unread == []
    assert len(found.changes.faults) >= int(said)


async def test_turns_are_taken_one_after_the_other() -> None:
    order: list[str] = []

    async def take(name: str) -> None:
        async with book.run_lock(CLUSTER):
            order.append(f"{name} has it")
            await asyncio.sleep(0.05)
            order.append(f"{name} gives it back")

    await asyncio.gather(*(take(name) for name in "abc"))
    assert [each.split()[0] for each in order[::2]] == [each.split()[0] for each in order[1::2]]
    assert not book.directory(CLUSTER).exists()


async def test_one_run_at_a_time_whichever_command_it_is_of() -> None:
    async with of_the_cluster() as client:
        first, _ = await recover.begin(client, "fit-1", "web", command="fit")
        with pytest.raises(Busy, match=rf"^fit web runs on this cluster \(run fit-1, process {os.getpid()}\); wait"):
            await recover.begin(client, "two", "training")
        await recover.end(first)
        second, lines = await recover.begin(client, "two", "training")
        assert lines == []
        await recover.end(second)
    assert not book.directory(CLUSTER).exists()


async def test_what_only_another_command_can_finish_is_named_until_that_has_begun() -> None:
    remedy = "kumulus clone there -s mine"
    async with of_the_cluster() as client:
        cut_off, _ = await recover.begin(client, "one", "there", command="clone", finish=remedy)
        await recover.end(cut_off)
        named = f"clone there (run one) did not come to its end; to finish it: {remedy}"
        assert await recover.recover(client) == [named]
        assert await recover.recover(client) == [named]
        with pytest.raises(Unfinished, match=rf"^clone there .run one. did not come to its end; finish it: {remedy}$"):
            await recover.begin(client, "two", "training")
        again, lines = await recover.begin(client, "three", "there", command="clone", finish=remedy)
        assert lines == ["clone there (run one) did not come to its end"]
        again.drop(finish=None)
        await recover.end(again)
        assert await recover.recover(client) == []
    assert not book.directory(CLUSTER).exists()


@asynccontextmanager
async def of_the_cluster() -> AsyncIterator[Client]:
    """A client of an API server that says which cluster it is of, and has no namespaces."""
    async with serving() as server:
        server.answers = [ok({"metadata": {"uid": CLUSTER}, "items": []})]
        async with server.client() as client:
            yield client
