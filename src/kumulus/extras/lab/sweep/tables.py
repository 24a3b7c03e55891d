"""The results of a sweep as a table, a row for each measure of each run: Parquet, or CSV without pyarrow."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kumulus.extras.lab.file.measures import UNITS
from kumulus.extras.lab.report.files import os_errors_explained
from kumulus.extras.lab.sweep.file import SEED, group_of
from kumulus.extras.lab.sweep.store import Result
from kumulus.host import files

NAME = "results"
COLUMNS = ("cell", "seed", "repetition", "status", "measure", "unit", "arrived", "value")


def rows(results: Sequence[Result]) -> Iterator[dict[str, Any]]:
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


def write(results: Sequence[Result], axes: Sequence[str], directory: Path) -> Path:
    """Write the table; returns its file.

    Args:
        results: of the cells that have one.
        axes: of the matrix.
        directory: to write to.

    Raises:
        LabError: it cannot be written.
    """
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
