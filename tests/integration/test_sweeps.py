"""Sweeps in processes of their own: killed at drawn points and run again, and on the workers of Dask and of Ray."""

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from kumulus.host.ports import Claims
from tests.support import processes
from tests.support.sweeps import command, place, runners, starts, written

pytest.importorskip("joblib")
JOBS = 2
SEEDS = "1-6"
PATIENCE = 300.0


def swept(file: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(file, *more), capture_output=True, text=True, timeout=PATIENCE, check=False)


def there(file: Path) -> dict[str, str]:
    """The results that there are, by cell."""
    return {path.stem: path.read_text() for path in (place(file) / "cells").glob("*.json")}


def begun(file: Path) -> subprocess.Popen[bytes]:
    """The sweep, in a process group of its own."""
    return subprocess.Popen(
        command(file, "--jobs", str(JOBS)),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def killed_after(file: Path, count: int) -> None:
    """Run the sweep, and kill it with all its processes once so many cells have been started."""
    process = begun(file)
    try:
        processes.await_amid(process, lambda: len(starts(place(file))) >= count, PATIENCE, 0.002)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert process.returncode == -signal.SIGKILL


# A cell that takes long enough to be killed in the middle of it.
SLOW = """
import time

from kumulus.extras.lab.policies.paper import fgd


def score(pod, nodes, study):
    time.sleep(0.004)
    return fgd.score(pod, nodes, study)
"""


@pytest.mark.timeout(900)
def test_a_sweep_that_is_killed_goes_on_and_runs_nothing_twice(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    file = written(tmp_path, matrix={"policy": ["slow.py", "BestFit"], "seed": SEEDS})
    draw, kills, in_the_middle = random.Random(17), 0, 0
    for count in sorted(draw.sample(range(1, 11), 3)):
        before = len(starts(place(file)))
        if before >= count:
            continue
        killed_after(file, count)
        kills += 1
        in_the_middle += len(set(starts(place(file))) - there(file).keys())
    kept = there(file)
    started = Counter(starts(place(file)))
    assert kills >= 2
    assert in_the_middle, "no cell was under way when the sweep was killed"
    done = swept(file, "--jobs", str(JOBS))
    assert done.returncode == 0, done.stderr
    finished = there(file)
    assert len(finished) == 12
    # What was whole at a kill is as it was, and has not been started again.
    assert {cell: finished[cell] for cell in kept} == kept
    again = Counter(starts(place(file)))
    assert all(again[cell] == started[cell] for cell in kept)
    # A kill costs the cells that were under way, and no other.
    assert sum(again.values()) - len(finished) <= kills * JOBS
    assert swept(file, "--jobs", str(JOBS)).returncode == 0
    assert Counter(starts(place(file))) == again


# A cell that goes on until it is let go.
HELD = """
import pathlib
import time

from kumulus.extras.lab.policies.paper import fgd


def score(pod, nodes, study):
    while not pathlib.Path(__file__).with_name("go").exists():
        time.sleep(0.02)
    return fgd.score(pod, nodes, study)
"""


def open_locks(process: subprocess.Popen[bytes]) -> int:
    """How many cells a sweep's processes run or wait for."""
    found = set()
    for each in psutil.Process(process.pid).children(recursive=True):
        with suppress(psutil.Error):
            found |= {file.path for file in each.open_files() if file.path.endswith(".lock")}
    return len(found)


def test_a_process_that_outlives_its_sweep_is_waited_for_and_its_cell_not_run_again(tmp_path: Path) -> None:
    (tmp_path / "held.py").write_text(HELD)
    file = written(tmp_path, matrix={"policy": ["held.py"], "seed": "1-2", "policyTimeout": ["10m"]})
    sweeps = [begun(file)]
    try:
        processes.await_amid(sweeps[0], lambda: len(starts(place(file))) == 2, PATIENCE, 0.002)
        workers = [psutil.Process(pid) for pid in runners(place(file))]
        sweeps[0].kill()
        sweeps[0].wait()
        sweeps.append(begun(file))
        # Those that wait for nothing would start the cells again.
        processes.await_amid(
            sweeps[1], lambda: open_locks(sweeps[1]) == 2 or len(starts(place(file))) > 2, PATIENCE, 0.1
        )
        assert all(each.is_running() and each.status() != psutil.STATUS_ZOMBIE for each in workers)
        assert there(file) == {}
        (tmp_path / "go").touch()
        assert sweeps[1].wait(PATIENCE) == 0
        assert len(there(file)) == 2
        assert set(Counter(starts(place(file))).values()) == {1}
    finally:
        for each in sweeps:
            with suppress(ProcessLookupError):
                os.killpg(each.pid, signal.SIGKILL)
            each.wait()


@contextmanager
def dask() -> Iterator[str]:
    """The address of a Dask cluster with two workers."""
    distributed = pytest.importorskip("distributed", reason="distributed is in the extra `dask`")
    local = {"host": "127.0.0.1", "dashboard_address": None}
    # Processes, not threads: a cell uses one thread, and policies are interrupted in a main thread only.
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, **local) as cluster:
        yield cluster.scheduler_address


@contextmanager
def ray() -> Iterator[str]:
    """The address of a Ray cluster with two workers."""
    pytest.importorskip("ray.util.joblib", reason="ray is in the extra `ray`")
    with Claims() as claims:
        ports = {name: claims.take() for name in ("port", "ray-client-server-port")}
        local = ["--node-ip-address=127.0.0.1", *(f"--{name}={port}" for name, port in ports.items())]
        line = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", "--num-cpus=2", *local]
        with subprocess.Popen([*line, "--include-dashboard=false"], stdout=subprocess.DEVNULL) as process:
            try:
                yield f"ray://127.0.0.1:{ports['ray-client-server-port']}"
            finally:
                process.terminate()


def outcome(folder: Path, *more: str) -> dict[str, Any]:
    """What a sweep comes to, by cell."""
    file = written(folder)
    done = swept(file, "--jobs", "2", *more)
    assert done.returncode == 0, done.stderr
    found = {cell: json.loads(text) for cell, text in there(file).items()}
    return {cell: (result["runs"], result["curves"]) for cell, result in found.items()}


@pytest.fixture(scope="module")
def of_processes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What it comes to in processes of this machine."""
    return outcome(tmp_path_factory.mktemp("here"))


@pytest.mark.parametrize("cluster", [dask, ray])
@pytest.mark.timeout(900)
def test_two_workers_of_another_engine_give_what_processes_of_this_machine_give(
    tmp_path: Path, of_processes: dict[str, Any], cluster: Callable[[], AbstractContextManager[str]]
) -> None:
    with cluster() as address:
        found = outcome(tmp_path, "--engine", address.replace("tcp://", "dask://"))
    assert len(found) == 4
    assert found == of_processes


@pytest.mark.parametrize(("scheme", "module"), [("dask", "distributed"), ("ray", "ray.util.joblib")])
def test_without_the_extra_it_is_said_how_to_get_it(tmp_path: Path, scheme: str, module: str) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / f"{module.partition('.')[0]}.py").write_text("raise ImportError('not here')\n")
    file = written(tmp_path)
    done = subprocess.run(
        command(file, "--engine", f"{scheme}://127.0.0.1:1"),
        env={**os.environ, "PYTHONPATH": str(hidden)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 1
    assert f"kumulus venv --with {scheme}" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_engine_that_is_not_there_is_said(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="distributed is in the extra `dask`")
    done = swept(written(tmp_path), "--engine", "dask://127.0.0.1:1")
    assert done.returncode == 1
    assert "there is no Dask scheduler at 127.0.0.1:1" in done.stderr
    assert "Traceback" not in done.stderr
