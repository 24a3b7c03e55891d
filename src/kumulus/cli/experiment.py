"""Experiments: measure and report what a scheduler does with a workload at scale.

    kumulus experiment run experiments/kemu-no-affinity.yaml -s gcp-large
    kumulus experiment run e.yaml --offline --seeds 42-51 --ties name --json
    kumulus experiment sweep experiments/sweep.yaml
    kumulus experiment compare latest 20261121-1504
    kumulus experiment show latest
    kumulus experiment why latest training-0-x7k2p
    kumulus experiment show RUN RUN2 --html both.html
    kumulus experiment history
    kumulus experiment list
    kumulus experiment check experiments/*.yaml

A run creates the file's workloads in the stack's cluster, measures until all is scheduled, writes a directory with
report.json, plots and JUnit XML, and leaves the cluster as it was. The exit code is 0 if every threshold was reached,
otherwise 1. docs/experiments.md describes the file and the measurements.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from kumulus.cli import project, which
from kumulus.cli.errors import UserError
from kumulus.cli.ui import port
from kumulus.schedulers import NAMES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    commands = parser.add_subparsers(
        dest="action", metavar="run|sweep|compare|show|why|history|list|check|annotate", required=True
    )
    run_it = commands.add_parser("run", help="run an experiment")
    run_it.add_argument("file", type=Path, help="the experiment file")
    run_it.add_argument("-s", "--stack", help="which stack's cluster (default: the file's)")
    which.add_option(run_it)
    run_it.add_argument("--kubeconfig", type=Path, help="another cluster's kubeconfig, instead of a stack")
    run_it.add_argument("--repetitions", type=int, metavar="N", help="instead of the file's")
    run_it.add_argument("--seed", type=int, metavar="N", help="instead of the file's")
    run_it.add_argument("--scheduler", metavar="NAME", help=f"instead of the file's: default, {', '.join(NAMES)}")
    run_it.add_argument("--scheduler-config", metavar="FILE", help="its configuration")
    run_it.add_argument("--scheduler-binary", metavar="FILE", help="a program of your own in its place")
    run_it.add_argument("--prices", type=Path, metavar="FILE", help="prices of your own (default: the stack's)")
    run_it.add_argument("-q", "--quiet", action="store_true", help="show nothing but the outcome")
    run_it.add_argument(
        "--offline", action="store_true", help="place the trace by the file's policy, without a cluster"
    )
    run_it.add_argument("--seeds", metavar="FROM-TO", help="offline: one run for each, as 42-51 or 1,2,5")
    run_it.add_argument(
        "--ties", choices=("name", "random"), help="which of the nodes that a policy finds equally good"
    )
    run_it.add_argument("--policy", metavar="NAME", help="instead of the file's: FGD, BestFit … or a Python file")
    run_it.add_argument(
        "--jobs", type=int, metavar="N", help="offline: so many runs at once (default: one for each CPU)"
    )
    run_it.add_argument("--json", action="store_true", help="offline: for programs")
    sweep = commands.add_parser("sweep", help="run an experiment for every combination that a file lists, each once")
    sweep.add_argument("file", type=Path, help="the sweep file")
    sweep.add_argument(
        "--engine",
        default="local",
        metavar="WHERE",
        help="local (default), dask://HOST:PORT or ray://HOST:PORT; without HOST:PORT one is started here",
    )
    sweep.add_argument("--jobs", type=int, default=0, metavar="N", help="so many at once (default: as many as fit)")
    sweep.add_argument("-q", "--quiet", action="store_true", help="show nothing but the outcome")
    check = commands.add_parser("check", help="report mistakes in experiment files without running them")
    check.add_argument("files", type=Path, nargs="+", metavar="FILE", help="experiment files")
    listed = commands.add_parser("list", help="list the runs")
    compare = commands.add_parser("compare", help="compare runs side by side")
    compare.add_argument("runs", nargs="+", metavar="RUN", help="a run's id, the beginning of it, a path, or latest")
    compare.add_argument("--all", action="store_true", help="every measure, not only the main ones")
    compare.add_argument("--page", type=Path, metavar="FILE", help="write an HTML page with them as well")
    compare.add_argument(
        "--pictures",
        type=Path,
        metavar="DIRECTORY",
        help="draw each measure with its spread over seeds, a file for each",
    )
    show = commands.add_parser("show", help="a run, or two side by side, on a time line: what was where, and when")
    show.add_argument("runs", nargs="+", metavar="RUN", help="as compare has it, or a history-1.json.gz")
    show.add_argument("--repetition", type=int, default=1, metavar="N", help="which one of a run (default: the first)")
    show.add_argument("--html", type=Path, metavar="FILE", help="write one page that needs nothing but itself")
    show.add_argument("--port", type=port, default=0, help="where to listen (default: any port that is free)")
    why = commands.add_parser("why", help="why a pod went to its node, by kube-scheduler's own scores")
    why.add_argument("run", metavar="RUN", help="as compare has it; a run of a file with why: true")
    why.add_argument("pod", nargs="?", metavar="POD", help="a pod or the beginning of its name (default: all in sums)")
    why.add_argument("--repetition", type=int, metavar="N", help="which one of a run (default: any)")
    why.add_argument("--json", action="store_true", help="for programs")
    history = commands.add_parser("history", help="write a page with all runs, to search, filter and see trends")
    annotate = commands.add_parser("annotate", help="show a run's missed thresholds on GitHub, from within a workflow")
    annotate.add_argument("run", nargs="?", default="latest", help="as compare has it (default: latest)")
    annotate.add_argument("--file", default="", help="the experiment's file as the repository has it")
    annotate.add_argument("--level", choices=("error", "warning"), default="error", help="of a missed threshold")
    for each in (run_it, sweep, compare, show, why, history, listed, annotate):
        each.add_argument(
            "--results", type=Path, metavar="DIRECTORY", help="of all runs (default: .kumulus/experiments)"
        )


def run(args: argparse.Namespace) -> int:
    """Do it.

    Raises:
        UserError: what was asked for cannot be done.
    """
    from kumulus.cli import experiment_actions, experiment_offline, experiment_show, experiment_sweep, experiment_why
    from kumulus.journal.errors import JournalError
    from kumulus.lab.errors import LabError
    from kumulus.model.errors import SpecError

    actions: dict[str, Callable[[argparse.Namespace], int]] = {
        "run": experiment_offline.run if getattr(args, "offline", False) else experiment_actions.run,
        "sweep": experiment_sweep.run,
        "check": experiment_actions.check,
        "compare": experiment_actions.compare,
        "show": experiment_show.show,
        "why": experiment_why.why,
        "history": experiment_actions.history,
        "list": experiment_actions.show,
        "annotate": experiment_actions.annotate,
    }
    if getattr(args, "results", None) is None:
        args.results = project.home() / "experiments"
    try:
        return actions[args.action](args)
    except (JournalError, LabError, SpecError) as error:
        raise UserError(str(error)) from None
