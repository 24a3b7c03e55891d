"""What `kumulus experiment` does with files and runs that there are."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.load import load
from kumulus.extras.lab.report import files as of_runs
from kumulus.extras.lab.report import github
from kumulus.extras.lab.report import history as all_runs
from kumulus.extras.lab.report.files import manifest, os_errors_explained
from kumulus.extras.lab.report.read import find, report_at
from kumulus.host import files
from kumulus.model.errors import SpecError
from kumulus.model.words import aligned, counted
from kumulus.stackfile.location import read_text
from kumulus.stackfile.yamltext import read_yaml


def check(args: argparse.Namespace) -> int:
    """Report the mistakes in files; 1 if there are any."""
    wrong = 0
    for file in args.files:
        try:
            print(f"{file}: {_checked(file)}; no mistakes")
        except (LabError, SpecError) as error:
            print(f"error: {error}", file=sys.stderr)
            wrong += 1
    return 1 if wrong else 0


def _checked(file: Path) -> str:
    """What a file is; a sweep's is known by its matrix.

    Raises:
        LabError, SpecError: it has mistakes.
    """
    raw = read_yaml(read_text(str(file), Path(), "")[1], str(file))
    if isinstance(raw, Mapping) and "matrix" in raw:
        from kumulus.extras.lab.sweep import cells, page
        from kumulus.extras.lab.sweep.file import load as load_sweep

        sweep = load_sweep(file)
        runs, few = counted(len(cells.cells_of(sweep, file.resolve().parent)), "run"), page.too_few(sweep)
        return f"{sweep.name}: {runs}{f' ({few})' if few else ''}"
    loaded = load(file)
    experiment = loaded.experiment
    jobs = sum(len(loaded.traces.get(each.name, ())) or each.jobs for each in experiment.workloads)
    return f"{experiment.name}: {counted(len(experiment.workloads), 'workload')}, {counted(jobs, 'job')}"


def baseline(args: argparse.Namespace) -> int:
    """Write what later runs are compared with: a run's measures and circumstances, small enough to be committed.

    Raises:
        LabError: the run did not come to its end, or the file cannot be written.
    """
    report = report_at(find(args.run, args.results))
    if report.results.status == "partial":
        raise LabError(f"run {report.metadata.run_id} was cut off\n  Take one that came to its end")
    with os_errors_explained(args.file):
        files.write(args.file, report.lean().model_dump_json(indent=1) + "\n")
    print(f"wrote {args.file}, of {counted(len(report.results.tests), 'repetition')} of {report.metadata.run_id}")
    return 0


def history(args: argparse.Namespace) -> int:
    """Write the page of all runs."""
    path, unread = all_runs.write(args.results)
    for line in unread:
        print(f"left out: {line}", file=sys.stderr)
    print(f"wrote {path}")
    return 0


def show(args: argparse.Namespace) -> int:
    """List the runs."""
    if args.json:
        print(json.dumps(manifest(args.results), indent=2))
        return 0
    rows = [("RUN", "EXPERIMENT", "SCHEDULER", "STATUS", "WHEN")]
    rows += [
        (str(run["run_id"]), str(run["experiment"]), str(run["scheduler"]), str(run["status"]), str(run["timestamp"]))
        for run in manifest(args.results)
    ]
    if len(rows) == 1:
        print(f"no runs in {args.results}")
        return 0
    print(aligned(rows))
    return 0


def remove(args: argparse.Namespace) -> int:
    """Remove runs."""
    for path in [find(run, args.results) for run in args.runs]:
        of_runs.remove(args.results, path)
        print(f"removed {path.parent}")
    return 0


def annotate(args: argparse.Namespace) -> int:
    """Report a run to GitHub; 1 if it missed a threshold that is an error, or did not finish."""
    path = find(args.run, args.results)
    report = report_at(path)
    source = path.parent / "inputs" / "experiment.yaml"
    lines = github.lines_of(source.read_text(encoding="utf-8")) if source.is_file() else {}
    for line in github.commands(report, args.file, lines, args.level):
        print(line)
    github.published(github.summary(report), github.outputs(report, path.parent))
    missed_only = report.results.status == "failure" and not report.results.error
    return 0 if report.results.status == "success" or (missed_only and args.level == "warning") else 1
