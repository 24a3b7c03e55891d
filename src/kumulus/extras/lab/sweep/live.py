"""A cell on a cluster of its own, which the command creates as for any user, and takes down after the run.

The cluster is the stack of a project in the sweep's directory. If a sweep is killed, the next one takes down what is
left of it before anything else.
"""

import asyncio
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import psutil

from kumulus import toolchain
from kumulus.extras.journal.errors import JournalError
from kumulus.extras.lab import running
from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.load import LoadedExperiment, with_prices
from kumulus.extras.lab.report import junit
from kumulus.extras.lab.report.files import os_errors_explained
from kumulus.extras.lab.run.bench import RunOptions
from kumulus.extras.lab.sweep.cells import Cell
from kumulus.extras.lab.sweep.store import CellResult, Store
from kumulus.host import files
from kumulus.host.machine import memory_bytes
from kumulus.kube import ApiError, KubeconfigError, Unreachable, safe_yaml
from kumulus.model import scale
from kumulus.model.errors import SpecError
from kumulus.nodes.catalog.prices import Prices, catalog
from kumulus.runtimes.descriptor import KUBECONFIG_FILE
from kumulus.stackfile.clusters import load_stack
from kumulus.stackfile.load import LoadedCluster as Cluster

_PROJECTS = "clusters"
_LAST_LINES = 12
# Pulumi's variables in the environment of this process are those of the user's project.
_OF_THE_USER = ("PULUMI_BACKEND_URL", "PULUMI_STACK", "KUMULUS_HOME")
_PROGRAM = "from kumulus import program\n\nprogram.run()\n"
_PROJECT = """name: kumulus-sweep
runtime: python
backend:
  url: file://./.pulumi-state?create_dir=true
"""


def run(cell: Cell, loaded: LoadedExperiment, store: Store, kumulus: Sequence[str]) -> CellResult:
    """Run a cell on a cluster of its own; its result is written before the cluster is taken down."""
    began = time.monotonic()
    project = store.directory / _PROJECTS / cell.id
    result = CellResult(cell.id, dict(cell.values), cell.seed, "partial")
    try:
        _make(project, cell)
        _command(kumulus, "up", project, _stack(cell.id))
        kubeconfig = project / ".kumulus" / "clusters" / _stack(cell.id) / KUBECONFIG_FILE
        _measure(*_priced(loaded, cell), kubeconfig, store, result)
    except (ApiError, JournalError, KubeconfigError, LabError, SpecError, Unreachable) as error:
        result.error = str(error)
    result.seconds = round(time.monotonic() - began, 3)
    store.put(result)
    if message := remove(project, kumulus):
        # Shown, but not kept: the next sweep takes the cluster down.
        return replace(result, error="; ".join(filter(None, [result.error, f"its cluster is still there: {message}"])))
    return result


def leftovers(store: Store) -> list[Path]:
    """The projects of clusters that a killed sweep has left."""
    there = store.directory / _PROJECTS
    return sorted(there.iterdir()) if there.is_dir() else []


def remove(project: Path, kumulus: Sequence[str], *, cut_off: bool = False) -> str:
    """Take a cell's cluster down, and delete its project.

    Args:
        cut_off: whether the process that created it may have been killed. Then its lock is removed and the cluster is
            completed first, so that all of it is known and deleted.

    Returns:
        what went wrong, in which case the project is kept; empty when nothing did.
    """
    name = _stack(project.name)
    try:
        if cut_off and (project / f"Pulumi.{name}.yaml").exists():
            _output([str(toolchain.find("pulumi")), "cancel", "--yes", "-s", name], project)
            _command(kumulus, "up", project, name)
        _command(kumulus, "down", project, name)
    except (LabError, toolchain.ToolMissing) as error:
        return str(error)
    shutil.rmtree(project, ignore_errors=True)
    return ""


def at_once(cells: Sequence[Cell], wanted: int) -> int:
    """How many clusters fit on this machine at once, by the model of `kumulus plan`.

    Args:
        cells: what is to run; the largest decides.
        wanted: the most; 0 for as many as fit.
    """
    machine = scale.MachineSize(psutil.cpu_count() or 1, memory_bytes() / 1e6)
    sizes = [_size(cell) for cell in cells]
    nodes, factor = max(sizes, default=(0, None), key=lambda size: size[0])
    cost = scale.cost(nodes, machine, factor)
    if problems := scale.limits(cost, machine):
        raise LabError(f"a cluster of {nodes:,} nodes does not fit on this machine: {problems[0]}")
    # A run keeps a core busy, however little its cluster needs when idle.
    most = wanted or machine.cores
    fits = 1
    while fits < most and not scale.limits(scale.together([cost] * (fits + 1)), machine):
        fits += 1
    return fits


def _size(cell: Cell) -> tuple[int, int | None]:
    loaded = _cluster(cell)
    return sum(pool.replicas for pool in loaded.pools), loaded.spec.kwok.heartbeatFactor


def _cluster(cell: Cell) -> Cluster:
    stack = load_stack(dict(cell.stack), _stack(cell.id), cell.directory)
    return next(iter(stack.clusters.values()))


def _stack(cell: str) -> str:
    return f"sweep-{cell}"


def _make(project: Path, cell: Cell) -> None:
    with os_errors_explained(project):
        project.mkdir(parents=True, exist_ok=True)
        files.write(project / "Pulumi.yaml", _PROJECT)
        files.write(project / "__main__.py", _PROGRAM)
        stack = safe_yaml.written({"config": dict(cell.stack_elsewhere)})
        files.write(project / f"Pulumi.{_stack(cell.id)}.yaml", stack)


def _command(kumulus: Sequence[str], action: str, project: Path, stack: str) -> None:
    code, output = _output([*kumulus, action, "-s", stack], project)
    if code:
        lines = output.splitlines()
        # A table of cells has room for one line.
        cause = next((line.strip() for line in lines if "error: " in line), "")
        last = "\n  ".join(lines[-_LAST_LINES:])
        raise LabError(f"kumulus {action} of the cell's cluster failed: {cause}\n  {last}")


def _output(line: Sequence[str], project: Path) -> tuple[int, str]:
    """Run a command in a project; returns its exit code and its output."""
    done = subprocess.run(
        line,
        cwd=project,
        env=_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def _environment() -> Mapping[str, str]:
    own = {name: value for name, value in os.environ.items() if name not in _OF_THE_USER}
    # Pulumi runs the first Python that it finds, which has to be one with Kumulus.
    own["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{own.get('PATH', '')}"
    own.setdefault("PULUMI_CONFIG_PASSPHRASE", "")
    return own


def _priced(loaded: LoadedExperiment, cell: Cell) -> tuple[LoadedExperiment, Prices]:
    """The prices of the cell's stack, else the catalog's; a file of prices is kept with the run's inputs."""
    own = _cluster(cell).prices
    return with_prices(loaded, own) if own else (loaded, catalog())


def _measure(loaded: LoadedExperiment, prices: Prices, kubeconfig: Path, store: Store, result: CellResult) -> None:
    results = store.directory / "runs"
    options = RunOptions(kubeconfig, _stack(result.id), results, junit.write_forms, prices=prices)
    report, directory = asyncio.run(running.run(loaded, options))
    result.report = str(directory.relative_to(store.directory))
    result.status, result.error = report.results.status, report.results.error
    result.runs = [dict(test.details.measures) for test in report.results.tests]
    if policy := next((test.details.policy for test in report.results.tests if test.details.policy), None):
        result.curves = {
            "allocated_percent": policy.allocated_percent,
            "fragmented_percent_of_all_gpus": policy.fragmented_percent_of_all_gpus,
            "fragmented_percent_of_idle_gpus": policy.fragmented_percent_of_idle_gpus,
        }
