"""Which machine this is: another one, or another user of it, is known to be another."""

import ctypes
import errno
import os
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from kumulus.host import inotify, machine

MACHINE = psutil.virtual_memory().total
_CHILD = """
import resource, sys
from kumulus.provider.plugin.__main__ import allow_open_files
resource.setrlimit(resource.RLIMIT_NOFILE, tuple(map(int, sys.argv[1:3])))
print(allow_open_files(int(sys.argv[3])), *resource.getrlimit(resource.RLIMIT_NOFILE))
"""
_OPEN = "import ctypes, sys; ctypes.CDLL(None).inotify_init(); print(flush=True); sys.stdin.read()"


@pytest.fixture(autouse=True)
def _state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def systemd(folder: Path, text: str = "4c4c4544\n") -> Path:
    file = folder / "machine-id"
    file.write_text(text)
    return file


def test_a_machine_is_known_by_systemds_id_and_what_was_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = machine.this(systemd(tmp_path))
    assert found == machine.this(systemd(tmp_path))
    assert found.name == socket.gethostname()
    assert "4c4c4544" not in found.id
    assert machine.this(systemd(tmp_path, "another\n")) != found, "two machines with one home"
    assert machine.this(tmp_path / "none") == machine.this(tmp_path / "none"), "drawn alone"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
    assert machine.this(systemd(tmp_path)) != found, "containers of one image"
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert machine.this(systemd(tmp_path)) == machine.this(systemd(tmp_path)), "nothing can be kept"
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


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("memory.max", "1073741824\n", 2**30),
        ("memory.max", "max\n", MACHINE),
        ("memory.max", f"{MACHINE * 4}\n", MACHINE),
        ("memory/memory.limit_in_bytes", "2147483648\n", 2**31),
        ("memory/memory.limit_in_bytes", "9223372036854771712\n", MACHINE),
    ],
)
def test_the_limit_of_a_container_counts(tmp_path: Path, name: str, text: str, expected: int) -> None:
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    assert machine.memory_bytes(tmp_path) == expected


def test_without_control_groups_it_is_the_machines(tmp_path: Path) -> None:
    assert machine.memory_bytes(tmp_path / "none") == MACHINE


@pytest.mark.parametrize(
    ("soft", "hard", "enough", "after"),
    [(256, 900, 65_536, 900), (256, 900, 500, 500), (900, 900, 500, 900), (600, 900, 500, 600)],
)
def test_the_limit_afterwards(soft: int, hard: int, enough: int, after: int) -> None:
    # In a process of its own: what is lowered here could not be raised again.
    command = [sys.executable, "-c", _CHILD, *map(str, (soft, hard, enough))]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == [str(after), str(after), str(hard)]


def test_the_limit_is_the_kernels_and_none_where_there_is_none(tmp_path: Path) -> None:
    file = tmp_path / "max_user_instances"
    assert inotify.limit(file) is None
    file.write_text("128\n")
    assert inotify.limit(file) == 128
    file.write_text("none\n")
    assert inotify.limit(file) is None


@pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")
def test_instances_of_every_process_of_the_user_count(tmp_path: Path) -> None:
    mine = ctypes.CDLL(None).inotify_init()
    assert mine >= 0
    with subprocess.Popen([sys.executable, "-c", _OPEN], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdin
        assert other.stdout
        other.stdout.readline()
        # Of all the machine's processes only these two, as others come and go.
        for pid in (os.getpid(), other.pid):
            (tmp_path / str(pid)).symlink_to(f"/proc/{pid}")
        (tmp_path / "4711").symlink_to("/proc/none")
        (tmp_path / "uptime").write_text("1\n")
        both = inotify.used(tmp_path)
        os.close(mine)
        assert both - inotify.used(tmp_path) == 1
        before = inotify.used(tmp_path)
        other.stdin.close()
        other.wait()
        assert before - inotify.used(tmp_path) == 1


def test_the_real_processes_are_looked_at() -> None:
    mine = ctypes.CDLL(None).inotify_init()
    try:
        assert inotify.used() >= 1
    finally:
        os.close(mine)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('{"msg":"Could not run manager","error":"couldn\'t initialize inotify: too many open files"}', True),
        ("failed to create fsnotify watcher: too many open files", True),
        ("accept tcp 127.0.0.1:2379: accept4: too many open files", False),
        ("inotify watches: 3", False),
    ],
)
def test_a_log_says_that_there_was_no_instance(line: str, expected: bool) -> None:
    assert inotify.refused(f"first\n{line}\nlast") is expected


def test_the_remedy_is_enough() -> None:
    assert "fs.inotify.max_user_instances=1024`" in inotify.remedy(200)
    assert "fs.inotify.max_user_instances=5000`" in inotify.remedy(5000)
