"""A whole sweep: run the cells that have no result yet, and write all results as a table and a page."""

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.measures import UNITS
from kumulus.extras.lab.report.files import os_errors_explained
from kumulus.extras.lab.sweep import live, page
from kumulus.extras.lab.sweep.cells import Cell, cells_of
from kumulus.extras.lab.sweep.engines import CellEngine, CellTask, results
from kumulus.extras.lab.sweep.file import SEED, Sweep, group_of, words
from kumulus.extras.lab.sweep.store import CellResult, Store
from kumulus.host import files
from kumulus.host.interrupts import like_ctrl_c

NAME = "results"
COLUMNS = ("cell", "seed", "repetition", "status", "measure", "unit", "arrived", "value")


@dataclass(frozen=True)
class SweepOptions:
    """How a sweep is run."""

    directory: Path
    engine: CellEngine
    jobs: int
    """How many at once; 0 for as many as fit."""
    kumulus: tuple[str, ...]
    """The command, as live runs call it."""
    say: Callable[[str], None]


@dataclass(frozen=True)
class SweepResult:
    """The outcome of a sweep."""

    cells: int
    before: int
    results: list[CellResult]
    found: dict[str, list[page.GroupRow]]
    files: list[Path]


def run(sweep: Sweep, base: Path, options: SweepOptions) -> SweepResult:
    """Run the cells without a result, and write the table and the page."""
    if sweep.live and options.engine.elsewhere:
        raise LabError("clusters are made on this machine\n  Leave --engine out, or live: true")
    cells = cells_of(sweep, base)
    store = Store(options.directory)
    store.prepare()
    with store.alone():
        _tidy(store, options)
        # A cell whose run did not come to its end is run again.
        missing = [cell for cell in cells if (known := store.get(cell.id)) is None or not known.complete]
        if len(missing) < len(cells):
            options.say(f"{len(cells) - len(missing):,} of {len(cells):,} runs are there already")
        if missing and (few := page.too_few(sweep)):
            options.say(few)
        _run(sweep, missing, store, options)
        there = [result for cell in cells if (result := store.get(cell.id)) is not None]
        found = page.tables(sweep, there)
        written = [write(there, list(sweep.matrix), store.directory), store.directory / page.NAME]
        page.write(sweep, found, there, len(cells), written[1])
    return SweepResult(len(cells), len(cells) - len(missing), there, found, written)


def _tidy(store: Store, options: SweepOptions) -> None:
    """Take down the clusters that a killed sweep left, after waiting for its processes that still run a cell."""
    for project in live.leftovers(store):
        with store.cell_lock(project.name):
            options.say(f"taking down the cluster of {project.name}, which an earlier sweep had left")
            if message := live.remove(project, options.kumulus, cut_off=True):
                options.say(f"  {message}")


def _run(sweep: Sweep, missing: list[Cell], store: Store, options: SweepOptions) -> None:
    if not missing:
        return
    jobs = options.jobs
    if sweep.live:
        jobs = live.at_once(missing, jobs)
        options.say(f"{jobs} cluster{'s' if jobs > 1 else ''} at a time")
    # Workers on other machines cannot access this directory: this process writes their results as they come.
    elsewhere = options.engine.elsewhere
    tasks = [CellTask(cell, None if elsewhere else store.directory, options.kumulus) for cell in missing]
    if elsewhere:
        for cell in missing:
            store.started(cell.id)
    number, of = 0, f"of {len(missing):,}"
    try:
        # Ended in order, the processes of the runs end with this one.
        with like_ctrl_c(), closing(results(tasks, options.engine, jobs)) as found:
            for number, result in enumerate(found, start=1):
                if elsewhere:
                    store.put(result)
                error = f": {result.error.splitlines()[0]}" if result.error else ""
                options.say(
                    f"{number:>6,} {of}  {words(result.values)}  {result.seconds:,.1f} s  {result.status}{error}"
                )
    except KeyboardInterrupt:
        first = ", after it has taken down the clusters that are left" if sweep.live else ""
        options.say(f"ended: {number:,} {of} runs are done; the same command goes on{first}")
        raise


def rows(results: Sequence[CellResult]) -> Iterator[dict[str, Any]]:
    """A row for each measure of each repetition, with the values of the matrix as texts.

    `arrived` is the per cent of demand at which a measure was noted; only measures by demand have it.
    """
    for result in results:
        about: dict[str, Any] = dict(group_of(result.values))
        about |= {"cell": result.id, "seed": result.seed, "status": result.status}
        for repetition, measures in enumerate(result.runs, start=1):
            for measure, value in measures.items():
                unit = UNITS.get(measure, "")
                yield {**about, "repetition": repetition, "measure": measure, "unit": unit, "value": float(value)}
        for curve, points in result.curves.items():
            for percent, value in points.items():
                point = {"measure": curve, "unit": "%", "arrived": int(percent), "value": float(value)}
                yield {**about, "repetition": 1, **point}


def write(results: Sequence[CellResult], axes: Sequence[str], directory: Path) -> Path:
    """Write the table; returns its file."""
    columns = [*(axis for axis in axes if axis != SEED), *COLUMNS]
    found = list(rows(results))
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        path = directory / f"{NAME}.csv"
        text = io.StringIO()
        table = csv.DictWriter(text, columns, lineterminator="\n")
        table.writeheader()
        table.writerows(found)
        with os_errors_explained(path):
            files.write(path, text.getvalue())
        return path
    whole, number = pyarrow.int64(), pyarrow.float64()
    kinds = {"seed": whole, "repetition": whole, "arrived": whole, "value": number}
    schema = pyarrow.schema([(name, kinds.get(name, pyarrow.string())) for name in columns])
    path = directory / f"{NAME}.parquet"
    content = pyarrow.BufferOutputStream()
    parquet.write_table(pyarrow.Table.from_pylist(found, schema=schema), content)
    with os_errors_explained(path):
        files.write(path, content.getvalue().to_pybytes())
    return path
