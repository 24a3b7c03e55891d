"""Run one cell, in whatever process it is given to."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.load import Loaded, loaded_from
from kumulus.extras.lab.offline import experiment as offline
from kumulus.extras.lab.policies.load import PolicyFailed
from kumulus.extras.lab.sweep import live
from kumulus.extras.lab.sweep.cells import Cell
from kumulus.extras.lab.sweep.store import Result, Store
from kumulus.kube import yaml_writing
from kumulus.model.errors import SpecError
from kumulus.stackfile.clusters import load_stack


@dataclass(frozen=True)
class Task:
    """A cell for another process.

    Args:
        cell: which one.
        directory: of the sweep's results; None if the process may be on another machine and only returns the result.
        kumulus: the command, as a live run calls it.
    """

    cell: Cell
    directory: Path | None
    kumulus: tuple[str, ...] = ()


def run(task: Task) -> Result:
    """Run a cell, unless it has a complete result; with a directory, the result is on the disk when this returns.

    If a cell fails, the failure is its result, and the others continue.
    """
    if task.directory is None:
        return _run(task)
    store = Store(task.directory)
    with store.cell_lock(task.cell.id):
        if (there := store.get(task.cell.id)) is not None and there.complete:
            return there
        store.started(task.cell.id)
        if task.cell.live:
            # Its cluster is taken down after the result has been written.
            return live.run(task.cell, loaded(task.cell), store, task.kumulus)
        result = _run(task)
        store.put(result)
        return result


def loaded(cell: Cell) -> Loaded:
    """A cell's experiment with every file that it names."""
    raw = dict(cell.raw)
    return loaded_from(raw, cell.directory, f"cell {cell.id}", yaml_writing.written(raw))


def _run(task: Task) -> Result:
    cell, began = task.cell, time.monotonic()
    result = Result(cell.id, dict(cell.values), cell.seed, "success")
    try:
        found = offline.one_run(_study(_Same(cell)), cell.seed)
    except (LabError, PolicyFailed, SpecError) as error:
        result.status, result.error = "partial", str(error)
        return result
    result.seconds = round(time.monotonic() - began, 3)
    result.curves = found.curves
    measures: dict[str, float] = {
        "pods.created": found.pods,
        "pods.scheduled": found.placed,
        "pods.pending": found.pods - found.placed,
        "policy.failed": found.failed,
    }
    for name, curve in (
        ("policy.allocated", "allocated_percent"),
        ("policy.fragmented", "fragmented_percent_of_all_gpus"),
    ):
        if "100" in found.curves[curve]:
            measures[name] = round(found.curves[curve]["100"] / 100, 6)
    result.runs = [measures]
    return result


class _Same:
    """A cell that is equal to cells that differ from it by seed alone."""

    def __init__(self, cell: Cell) -> None:
        self.cell = cell
        self._key = (str(cell.directory), cell.group, str(cell.stack), str({**cell.raw, "seed": 0}))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


# A trace of thousands of tasks is read once for all seeds that a process runs.
@lru_cache(maxsize=2)
def _study(same: _Same) -> offline.Study:
    cell = same.cell
    stack = load_stack(dict(cell.stack), "sweep", cell.directory)
    if len(stack.clusters) != 1:
        raise LabError("a sweep is of stack files with one cluster")
    ready = loaded(cell)
    pools = next(iter(stack.clusters.values())).pools
    return offline.study(ready, pools, ready.experiment.policyTies)
