"""Where cells run: processes of this machine, or the workers of the user's Dask or Ray cluster, all through joblib.

None of these clusters is started here: whoever can connect to one runs code on it, and on one machine, joblib's own
processes do the same by pipes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.sweep.running import Task, run
from kumulus.extras.lab.sweep.store import Result
from kumulus.host import installation

LOCAL = "local"
_SCHEMES = ("dask", "ray")
_BACKENDS = {LOCAL: "loky", "dask": "dask", "ray": "ray"}


@dataclass(frozen=True)
class Engine:
    """Where cells run.

    Args:
        kind: local, dask or ray.
        address: of the cluster; empty for local.
    """

    kind: str = LOCAL
    address: str = ""

    @property
    def elsewhere(self) -> bool:
        """Whether its workers may be on other machines, which do not see this one's files."""
        return self.kind != LOCAL


def engine(written: str) -> Engine:
    """The engine of the command line: `local`, `dask://HOST:PORT` or `ray://HOST:PORT`."""
    if written in ("", LOCAL):
        return Engine()
    scheme, separator, address = written.partition("://")
    if not separator or scheme not in _SCHEMES:
        raise LabError(f"--engine {written} is none\n  Write local, dask://HOST:PORT or ray://HOST:PORT")
    if not address:
        raise LabError(
            f"--engine {written} names no cluster\n"
            f"  Write {scheme}://HOST:PORT. For processes of this machine, leave --engine out"
        )
    return Engine(scheme, address)


def results(tasks: Sequence[Task], where: Engine, jobs: int) -> Iterator[Result]:
    """Run cells in parallel; yields each result as it comes.

    Args:
        tasks: the cells.
        where: the engine.
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


def _connected(where: Engine) -> AbstractContextManager[None]:
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
