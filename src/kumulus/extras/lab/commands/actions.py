"""What `kumulus experiment` does with files and with runs that there are, and `sweep`: every combination of a file."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING

from kumulus.cli import project, stack_file
from kumulus.cli.errors import UserError
from kumulus.cli.which import chosen, every
from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.report import files as of_runs
from kumulus.extras.lab.report import history as all_runs
from kumulus.extras.lab.report.files import find, manifest, os_errors_explained, report_at
from kumulus.host import files
from kumulus.model.errors import SpecError
from kumulus.model.words import aligned, counted

if TYPE_CHECKING:
    from kumulus.stackfile.load import LoadedCluster

_COLUMNS = {
    "run_id": "RUN",
    "label": "LABEL",
    "experiment": "EXPERIMENT",
    "stack": "STACK",
    "scheduler": "SCHEDULER",
    "status": "STATUS",
    "timestamp": "WHEN",
}


def check(args: argparse.Namespace) -> int:
    """Report the mistakes in files; 1 if there are any."""
    wrong = 0
    for file in args.files:
        try:
            what, note = _checked(file, args)
            print(f"{file}: {what}; no mistakes", *filter(None, [note]), sep="\n  ")
        except (LabError, SpecError) as error:
            print(f"error: {error}", file=sys.stderr)
            wrong += 1
        except UserError as error:
            print(f"error: {file}: {error}", file=sys.stderr)
            wrong += 1
    return 1 if wrong else 0


def _checked(file: Path, args: argparse.Namespace) -> tuple[str, str]:
    """What a file is, and what a run of it would note; a sweep's is known by its matrix."""
    from kumulus.extras.lab.file.load import load, overridden
    from kumulus.extras.lab.file.model import ExperimentSpec
    from kumulus.stackfile.location import read_text
    from kumulus.stackfile.yamltext import read_yaml

    raw = read_yaml(read_text(str(file), Path(), "")[1], str(file))
    if isinstance(raw, Mapping) and "matrix" in raw:
        if args.scheduler:
            raise UserError("--scheduler is for experiments, and this is a sweep; leave it out")
        from kumulus.extras.lab.sweep import cells, page
        from kumulus.extras.lab.sweep.file import load as load_sweep

        sweep = load_sweep(file)
        runs, few = counted(len(cells.cells_of(sweep, file.resolve().parent)), "run"), page.too_few(sweep)
        return f"{sweep.name}: {runs}{f' ({few})' if few else ''}", ""
    loaded = load(file)
    if args.scheduler:
        asked = {"name": "x", "workloads": [{"name": "x"}], "scheduler": {"name": args.scheduler}}
        scheduler = ExperimentSpec.checked(asked, "the command line").scheduler
        changed = loaded.experiment.model_copy(update={"scheduler": scheduler})
        loaded = overridden(loaded, changed, "the command line")
    experiment = loaded.experiment
    if experiment.stack and project.found() and not any(each.kubeconfig.exists() for each in every(experiment.stack)):
        project.require_stack(experiment.stack)
    note = ""
    if (stack := _stack_of(experiment.stack, args)) is not None and stack.spec.runtime_descriptor.local:
        from kumulus.extras.lab.run.planning import foreseen

        autoscaled = "autoscaler" in stack.spec.sections_of_extras()
        wrong, note = foreseen(loaded, stack.pools, autoscaled=autoscaled)
        if wrong:
            lines = indent("\n".join(wrong), "  ")
            raise UserError(f"on the stack {args.stack or experiment.stack}\n{lines}")
    jobs = sum(len(loaded.traces.get(each.name, ())) or each.jobs for each in experiment.workloads)
    return f"{experiment.name}: {counted(len(experiment.workloads), 'workload')}, {counted(jobs, 'job')}", note


def _stack_of(named: str, args: argparse.Namespace) -> LoadedCluster | None:
    """The stack that a file is checked for: the command's, or the file's own as far as its project describes it."""
    if args.stack:
        one, whole = chosen(args.stack, args.cluster).cluster, stack_file.load(args.stack)
        # The nodes of a federation are its workers'.
        return None if whole.joined and not args.cluster else whole.clusters[one]
    if not named or not project.found() or named not in project.current().stacks():
        return None
    found = stack_file.described(named)
    return found.only if found else None


def imported(args: argparse.Namespace) -> int:
    """Write benchmarks of another project as experiments; says of each what could not be expressed."""
    from kumulus.extras.lab.imports import clusterloader, kueue, scheduler_perf

    if args.format != "scheduler_perf" and (args.case or args.workload):
        raise LabError("--case and --workload are of scheduler_perf\n  Leave them out")
    try:
        if args.format == "scheduler_perf":
            found = scheduler_perf.read(args.file, args.case, args.workload)
        else:
            found = kueue.read(args.file) if args.format == "kueue" else clusterloader.read(args.file)
    except (KeyError, TypeError, AttributeError) as error:
        raise LabError(f"{args.file} is not as a file of {args.format} is written: {error!r}") from None
    left = []
    for each in found:
        if not each.workloads:
            left.append(f"not written: {each.name}: {'; '.join(each.missing)}")
            continue
        with os_errors_explained(args.into):
            first, *others = each.written(args.into)
        print(f"wrote {first}, and {counted(len(others), 'file')} for it")
        for line in each.missing:
            print(f"  not expressed: {line}")
    print("\n".join(left), end="\n" if left else "")
    return 1 if len(left) == len(found) else 0


def baseline(args: argparse.Namespace) -> int:
    """Write what later runs are compared with: a run's measures and circumstances, small enough to be committed."""
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
    """List the runs, or those on a stack's cluster."""
    every_run = manifest(args.results)
    runs = [run for run in every_run if not args.stack or run.get("stack") == args.stack]
    if args.json:
        print(json.dumps(runs, indent=2))
        return 0
    if not runs:
        others = sorted({str(run["stack"]) for run in every_run if run.get("stack")})
        there = f"; there are runs of {', '.join(others)}" if args.stack and others else ""
        print(f"no runs{f' of {args.stack}' if args.stack else ''} in {args.results}{there}")
        return 0
    stacks = {run.get("stack") for run in runs}
    without = {"label": not any(run.get("label") for run in runs), "stack": len(stacks) < 2}
    columns = [column for column in _COLUMNS if not without.get(column)]
    rows = [[_COLUMNS[column] for column in columns]]
    print(aligned([*rows, *([str(run.get(column) or "-") for column in columns] for run in runs)]))
    return 0


def remove(args: argparse.Namespace) -> int:
    """Remove runs."""
    for path in [find(run, args.results) for run in args.runs]:
        of_runs.remove(args.results, path)
        print(f"removed {path.parent}")
    return 0


def annotate(args: argparse.Namespace) -> int:
    """Report a run to GitHub; 1 if it missed a threshold that is an error, or did not finish."""
    from kumulus.extras.lab.report import github

    path = find(args.run, args.results)
    report = report_at(path)
    source = path.parent / "inputs" / "experiment.yaml"
    lines = github.lines_of(source.read_text(encoding="utf-8")) if source.is_file() else {}
    for line in github.commands(report, args.file, lines, args.level):
        print(line)
    github.published(github.summary(report), github.outputs(report, path.parent))
    missed_only = report.results.status == "failure" and not report.results.error
    return 0 if report.results.status == "success" or (missed_only and args.level == "warning") else 1


def sweep(args: argparse.Namespace) -> int:
    """Run a sweep; 1 if a run failed, was cut off, or missed a threshold."""
    from kumulus.extras.lab.sweep import page
    from kumulus.extras.lab.sweep import sweep as whole
    from kumulus.extras.lab.sweep.engines import engine
    from kumulus.extras.lab.sweep.file import load, words

    if args.jobs < 0:
        raise UserError(f"--jobs is {args.jobs}; write a number above 0")
    described = load(args.file)

    def say(line: str) -> None:
        if not args.quiet:
            print(line, file=sys.stderr, flush=True)

    options = whole.SweepOptions(
        directory=args.results / "sweeps" / described.name,
        engine=engine(args.engine),
        jobs=args.jobs,
        # The command as it was called, but with an absolute path: runs start in their cluster's project.
        kumulus=(sys.executable, str(Path(sys.argv[0]).absolute())),
        say=say,
    )
    done = whole.run(described, args.file.resolve().parent, options)
    print("\n".join(page.lines(described, done.found)))
    for file in done.files:
        print(f"wrote {file}")
    failed = [result for result in done.results if not result.complete]
    if failed:
        first = failed[0]
        print(f"{counted(len(failed), 'run')} failed, {words(first.values)} first: {first.error}", file=sys.stderr)
    missed = [result for result in done.results if result.status == "failure"]
    if missed:
        of = f"{counted(len(missed), 'run')} of {len(done.results):,}"
        print(f"{of} missed a threshold, {words(missed[0].values)} first", file=sys.stderr)
    return 1 if failed or missed else 0
