"""Sweeps in processes of their own: killed at drawn points and run again, and on the workers of Dask and of Ray."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.support.sweeps import command, place, starts, written

pytest.importorskip("joblib")
JOBS = 2
SEEDS = "1-6"
PATIENCE = 300.0


def swept(file: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(file, *more), capture_output=True, text=True, timeout=PATIENCE, check=False)


def there(file: Path) -> dict[str, str]:
    """The results that there are, by cell."""
    return {path.stem: path.read_text() for path in (place(file) / "cells").glob("*.json")}


def killed_after(file: Path, count: int) -> None:
    """Run the sweep, and kill it with all its processes once so many cells have been started."""
    process = subprocess.Popen(
        command(file, "--jobs", str(JOBS)),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        end = time.monotonic() + PATIENCE
        while len(starts(place(file))) < count:
            assert process.poll() is None, f"it ended by itself, with {len(starts(place(file)))} starts"
            assert time.monotonic() < end
            time.sleep(0.002)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert process.returncode == -signal.SIGKILL


# A cell that takes long enough to be killed in the middle of it.
SLOW = """
import time

from kumulus.lab.policies.paper import fgd


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


def test_a_process_that_outlives_its_sweep_is_waited_for_and_its_cell_not_run_again(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    file = written(tmp_path, matrix={"policy": ["slow.py"], "seed": "1-4"})
    process = subprocess.Popen(command(file, "--jobs", "2"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + PATIENCE
    while not starts(place(file)):
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.002)
    # The processes that run the cells go on for a while.
    process.kill()
    process.wait()
    done = swept(file, "--jobs", "2")
    assert done.returncode == 0, done.stderr
    counted = Counter(starts(place(file)))
    assert len(there(file)) == 4
    # A cell is started again only if its process died with the sweep, before its result was there.
    assert sum(counted.values()) <= 4 + 2


@pytest.mark.parametrize(
    ("scheme", "module", "extra"), [("dask", "distributed", "dask"), ("ray", "ray.util.joblib", "ray")]
)
@pytest.mark.timeout(900)
def test_two_workers_of_another_engine_give_what_processes_of_this_machine_give(
    tmp_path: Path, scheme: str, module: str, extra: str
) -> None:
    pytest.importorskip(module, reason=f"{module} is in the extra `{extra}`")
    outcomes = []
    for name, more in (("here", ()), ("there", ("--engine", f"{scheme}://"))):
        (tmp_path / name).mkdir()
        file = written(tmp_path / name)
        done = swept(file, "--jobs", "2", *more)
        assert done.returncode == 0, done.stderr
        found = {cell: json.loads(text) for cell, text in there(file).items()}
        outcomes.append({cell: (result["runs"], result["curves"]) for cell, result in found.items()})
    assert len(outcomes[0]) == 4
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize(("scheme", "module"), [("dask", "distributed"), ("ray", "ray.util.joblib")])
def test_without_the_extra_it_is_said_how_to_get_it(tmp_path: Path, scheme: str, module: str) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / f"{module.partition('.')[0]}.py").write_text("raise ImportError('not here')\n")
    file = written(tmp_path)
    done = subprocess.run(
        command(file, "--engine", f"{scheme}://"),
        env={**os.environ, "PYTHONPATH": str(hidden)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 1
    assert f"pip install 'kumulus[{scheme}]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_engine_that_is_not_there_is_said(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="distributed is in the extra `dask`")
    done = swept(written(tmp_path), "--engine", "dask://127.0.0.1:1")
    assert done.returncode == 1
    assert "there is no Dask scheduler at 127.0.0.1:1" in done.stderr
    assert "Traceback" not in done.stderr
