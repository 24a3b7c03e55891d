"""A small sweep: a few machines, a few tasks, two policies, two seeds."""

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus.extras.lab.sweep.engines import CellEngine
from kumulus.extras.lab.sweep.file import Sweep, load
from kumulus.extras.lab.sweep.sweep import SweepOptions, SweepResult, run
from tests.support.project import ROOT

TASKS = "arrival,cpu,memory,gpus,milli\n" + "".join(
    f"{number},{1 + number % 3},1Gi,1,{(250, 500, 1000)[number % 3]}\n" for number in range(40)
)
CAPACITY = {"cpu": "32", "memory": "128Gi", "pods": "110", "nvidia.com/gpu": "4"}
COLUMNS = {"cpu": "cpu", "memory": "memory", "gpus": "gpus", "gpuMilli": "milli"}


def written(directory: Path, experiment: dict[str, Any] | None = None, **fields: Any) -> Path:
    """Write a stack file, an experiment file, its trace and a sweep file; returns the last.

    Args:
        experiment: fields of the experiment, instead of a traced workload with a policy.
        fields: of the sweep, instead of two policies and two seeds.
    """
    group = {
        "name": "t4",
        "placement": [{"availabilityZone": "z1", "replicas": 4}],
        "nodeTemplate": {"capacity": CAPACITY},
    }
    stack = {"config": {"kumulus:cluster": {"runtime": "kwok", "nodeGroups": [group]}}}
    (directory / "s.yaml").write_text(yaml.safe_dump(stack))
    (directory / "tasks.csv").write_text(TASKS)
    trace = {"file": "tasks.csv", "columns": COLUMNS, "inflate": 1.3, "stay": True}
    raw = experiment or {
        "policy": "FGD",
        "workloads": [{"name": "tasks", "kind": "Pod", "arrival": {"trace": trace}}],
    }
    (directory / "e.yaml").write_text(yaml.safe_dump({"name": "small", "stackFile": "s.yaml", **raw}))
    sweep = {"name": "small", "experiment": "e.yaml", "matrix": {"policy": ["FGD", "BestFit"], "seed": "1-2"}, **fields}
    (directory / "sweep.yaml").write_text(yaml.safe_dump(sweep))
    return directory / "sweep.yaml"


def read(directory: Path, **fields: Any) -> Sweep:
    """The sweep of a file that :func:`written` writes."""
    return load(written(directory, **fields))


def swept(directory: Path, said: list[str] | None = None, jobs: int = 1, **fields: Any) -> SweepResult:
    """Run a sweep that :func:`written` writes; its results go to `results` beside the file."""
    pytest.importorskip("joblib")
    sweep = read(directory, **fields)
    say = (said if said is not None else []).append
    return run(sweep, directory, SweepOptions(directory / "results", CellEngine(), jobs, (), say))


def command(file: Path, *more: str) -> list[str]:
    """The command that runs a sweep; its results go beside the file."""
    results = str(file.parent / "results")
    return [sys.executable, str(ROOT / "kumulus"), "experiment", "sweep", str(file), "--results", results, *more]


def place(file: Path) -> Path:
    """Where the results of a sweep are."""
    return file.parent / "results" / "sweeps" / "small"


def starts(directory: Path) -> list[str]:
    """The cells that have been started, in order, from the log in the directory of the results."""
    return [cell for _, _, cell in _log(directory)]


def runners(directory: Path) -> list[int]:
    """The pids of the processes that have started them, likewise."""
    return [int(pid) for _, pid, _ in _log(directory)]


def _log(directory: Path) -> list[list[str]]:
    log = directory / "starts.log"
    return [line.split() for line in log.read_text().splitlines()] if log.exists() else []
