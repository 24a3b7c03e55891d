"""The directory of a run, and the index of all runs next to it.

    <results>/manifest.json             every run: when, what, its status, where its report is
    <results>/<experiment>/<run>/       report.json, history-1.json.gz …, junit.xml, plots, inputs/

A report is written when a run begins, marked partial, and again whenever there is more. Whatever ends the run, even a
full disk, the last report written is complete.
"""

import errno
import fcntl
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.report.model import FILE, Report, Test, report_of
from kumulus.extras.lab.report.text import assumed, unheard
from kumulus.extras.watch.history import document
from kumulus.extras.watch.history.document import History
from kumulus.host import files, lifetime
from kumulus.model.names import nearest

MANIFEST = "manifest.json"
HISTORY = "history-{}.json.gz"
"""The history of a repetition; numbers start at 1."""

RUNNING = "running"
"""The status in the index of a run that is under way."""

_LOCK = ".manifest.lock"
_PROCESS = "process"


class RunDirectory:
    """Where a run's files go."""

    def __init__(self, results: Path, experiment: str, run: str) -> None:
        self.results = results
        self.path = results / experiment / run

    def prepare(self, inputs: Mapping[str, str]) -> None:
        """Create the directory, with the exact inputs."""
        with os_errors_explained(self.path):
            (self.path / "inputs").mkdir(parents=True)
            for name, text in inputs.items():
                files.write(self.path / "inputs" / name, text)

    def keep(self, history: History, number: int, test: Test) -> None:
        """Write the history of a repetition, numbered from 1, and of its entry what was not heard, or is assumed."""
        history.about |= {"run": self.path.name, "unheard": list(unheard([test])), "assumed": list(assumed([test]))}
        file = self.path / HISTORY.format(number)
        with os_errors_explained(file):
            document.save(history, file)

    def write(self, report: Report, *, running: bool = False) -> None:
        """Write the report, whole or not at all, and its line in the index.

        Args:
            running: whether this process is still at work on it.
        """
        with os_errors_explained(self.path / FILE):
            files.write(self.path / FILE, report.model_dump_json(indent=1) + "\n")
        with os_errors_explained(self.results / MANIFEST):
            _index(self.results, self.path.relative_to(self.results) / FILE, report, running)


@contextmanager
def os_errors_explained(path: Path) -> Iterator[None]:
    """Say which file cannot be written, and why."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        remedy = "make room, or write --results DIRECTORY on another disk" if full else "write --results DIRECTORY"
        raise LabError(f"{path} cannot be written: {error.strerror}; {remedy}") from None


def manifest(results: Path) -> list[dict[str, Any]]:
    """The runs of a results directory, the oldest first; none where there is no index.

    The status of one that is under way is `running`; the report of one whose process is gone stays `partial`. One whose
    directory somebody has removed is left out.
    """
    return [_as_it_is(line) for line in _lines(results) if (results / str(line.get("path"))).is_file()]


def _lines(results: Path) -> list[dict[str, Any]]:
    path = results / MANIFEST
    try:
        runs = json.loads(path.read_text(encoding="utf-8"))["runs"]
        return sorted((dict(run) for run in runs), key=lambda run: str(run["timestamp"]))
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LabError(f"{path} cannot be read: {error}; remove it, and later runs are indexed again") from None


def remove(results: Path, report: Path) -> None:
    """Remove a run's directory, and its line in the index.

    Args:
        results: the directory of all runs.

    Raises:
        LabError: the run is under way, is not in that directory, or cannot be removed.
    """
    folder = report.resolve().parent
    # Each experiment has a directory there, and each of its runs one in that.
    if folder.parent.parent != results.resolve():
        raise LabError(f"{report} is no run in {results}; remove it by hand")
    if any(run["run_id"] == folder.name and run["status"] == RUNNING for run in manifest(results)):
        raise LabError(f"run {folder.name} is under way; end it first, by Ctrl-C where it runs")
    with os_errors_explained(folder), (results / _LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        runs = [run for run in _lines(results) if run["run_id"] != folder.name]
        files.write(results / MANIFEST, json.dumps({"runs": runs}, indent=1) + "\n")
        shutil.rmtree(folder)


def _as_it_is(line: Mapping[str, Any]) -> dict[str, Any]:
    run = dict(line)
    if lifetime.runs(run.pop(_PROCESS, "")):
        run["status"] = RUNNING
    return run


def _index(results: Path, path: Path, report: Report, running: bool) -> None:
    """Add a run's line to the index, or update it; several runs may do so at once."""
    metadata = report.metadata
    line = {
        "timestamp": metadata.timestamp,
        "path": str(path),
        "commit": metadata.kumulus_commit,
        "run_id": metadata.run_id,
        **({"label": metadata.label} if metadata.label else {}),
        "experiment": metadata.experiment,
        "stack": metadata.stack,
        "scheduler": " ".join(filter(None, (metadata.scheduler.name, metadata.scheduler.config))),
        "status": report.results.status,
        **({_PROCESS: lifetime.own()} if running else {}),
    }
    with (results / _LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        runs = [run for run in _lines(results) if run.get("path") != line["path"]]
        files.write(results / MANIFEST, json.dumps({"runs": [*runs, line]}, indent=1) + "\n")


def report_at(path: Path) -> Report:
    """The report in a file."""
    try:
        return report_of(path.read_bytes(), str(path))
    except OSError as error:
        raise LabError(f"{path} cannot be read: {error.strerror}") from None


def find(run: str, results: Path) -> Path:
    """The report.json of a run, named by its label, id, the beginning of its id, `latest`, its directory or its file.

    `latest` is the latest one that has ended, and so is that of several with one label.
    """
    runs = manifest(results)
    called = [each for each in runs if each.get("label") == run and each["status"] != RUNNING]
    if called:
        return results / str(called[-1]["path"])
    path = Path(run)
    if path.is_dir() and (path / FILE).is_file():
        return path / FILE
    if path.is_file():
        return path
    if run == "latest" and runs:
        ended = [each for each in runs if each["status"] != RUNNING]
        if not ended:
            raise LabError(f"run {runs[-1]['run_id']} is the only one, and under way; wait for its end")
        return results / str(ended[-1]["path"])
    matching = [each for each in runs if str(each["run_id"]).startswith(run)]
    if len(matching) == 1:
        return results / str(matching[0]["path"])
    if matching:
        ids = ", ".join(str(each["run_id"]) for each in matching[:5])
        raise LabError(f"several runs begin with {run}: {ids}; write more of it")
    near = nearest(run, [str(name) for each in runs for name in (each.get("label"), each["run_id"]) if name])
    hint = f"did you mean {' or '.join(near)}?" if near else "`kumulus experiment list` shows the runs"
    raise LabError(f"there is no run {run} in {results}; {hint}")
