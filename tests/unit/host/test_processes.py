"""Which of a directory's programs run, by the process table."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from kumulus.host import lifetime, machine, processes
from kumulus.host.interrupts import like_ctrl_c
from tests.support.processes import await_that

SAY = "from kumulus.host import lifetime; print(lifetime.own(), flush=True); import time; time.sleep(60)"


@pytest.fixture
def program(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """One that runs from the directory."""
    (tmp_path / "bin").mkdir()
    found = shutil.which("sleep")
    assert found is not None
    (tmp_path / "bin" / "etcd").symlink_to(found)
    with subprocess.Popen([str(tmp_path / "bin" / "etcd"), "600"]) as process:
        yield process
        process.kill()


def test_a_program_runs_until_it_ends_though_nobody_has_asked_how(
    tmp_path: Path, program: subprocess.Popen[bytes]
) -> None:
    await_that(lambda: processes.running(tmp_path) == {"etcd": [program.pid]}, 10, "it runs")
    assert processes.running(tmp_path / "bin") == {}
    program.kill()
    await_that(lambda: psutil.Process(program.pid).status() == psutil.STATUS_ZOMBIE, 10, "it has ended")
    assert processes.running(tmp_path) == {}


def test_the_status_of_other_programs_is_not_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would take as long again, in each preview and update several times."""
    asked: list[list[str]] = []

    def none(fields: list[str]) -> list[psutil.Process]:
        asked.append(fields)
        return []

    monkeypatch.setattr(psutil, "process_iter", none)
    processes.running(tmp_path)
    assert asked == [["cmdline"]]


def _handlers() -> list[object]:
    with like_ctrl_c():
        return [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)]


def test_a_kill_is_taken_as_ctrl_c_in_the_block_only() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), like_ctrl_c():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) == before


def test_in_another_thread_the_block_just_runs() -> None:
    with ThreadPoolExecutor(1) as workers:
        assert workers.submit(_handlers).result() == [signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGHUP)]


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


@pytest.mark.skipif(not machine.is_alone(), reason="here is a container, or a machine without systemd's id")
def test_what_ran_before_the_machine_was_started_again_is_gone() -> None:
    assert lifetime.runs(changed(1, "another-boot")) is False


@pytest.mark.parametrize(
    ("apart", "before"),
    [
        pytest.param(["--pid", "--fork", "--mount-proc"], "", id="in a container"),
        pytest.param(["--mount"], "mount --bind /dev/null /etc/machine-id &&", id="without systemd's id"),
    ],
)
def test_where_another_machine_may_have_the_same_id_nothing_is_said_of_another_boot(
    apart: list[str], before: str
) -> None:
    """Containers of one image with one home, on two hosts: the other's run was taken for one of before a reboot."""
    code = (
        "import os; from kumulus.host import lifetime, machine; own = lifetime.own().split(); own[1] = 'another-boot'; "
        "print(own[0] == machine.this().id, lifetime.runs(' '.join(own)))"
    )
    line = ["unshare", "--user", "--map-root-user", *apart, "sh", "-c", f'{before} exec "$0" -c "$1"', sys.executable]
    done = subprocess.run([*line, code], capture_output=True, text=True, check=False)
    if done.returncode and done.stderr.startswith("unshare"):
        pytest.skip(done.stderr)
    assert (done.stdout, done.stderr) == ("True None\n", "")


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
