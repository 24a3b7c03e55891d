"""Running kind: its end, which capabilities the engine lacks, and what is asked of it then."""

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from kumulus.runtimes.kind.commands import SHIM, environment, run, withheld
from tests.support.clocks import until

ALL = 0x1FFFFFFFFFF
NO_SYS_RESOURCE = ALL & ~(1 << 24)


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Something that listens like an engine, and a /proc that says what its process may have."""
    path = tmp_path / "engine.sock"
    (tmp_path / "proc" / str(os.getpid())).mkdir(parents=True)
    (tmp_path / "proc" / "sys" / "kernel").mkdir(parents=True)
    (tmp_path / "proc" / "sys" / "kernel" / "cap_last_cap").write_text("40\n")
    monkeypatch.setattr("kumulus.runtimes.kind.commands._PROC", tmp_path / "proc")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(path))
        listening.listen()
        yield path


@pytest.fixture
def variables(engine: Path, tmp_path: Path) -> dict[str, str]:
    """What kind would be run with: a `docker` that writes its arguments down, one on each line."""
    docker = tmp_path / "bin" / "docker"
    docker.parent.mkdir()
    docker.write_text('#!/bin/sh\nfor argument; do echo "$argument"; done\n')
    docker.chmod(0o755)
    return {"DOCKER_HOST": f"unix://{engine}", "PATH": f"{docker.parent}:/usr/bin:/bin"}


def bounded(tmp_path: Path, bits: int) -> None:
    (tmp_path / "proc" / str(os.getpid()) / "status").write_text(f"Name:\tx\nCapBnd:\t{bits:016x}\nCapAmb:\t0\n")


@pytest.mark.parametrize(
    ("bits", "missing"), [(ALL, ()), (NO_SYS_RESOURCE, ("SYS_RESOURCE",)), (ALL >> 2, ("BPF", "CHECKPOINT_RESTORE"))]
)
def test_what_the_engine_s_process_can_never_have_is_withheld(
    bits: int, missing: tuple[str, ...], engine: Path, tmp_path: Path
) -> None:
    bounded(tmp_path, bits)
    assert withheld({"DOCKER_HOST": f"unix://{engine}"}) == missing


@pytest.mark.parametrize("host", ["tcp://192.0.2.1:2375", "ssh://somewhere", "unix:///nonexistent.sock"])
def test_an_engine_elsewhere_or_nowhere_is_taken_to_lack_nothing(host: str) -> None:
    assert withheld({"DOCKER_HOST": host}) == ()


@pytest.mark.usefixtures("engine")
def test_an_unreadable_process_is_taken_to_lack_nothing(engine: Path) -> None:
    assert withheld({"DOCKER_HOST": f"unix://{engine}"}) == ()


def test_on_an_ordinary_machine_nothing_is_changed(variables: dict[str, str], tmp_path: Path) -> None:
    bounded(tmp_path, ALL)
    found = environment(variables)
    assert (found.variables, found.notice) == (variables, "")


def test_where_a_capability_is_missing_kind_gets_another_docker_and_the_user_a_line(
    variables: dict[str, str], tmp_path: Path
) -> None:
    bounded(tmp_path, NO_SYS_RESOURCE)
    found = environment(variables)
    assert found.notice.startswith("Docker's engine lacks CAP_SYS_RESOURCE: ")
    assert found.variables["PATH"] == f"{SHIM}:{variables['PATH']}"
    # A process that kind's environment is handed on to finds the real one again.
    assert environment(found.variables).variables == found.variables


def shim(variables: dict[str, str], tmp_path: Path, *arguments: str) -> list[str]:
    bounded(tmp_path, NO_SYS_RESOURCE & ~(1 << 39))
    found = environment(variables).variables
    answer = subprocess.run(["docker", *arguments], env=dict(found), capture_output=True, text=True, check=True)
    return answer.stdout.splitlines()


def test_run_asks_for_everything_but_what_is_withheld(variables: dict[str, str], tmp_path: Path) -> None:
    given = shim(variables, tmp_path, "run", "--name", "a b", "--privileged", "image", "sh", "-c", "x --privileged")
    assert given[:3] == ["run", "--name", "a b"]
    assert given[3:6] == ["--cap-add=ALL", "--cap-drop=SYS_RESOURCE", "--cap-drop=BPF"]
    assert given[6:10] == ["--security-opt", "systempaths=unconfined", "--device-cgroup-rule", "a *:* rwm"]
    assert given[-4:] == ["image", "sh", "-c", "x --privileged"]


def test_exec_asks_for_no_privileges_and_the_program_s_own_arguments_stay(
    variables: dict[str, str], tmp_path: Path
) -> None:
    given = shim(variables, tmp_path, "exec", "--privileged", "-i", "node", "program", "--privileged", "")
    assert given == ["exec", "-i", "node", "program", "--privileged", ""]


@pytest.mark.parametrize("arguments", [("ps", "--filter", "name=--privileged"), ("inspect", "--privileged"), ()])
def test_every_other_command_is_docker_s_own(
    arguments: tuple[str, ...], variables: dict[str, str], tmp_path: Path
) -> None:
    assert shim(variables, tmp_path, *arguments) == list(arguments)


async def test_a_command_of_which_a_line_cannot_be_reported_is_ended() -> None:
    pids: list[str] = []

    def fail(line: str) -> None:
        pids.append(line)
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        await run("sh", "-c", "echo $$ >&2; exec sleep 60", timeout=30, on_line=fail)
    await until(lambda: not psutil.pid_exists(int(pids[0])))
