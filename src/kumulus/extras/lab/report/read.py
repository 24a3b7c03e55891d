"""Read reports, by path or run id."""

from __future__ import annotations

from pathlib import Path

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.report.files import RUNNING, manifest
from kumulus.extras.lab.report.model import FILE, Report, report_of
from kumulus.model.names import nearest


def report_at(path: Path) -> Report:
    """The report in a file."""
    try:
        return report_of(path.read_bytes(), str(path))
    except OSError as error:
        raise LabError(f"{path} cannot be read: {error.strerror}") from None


def find(run: str, results: Path) -> Path:
    """The report.json of a run, named by its id, the beginning of its id, `latest`, its directory or its file.

    `latest` is the latest one that has ended.
    """
    path = Path(run)
    if path.is_dir() and (path / FILE).is_file():
        return path / FILE
    if path.is_file():
        return path
    runs = manifest(results)
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
    near = nearest(run, [str(each["run_id"]) for each in runs])
    hint = f"did you mean {' or '.join(near)}?" if near else "`kumulus experiment list` shows the runs"
    raise LabError(f"there is no run {run} in {results}; {hint}")
