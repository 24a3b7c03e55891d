"""Which machine this is: another one, or another user of it, is known to be another."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

import pytest

from kumulus.host import machine


@pytest.fixture(autouse=True)
def _state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def systemd(folder: Path, text: str = "4c4c4544\n") -> Path:
    file = folder / "machine-id"
    file.write_text(text)
    return file


def test_a_machine_stays_the_same_and_has_its_hosts_name(tmp_path: Path) -> None:
    found = machine.this(systemd(tmp_path))
    assert found == machine.this(systemd(tmp_path))
    assert found.name == socket.gethostname()
    assert "4c4c4544" not in found.id


def test_a_home_that_two_machines_share_does_not_make_them_one(tmp_path: Path) -> None:
    assert machine.this(systemd(tmp_path)) != machine.this(systemd(tmp_path, "another\n"))


def test_containers_of_one_image_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = machine.this(systemd(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
    assert machine.this(systemd(tmp_path)) != one


def test_without_systemds_file_what_was_drawn_tells(tmp_path: Path) -> None:
    assert machine.this(tmp_path / "none") == machine.this(tmp_path / "none")


def test_where_nothing_can_be_kept_systemds_file_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert machine.this(systemd(tmp_path)) == machine.this(systemd(tmp_path))
    assert machine.this(systemd(tmp_path)) != machine.this(systemd(tmp_path, "another\n"))


@pytest.mark.parametrize("text", ["", "uninitialized\n", "4c4c4544\n"])
def test_without_systemds_id_another_machine_may_be_the_same(tmp_path: Path, text: str) -> None:
    assert not machine.is_alone(systemd(tmp_path, text), machine._NAMESPACE)
    assert not machine.is_alone(tmp_path / "none", machine._NAMESPACE)


def test_what_was_drawn_is_on_the_disk_before_it_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without that, a power loss can leave an empty file: the machine would be another one than its clusters say."""
    synced, fsync, link = [], os.fsync, os.link

    def noted(descriptor: int) -> None:
        synced.append((os.fstat(descriptor).st_ino, os.fstat(descriptor).st_size))
        fsync(descriptor)

    def linked(source: Path, target: Path) -> None:
        assert (source.stat().st_ino, 33) in synced
        link(source, target)

    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(os, "link", linked)
    machine.this(systemd(tmp_path))
    folder = tmp_path / "state" / "kumulus"
    assert len((folder / "machine").read_text()) == 33
    assert synced[-1][0] == folder.stat().st_ino


def test_a_full_disk_leaves_nothing_half_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    machine.this(systemd(tmp_path))
    assert list((tmp_path / "state" / "kumulus").iterdir()) == []
