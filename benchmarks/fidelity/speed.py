"""What a trace comes to when it is replayed faster than it was: the error of its figures against those at speed 1."""

import csv
import json
import random
import statistics
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from kumulus.testing import Cluster

SPEEDS = (1, 2, 4, 10, 60, 168)
MEASURES = {"gpuHours.used": "GPU-hours", "timeToSchedule.p50": "wait, median", "timeToSchedule.p99": "wait, p99"}
MEASURES |= {"makespan": "makespan"}
# The jobs ask for more than half of the GPUs most of the time, so that some of them wait.
_JOBS, _MEDIAN_S, _SIGMA, _BETWEEN_S, _NODES = 40, 80.0, 0.5, 5.0, 4
_NODE = {"cpu": "96", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": "8"}
_SEED, _AT_ONCE = 47, 3


def jobs() -> list[dict[str, float]]:
    """A trace: when each job arrives, how many GPUs it asks for, how long it runs. The same each time."""
    draw, at, made = random.Random(_SEED), 0.0, []
    for _ in range(_JOBS):
        at += draw.expovariate(1 / _BETWEEN_S)
        duration = min(240.0, _MEDIAN_S * draw.lognormvariate(0, _SIGMA))
        made.append({"arrival": round(at, 1), "gpus": draw.choice((1, 2, 4, 8)), "duration": round(duration, 1)})
    return made


def record(times: int) -> dict[str, list[dict[str, float]]]:
    """The measures of each replay by speed, in the trace's own time.

    Args:
        times: how often each speed is replayed.
    """
    wanted = [speed for speed in SPEEDS for _ in range(times)]
    found: dict[str, list[dict[str, float]]] = {}
    # Each has a cluster of its own, and all of them together leave this machine idle most of the time.
    with ProcessPoolExecutor(_AT_ONCE, get_context("spawn")) as pool:
        for speed, measures in zip(wanted, pool.map(_replayed, wanted), strict=True):
            found.setdefault(str(speed), []).append(measures)
    return found


def _replayed(speed: int) -> dict[str, float]:
    template = {"capacity": _NODE, "taints": []}
    groups = [{"name": "gpu", "placement": [{"availabilityZone": "z", "replicas": _NODES}], "nodeTemplate": template}]
    with tempfile.TemporaryDirectory() as folder, Cluster({"name": "speed", "nodeGroups": groups}) as cluster:
        with (Path(folder) / "jobs.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, ["arrival", "gpus", "duration"])
            writer.writeheader()
            writer.writerows(jobs())
        experiment = Path(folder) / f"speed-{speed}.yaml"
        experiment.write_text(json.dumps(_experiment(speed)))
        (test,) = cluster.experiment(experiment)["results"]["tests"]
    # A run of a few seconds may end before enough was heard of its pods; the report then has no such measure.
    known = test["details"]["measures"]
    measures = {name: known[name] * speed for name in MEASURES if name in known}
    print(f"speed {speed}: {measures}", flush=True)
    return measures


def errors(measured: dict[str, list[dict[str, float]]]) -> list[dict[str, Any]]:
    """By speed and measure: the error of the median against speed 1, and the worst, as shares of 1."""
    rows = []
    for speed, runs in sorted(measured.items(), key=lambda each: int(each[0])):
        for name in MEASURES:
            right = statistics.median(each[name] for each in measured["1"])
            off = [each[name] / right - 1 for each in runs if name in each]
            if off:
                worst = max(off, key=abs)
                rows.append({"speed": int(speed), "measure": name, "median": statistics.median(off), "worst": worst})
    return rows


def _experiment(speed: int) -> dict[str, Any]:
    columns = {name: name for name in ("arrival", "gpus", "duration")}
    trace = {"file": "jobs.csv", "columns": {**columns, "size": ""}, "speed": speed}
    workload = {"name": "tasks", "kind": "Job", "requests": {"cpu": "1"}, "arrival": {"trace": trace}}
    return {"name": f"speed-{speed}", "workloads": [workload], "until": "completed", "timeout": "30m", "seed": _SEED}
