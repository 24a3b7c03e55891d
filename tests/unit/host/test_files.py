"""Files are replaced whole: whatever happens to their writer, what is there is the old or the new one."""

import asyncio
import errno
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kumulus.host import files

WRITING = """
import sys
from pathlib import Path
from kumulus.host import files
number = 0
while True:
    number += 1
    files.write(Path(sys.argv[1]), f"{number}\\n" * 20_000)
    print(number, flush=True)
"""
CONTENDING = """
import sys
from pathlib import Path
from kumulus.host import files
for number in range(200):
    files.write(Path(sys.argv[1]), f"{sys.argv[2]} {number}\\n" * 200)
"""


def test_a_file_is_on_the_disk_before_it_has_its_name_and_its_name_when_the_call_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    sync, rename = os.fsync, os.replace

    def synced(handle: int) -> None:
        kind = "directory" if stat.S_ISDIR(os.fstat(handle).st_mode) else "content"
        done.append(f"{kind} synced")
        sync(handle)

    def replaced(self: Path, target: Path) -> Path:
        done.append("renamed")
        rename(self, target)
        return target

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", replaced)
    files.write(tmp_path / "kept.json", "new", mode=0o600)
    assert done == ["content synced", "renamed", "directory synced"]
    assert (tmp_path / "kept.json").read_text() == "new"
    assert stat.S_IMODE((tmp_path / "kept.json").stat().st_mode) == 0o600


def test_what_cannot_be_written_leaves_what_was_there_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "kept.json"
    files.write(file, "old")

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        files.write(file, "new")
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("kept.json", "old")]


def test_a_neighbour_with_a_similar_name_stays(tmp_path: Path) -> None:
    (tmp_path / "report.tmp").write_text("mine")
    files.write(tmp_path / "report.html", "new")
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {"report.tmp": "mine", "report.html": "new"}


def test_a_link_stays_and_what_it_leads_to_is_written(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "report.html"
    link.symlink_to(Path("elsewhere", "it.html"))
    for content in ("old", "new"):
        files.write(link, content)
        assert link.is_symlink()
        assert (tmp_path / "elsewhere" / "it.html").read_text() == content


@pytest.mark.parametrize("directory", ["/", ".", "..", "made", "link"])
def test_a_directory_is_refused_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, directory: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("made").mkdir()
    Path("link").symlink_to("made")
    with pytest.raises(IsADirectoryError):
        files.write(Path(directory), "new")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["link", "made"]


def test_a_writer_that_is_killed_leaves_a_whole_file(tmp_path: Path) -> None:
    file = tmp_path / "kept.txt"
    for kill_after in range(1, 6):
        with subprocess.Popen([sys.executable, "-c", WRITING, str(file)], stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            for _ in range(kill_after):
                writer.stdout.readline()
            writer.send_signal(signal.SIGKILL)
            assert writer.wait() == -signal.SIGKILL
        lines = file.read_text().splitlines()
        assert (len(lines), len(set(lines))) == (20_000, 1)


def test_two_writers_take_turns(tmp_path: Path) -> None:
    """As two previews of a stack do with its copy of a kubeconfig whose token was renewed."""
    file = tmp_path / "kept.txt"
    files.write(file, "first\n")
    writers = [subprocess.Popen([sys.executable, "-c", CONTENDING, str(file), name]) for name in ("a", "b")]
    while any(writer.poll() is None for writer in writers):
        lines = file.read_text().splitlines()
        assert (len(set(lines)), len(lines)) in ((1, 200), (1, 1))
    assert [writer.returncode for writer in writers] == [0, 0]
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("leftover", ["a file", "a file of another mode", "a link to nowhere"])
def test_what_a_killed_writer_left_is_no_obstacle(tmp_path: Path, leftover: str) -> None:
    file = tmp_path / "kept.json"
    left = files.unfinished(file)
    if leftover == "a link to nowhere":
        left.symlink_to("nowhere")
    else:
        left.write_text("half")
        left.chmod(0o444 if "mode" in leftover else 0o644)
    files.write(file, "new", mode=0o600)
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {"kept.json": "new"}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_directory_that_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        files.write(tmp_path / "missing" / "kept.json", "new")


def test_what_is_removed_twice_is_gone(tmp_path: Path) -> None:
    files.write(tmp_path / "kept.json", "x")
    files.remove(tmp_path / "kept.json")
    files.remove(tmp_path / "kept.json")
    assert list(tmp_path.iterdir()) == []


def test_a_text_is_written_piece_by_piece_and_replaces_the_file_when_it_is_whole(tmp_path: Path) -> None:
    file = tmp_path / "capture.yaml"
    file.write_text("before")
    with pytest.raises(TypeError), files.replacing_text(file, 0o600) as text:
        text.writelines(["half", 5])  # type: ignore[list-item]
    assert [each.name for each in tmp_path.iterdir()] == ["capture.yaml"]
    assert file.read_text() == "before"
    with files.replacing_text(file, 0o600) as text:
        text.write("é\r\n")
        text.write("b\n")
    assert (file.read_bytes(), stat.S_IMODE(file.stat().st_mode)) == ("é\r\nb\n".encode(), 0o600)


async def test_only_one_holds_it_and_the_next_knows_that_it_waited(tmp_path: Path) -> None:
    file = tmp_path / "a" / "b" / ".lock"
    lock, waited = await files.take_lock(file)
    assert not waited
    second = asyncio.create_task(files.take_lock(file))
    await asyncio.sleep(0.3)
    assert not second.done()
    os.close(lock)
    lock, waited = await asyncio.wait_for(second, 5)
    assert waited
    os.close(lock)


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path, Callable[[], object], Callable[[], object]], None]:
    """Has something happen just before, and just after, a file is opened for the first time."""

    def happens(file: Path, before: Callable[[], object], after: Callable[[], object]) -> None:
        opened, first = os.open, [True]

        def noticed(path: Any, *arguments: Any, **options: Any) -> int:
            if path != file or not first:
                return opened(path, *arguments, **options)
            first.clear()
            before()
            found = opened(path, *arguments, **options)
            after()
            return found

        monkeypatch.setattr(os, "open", noticed)

    return happens


@pytest.mark.parametrize("another", [True, False])
async def test_a_file_that_its_last_holder_removes_is_no_lock(tmp_path: Path, between: Any, another: bool) -> None:
    file = tmp_path / ".lock"

    def removed() -> None:
        file.unlink()
        if another:
            file.touch()

    between(file, lambda: None, removed)
    lock, waited = await asyncio.wait_for(files.take_lock(file), 5)
    assert waited
    assert os.fstat(lock).st_ino == file.stat().st_ino
    os.close(lock)


async def test_a_directory_that_the_last_holder_removes_is_made_again(tmp_path: Path, between: Any) -> None:
    """As the last cluster's removal does with the directories that a new one is about to be made in."""
    file = tmp_path / "home" / "clusters" / ".lock"
    between(file, lambda: shutil.rmtree(tmp_path / "home"), lambda: None)
    lock, _ = await asyncio.wait_for(files.take_lock(file), 5)
    assert file.exists()
    os.close(lock)


async def test_who_gives_up_waiting_leaves_no_file_open(tmp_path: Path) -> None:
    file = tmp_path / ".lock"
    held, _ = await files.take_lock(file)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(files.take_lock(file), 0.25)
    assert len(os.listdir("/proc/self/fd")) == before
    os.close(held)
