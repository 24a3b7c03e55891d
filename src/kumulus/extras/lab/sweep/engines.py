"""How a cell runs, and where: in processes of this machine, or on the user's Dask or Ray cluster, through joblib.

None of these clusters is started here: whoever can connect to one runs code on it, and on one machine, joblib's own
processes do the same by pipes.
"""

import os
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.load import LoadedExperiment, loaded_from
from kumulus.extras.lab.offline import experiment as offline
from kumulus.extras.lab.policies.load import PolicyFailed
from kumulus.extras.lab.sweep import live
from kumulus.extras.lab.sweep.cells import Cell
from kumulus.extras.lab.sweep.store import CellResult, Store
from kumulus.host import installation
from kumulus.kube import safe_yaml
from kumulus.model.errors import SpecError
from kumulus.stackfile.clusters import load_stack

LOCAL = "local"
_SCHEMES = ("dask", "ray")
_BACKENDS = {LOCAL: "loky", "dask": "dask", "ray": "ray"}


@dataclass(frozen=True)
class CellTask:
    """A cell for another process."""

    cell: Cell
    directory: Path | None
    """Of the sweep's results; None if the process may be on another machine and only returns the result."""
    kumulus: tuple[str, ...] = ()
    """The command, as a live run calls it."""


def run(task: CellTask) -> CellResult:
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


def loaded(cell: Cell) -> LoadedExperiment:
    """A cell's experiment with every file that it names."""
    raw = dict(cell.raw)
    return loaded_from(raw, cell.directory, f"cell {cell.id}", safe_yaml.written(raw))


def _run(task: CellTask) -> CellResult:
    cell, began = task.cell, time.monotonic()
    result = CellResult(cell.id, dict(cell.values), cell.seed, "success")
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
def _study(same: _Same) -> offline.OfflineStudy:
    cell = same.cell
    stack = load_stack(dict(cell.stack), "sweep", cell.directory)
    if len(stack.clusters) != 1:
        raise LabError("a sweep is of stack files with one cluster")
    ready = loaded(cell)
    pools = next(iter(stack.clusters.values())).pools
    return offline.study(ready, pools, ready.experiment.policyTies)


@dataclass(frozen=True)
class CellEngine:
    """Where cells run."""

    kind: str = LOCAL
    """Local, dask or ray."""
    address: str = ""
    """Of the cluster; empty for local."""

    @property
    def elsewhere(self) -> bool:
        """Whether its workers may be on other machines, which do not see this one's files."""
        return self.kind != LOCAL


def engine(written: str) -> CellEngine:
    """The engine of the command line: `local`, `dask://HOST:PORT` or `ray://HOST:PORT`."""
    if written in ("", LOCAL):
        return CellEngine()
    scheme, separator, address = written.partition("://")
    if not separator or scheme not in _SCHEMES:
        raise LabError(f"--engine {written} is none\n  Write local, dask://HOST:PORT or ray://HOST:PORT")
    if not address:
        raise LabError(
            f"--engine {written} names no cluster\n"
            f"  Write {scheme}://HOST:PORT. For processes of this machine, leave --engine out"
        )
    return CellEngine(scheme, address)


def results(tasks: Sequence[CellTask], where: CellEngine, jobs: int) -> Generator[CellResult]:
    """Run cells in parallel; yields each result as it comes.

    Args:
        jobs: how many at once; 0 for one on each CPU, or as many as the cluster has workers.
    """
    import joblib

    # Each run uses one thread: a BLAS that takes every CPU only slows down the others.
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    many = jobs or len(os.sched_getaffinity(0))
    workers = -1 if where.elsewhere and not jobs else many
    # joblib finds external backends by name only in its parallel_config.
    with _connected(where), joblib.parallel_config(backend=_BACKENDS[where.kind], n_jobs=workers):
        # Ray's workers answer all together: a few tasks at a time, so that results can be shown and kept early.
        some = 4 * many if where.kind == "ray" else len(tasks)
        answers = "list" if where.kind == "ray" else "generator_unordered"
        parallel = joblib.Parallel(return_as=answers, batch_size=1, pre_dispatch="2*n_jobs")
        try:
            for first in range(0, len(tasks), some):
                yield from parallel(joblib.delayed(run)(task) for task in tasks[first : first + some])
        except joblib.externals.loky.process_executor.TerminatedWorkerError as error:
            raise LabError(f"a process that ran a cell has died: {error}\n  Run the sweep again: it goes on") from None


def _connected(where: CellEngine) -> AbstractContextManager[None]:
    if where.kind == LOCAL:
        return nullcontext()
    return _dask(where.address) if where.kind == "dask" else _ray(where.address)


@contextmanager
def _dask(address: str) -> Iterator[None]:
    try:
        from distributed import Client
    except ImportError:
        raise _missing("dask", "distributed") from None
    try:
        client = Client(f"tcp://{address}", timeout="10s")
    except OSError as error:
        raise LabError(f"there is no Dask scheduler at {address}: {error}") from None
    with client:
        yield


@contextmanager
def _ray(address: str) -> Iterator[None]:
    try:
        import ray
        from ray.util.joblib import register_ray
    except ImportError:
        raise _missing("ray", "ray") from None
    try:
        ray.init(f"ray://{address}", log_to_driver=False, configure_logging=False)
    except (ConnectionError, RuntimeError, TimeoutError) as error:
        raise LabError(f"there is no Ray cluster at {address}: {error}") from None
    try:
        register_ray()
        yield
    finally:
        ray.shutdown()


def _missing(scheme: str, package: str) -> LabError:
    return LabError(
        f"--engine {scheme}:// needs the Python package {package}, which is not installed\n"
        f"  To get it: {installation.way_to_add(scheme)}"
    )
