"""What `kumulus experiment` does."""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from kumulus.cli import cluster, interrupts, project, stack_file, which
from kumulus.cli.errors import UserError
from kumulus.extras.lab.commands import federations
from kumulus.extras.lab.federation.members import Federation
from kumulus.extras.lab.file.load import Loaded, load, overridden, with_prices
from kumulus.extras.lab.file.model import Experiment
from kumulus.extras.lab.report import beside, github, text
from kumulus.extras.lab.report import compare as comparison
from kumulus.extras.lab.report import history as all_runs
from kumulus.extras.lab.report.files import manifest, os_errors_explained
from kumulus.extras.lab.report.model import Report
from kumulus.extras.lab.report.read import find, report_at
from kumulus.extras.lab.run.options import Options
from kumulus.extras.lab.run.progress import Progress
from kumulus.extras.lab.run.run import Run
from kumulus.kube import ApiError, Client, KubeconfigError, Unreachable, load_kubeconfig
from kumulus.model.errors import SpecError
from kumulus.model.words import aligned, counted
from kumulus.nodes.catalog.prices import Prices, catalog
from kumulus.runtimes import directories

_PATIENCE = 10.0


def run(args: argparse.Namespace) -> int:
    """Run an experiment; see the command's help.

    Raises:
        UserError: an option is for runs without a cluster, no cluster is up, or it does not answer.
        SpecError: the file has mistakes.
        LabError: the experiment cannot be run.
    """
    for name in ("seeds", "jobs", "json"):
        if getattr(args, name):
            raise UserError(f"--{name} is for runs without a cluster; write --offline")
    loaded = _overridden(load(args.file), args)
    found = _cluster(args, loaded.experiment)
    kubeconfig = found.require_up() if found else args.kubeconfig
    federation = federations.of_hub(found, kubeconfig) if found else None
    loaded, prices = _priced(loaded, args)
    try:
        return asyncio.run(_run(loaded, found, kubeconfig, federation, prices, args))
    except (ApiError, KubeconfigError, Unreachable) as error:
        hint = f"\n  {cluster.restart(found.stack)}" if found else ""
        full = directories.no_room(kubeconfig.parent)
        raise UserError(f"{error}{hint}" + (f"\n  {full}" if full else "")) from None


def check(args: argparse.Namespace) -> int:
    """Report the mistakes in files; 1 if there are any."""
    wrong = 0
    for file in args.files:
        try:
            experiment = load(file).experiment
            jobs = sum(workload.jobs for workload in experiment.workloads)
            amounts = f"{counted(len(experiment.workloads), 'workload')}, {counted(jobs, 'job')}"
            print(f"{file}: {experiment.name}: {amounts}; no mistakes")
        except SpecError as error:
            print(f"error: {error}", file=sys.stderr)
            wrong += 1
    return 1 if wrong else 0


def compare(args: argparse.Namespace) -> int:
    """Show runs side by side."""
    files = [find(run, args.results) for run in args.runs]
    reports = [report_at(file) for file in files]
    print(aligned(comparison.table(reports, args.all)))
    for line in comparison.unfair(reports):
        print(f"unfair: {line}")
    if args.page is not None:
        all_runs.write_comparison(args.page, list(zip(files, reports, strict=True)))
        print(f"wrote {args.page}")
    if args.pictures is not None:
        # Drawing needs a library that is slow to load.
        from kumulus.extras.lab.report import by_demand, spreads

        drawn = [*spreads.write(reports, args.pictures), *by_demand.write(reports, args.pictures)]
        print(f"wrote {len(drawn)} pictures to {args.pictures}")
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


def annotate(args: argparse.Namespace) -> int:
    """Report a run to GitHub; 1 if it missed a threshold that is an error, or did not finish."""
    path = find(args.run, args.results)
    report = report_at(path)
    source = path.parent / "inputs" / "experiment.yaml"
    lines = github.lines_of(source.read_text(encoding="utf-8")) if source.is_file() else {}
    for line in github.commands(report, args.file, lines, args.level):
        print(line)
    for variable, content in (
        ("GITHUB_STEP_SUMMARY", github.summary(report)),
        ("GITHUB_OUTPUT", github.outputs(report, path.parent)),
    ):
        if target := os.environ.get(variable):
            with os_errors_explained(Path(target)), Path(target).open("a", encoding="utf-8") as file:
                file.write(content)
    missed_only = report.results.status == "failure" and not report.results.error
    return 0 if report.results.status == "success" or (missed_only and args.level == "warning") else 1


async def _run(
    loaded: Loaded,
    found: which.Which | None,
    kubeconfig: Path,
    federation: Federation | None,
    prices: Prices,
    args: argparse.Namespace,
) -> int:
    progress = Progress(sys.stderr, args.quiet)
    stop = interrupts.stop_event(
        progress.say,
        "ending: the partial report is written and the cluster put as it was (Ctrl-C again: at once)",
        "ended at once: the next command on this cluster puts it back as it was",
    )

    def conclude(report: Report, directory: Path) -> None:
        progress.say("")
        with suppress(OSError):
            print("\n".join([*text.lines(report), f"report: {directory}"]), flush=True)
        beside.write(report, directory)

    shown = (progress.show, conclude, progress.say)
    stack = found.label if found else args.stack or kubeconfig.stem
    snapshots = found.snapshots if found else None
    options = Options(kubeconfig, stack, args.results, _commit(), stop, *shown, prices, snapshots, federation)
    async with Client(load_kubeconfig(kubeconfig), patience=_PATIENCE) as client:
        report = await Run(client, loaded, options).run()
    return 0 if report.results.status == "success" else 1


def _overridden(loaded: Loaded, args: argparse.Namespace) -> Loaded:
    """The experiment with the command line's overrides, checked as the file is.

    Raises:
        SpecError: the command line has mistakes, or names files that cannot be read; lists all mistakes.
    """
    overrides: dict[str, object] = {
        name: value for name in ("repetitions", "seed") if (value := getattr(args, name)) is not None
    }
    files = {"config": args.scheduler_config, "binary": args.scheduler_binary}
    # Paths in a file are relative to the file, those on the command line to the working directory.
    chosen = {key: str(Path(file).absolute()) for key, file in files.items() if file}
    if args.policy:
        overrides["policy"] = str(Path(args.policy).absolute()) if args.policy.endswith(".py") else args.policy
    if args.ties:
        overrides["policyTies"] = args.ties
    if args.scheduler or chosen:
        overrides["scheduler"] = {"name": args.scheduler or loaded.experiment.scheduler.name, **chosen}
    if not overrides:
        return loaded
    made = Experiment.checked({"name": "x", "workloads": [{"name": "x"}], **overrides}, "the command line")
    wanted = loaded.experiment.model_copy(update={key: getattr(made, key) for key in overrides})
    return overridden(loaded, wanted, "the command line")


def _cluster(args: argparse.Namespace, experiment: Experiment) -> which.Which | None:
    """The stack's cluster that is meant; None for one that is known by its kubeconfig alone."""
    if args.kubeconfig is not None:
        return None
    stack = args.stack or experiment.stack
    if not stack:
        raise UserError("the file names no stack; write -s STACK, or --kubeconfig FILE for any cluster")
    return which.chosen(stack, args.cluster)


def _priced(loaded: Loaded, args: argparse.Namespace) -> tuple[Loaded, Prices]:
    """Machine prices: the command's file, else the stack's, else the catalog; a file is kept with the run's inputs.

    Raises:
        SpecError: the file has mistakes.
    """
    own = args.prices
    if own is None and args.kubeconfig is None:
        # A running stack whose file is gone can still be measured.
        with suppress(UserError):
            own = stack_file.prices(args.stack or loaded.experiment.stack)
    if own is None:
        return loaded, catalog()
    return with_prices(loaded, own)


def _commit() -> str:
    """The project's commit; empty if it is not a git checkout."""
    try:
        found = subprocess.run(
            ["git", "rev-parse", "--short=12", "HEAD"],
            cwd=project.home().parent,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:
        return ""
    return found.stdout.strip()
