"""inotify instances: the user's limit, and how many of them are in use."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kumulus.host import inotify

_OPEN = "import ctypes, sys; ctypes.CDLL(None).inotify_init(); print(flush=True); sys.stdin.read()"


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
