"""Which process it is: told by boot, pid namespace, pid and start, and not by names or clocks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from kumulus.host import lifetime

SAY = "from kumulus.host import lifetime; print(lifetime.own(), flush=True); import time; time.sleep(60)"


def test_a_process_that_runs_is_told_from_one_that_was_killed() -> None:
    assert lifetime.runs(lifetime.own()) is True
    with subprocess.Popen([sys.executable, "-c", SAY], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        name = other.stdout.readline().strip()
        assert lifetime.runs(name) is True
        other.send_signal(signal.SIGKILL)
        # Gone, though its parent has not asked how: a zombie.
        os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
        assert lifetime.runs(name) is False
    assert lifetime.runs(name) is False


def changed(position: int, value: str) -> str:
    parts = lifetime.own().split(" ")
    return " ".join([*parts[:position], value, *parts[position + 1 :]])


def test_the_same_pid_with_another_start_is_another_process() -> None:
    assert lifetime.runs(changed(4, "1")) is False


def test_what_ran_before_the_machine_was_started_again_is_gone() -> None:
    assert lifetime.runs(changed(1, "another-boot")) is False


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("another-machine another-boot 1 2 3", id="another machine's"),
        pytest.param(f"{os.uname().nodename} {os.getpid()} 1763829000", id="by a host's name"),
        pytest.param("", id="nobody's"),
    ],
)
def test_of_what_is_not_of_this_machine_nothing_is_claimed(name: str) -> None:
    assert lifetime.runs(name) is None


def test_of_another_container_nothing_is_claimed() -> None:
    assert lifetime.runs(changed(2, "1")) is None
