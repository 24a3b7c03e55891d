"""Locks whose file the last holder removes: nobody holds one beside somebody else, and none is left over."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kumulus.host import locks


async def test_only_one_holds_it_and_the_next_knows_that_it_waited(tmp_path: Path) -> None:
    file = tmp_path / "a" / "b" / ".lock"
    lock, waited = await locks.take(file)
    assert not waited
    second = asyncio.create_task(locks.take(file))
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
    lock, waited = await asyncio.wait_for(locks.take(file), 5)
    assert waited
    assert os.fstat(lock).st_ino == file.stat().st_ino
    os.close(lock)


async def test_a_directory_that_the_last_holder_removes_is_made_again(tmp_path: Path, between: Any) -> None:
    """As the last cluster's removal does with the directories that a new one is about to be made in."""
    file = tmp_path / "home" / "clusters" / ".lock"
    between(file, lambda: shutil.rmtree(tmp_path / "home"), lambda: None)
    lock, _ = await asyncio.wait_for(locks.take(file), 5)
    assert file.exists()
    os.close(lock)


async def test_who_gives_up_waiting_leaves_no_file_open(tmp_path: Path) -> None:
    file = tmp_path / ".lock"
    held, _ = await locks.take(file)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(locks.take(file), 0.25)
    assert len(os.listdir("/proc/self/fd")) == before
    os.close(held)
