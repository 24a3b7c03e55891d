"""The results of a sweep's cells: a file for each that has been run, written whole or not at all.

<directory>/cells/<id>.json    the result of a cell
<directory>/cells/<id>.lock    held by the process that runs it, and by no other
<directory>/starts.log         one line for each start of a cell, so that starts can be counted
"""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.report.files import os_errors_explained
from kumulus.host import files

_LOCK = ".sweep.lock"


@dataclass
class CellResult:
    """The outcome of a cell."""

    id: str
    values: dict[str, Any]
    """Of the matrix, with the seed where it varies."""
    seed: int
    status: str
    """Success, failure or partial."""
    runs: list[dict[str, float]] = field(default_factory=list)
    curves: dict[str, dict[str, float]] = field(default_factory=dict)
    """Measures by whole per cents of demand arrived, of runs that have them."""
    error: str = ""
    seconds: float = 0.0
    report: str = ""
    """Of live runs, where the report is."""

    @property
    def complete(self) -> bool:
        """Whether it came to its end; the measures of a run that was cut off are only those so far."""
        return bool(self.runs) and self.status != "partial"


class Store:
    """The results of a sweep."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory.absolute()

    def prepare(self) -> None:
        """Make the directory."""
        with os_errors_explained(self.directory):
            (self.directory / "cells").mkdir(parents=True, exist_ok=True)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other sweeps out of the directory."""
        with (self.directory / _LOCK).open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise LabError(f"another sweep writes to {self.directory}\n  Wait for it, or end it") from None
            yield

    @contextmanager
    def cell_lock(self, cell: str) -> Iterator[None]:
        """Wait until no other process runs the cell: one whose sweep was killed may still run it."""
        with (self.directory / "cells" / f"{cell}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def started(self, cell: str) -> None:
        """Log that a cell is being run."""
        line = f"{time.time():.3f} {os.getpid()} {cell}\n".encode()
        handle = os.open(self.directory / "starts.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(handle, line)
        finally:
            os.close(handle)

    def get(self, cell: str) -> CellResult | None:
        """A cell's result; None where it has none."""
        try:
            raw = json.loads((self.directory / "cells" / f"{cell}.json").read_text(encoding="utf-8"))
            return CellResult(**raw)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError) as error:
            path = self.directory / "cells" / f"{cell}.json"
            raise LabError(f"{path} cannot be read: {error}\n  Remove it, and the cell is run again") from None

    def put(self, result: CellResult) -> None:
        """Write a cell's result, whole or not at all."""
        path = self.directory / "cells" / f"{result.id}.json"
        with os_errors_explained(path):
            files.write(path, json.dumps(asdict(result), indent=1) + "\n")
