"""Experiments: measure and report what a scheduler does with a workload at scale.

    kumulus experiment run experiments/kemu-no-affinity.yaml -s gcp-large
    kumulus experiment run e.yaml --label main
    kumulus experiment run e.yaml --offline --seeds 42-51 --ties name --json
    kumulus experiment sweep experiments/sweep.yaml
    kumulus experiment compare latest 20261121-1504
    kumulus experiment compare main mine --fail-if timeToSchedule.p99:+10%
    kumulus experiment baseline latest e.baseline.json
    kumulus experiment ab e.yaml --a main.yaml --b mine.yaml
    kumulus experiment show latest
    kumulus experiment why latest training-0-x7k2p
    kumulus experiment fragmentation latest
    kumulus experiment show RUN RUN2 --html both.html
    kumulus experiment history
    kumulus experiment list -s gcp-large
    kumulus experiment remove 20261121-1504
    kumulus experiment check experiments/*.yaml

A run creates the file's workloads in the stack's cluster, measures until all is scheduled, writes a directory with
report.json, plots and JUnit XML, and leaves the cluster as it was. The exit code is 0 if every threshold was reached,
otherwise 1. docs/experiments.md describes the file and the measurements.
"""

import argparse
from importlib import import_module
from pathlib import Path

from kumulus.cli import project, which
from kumulus.cli.errors import UserError
from kumulus.cli.registry import arguments, complete_by, port
from kumulus.extras.schedulers import NAMES

# The module and function of each action, of which only the one that is asked for is imported: all take a second of CPU.
_ACTIONS = {
    "run": ("run", "run"),
    "offline": ("offline", "run"),
    "sweep": ("actions", "sweep"),
    "ab": ("ab", "run"),
    "check": ("actions", "check"),
    "compare": ("compare", "run"),
    "baseline": ("actions", "baseline"),
    "show": ("show", "show"),
    "why": ("show", "why"),
    "fragmentation": ("show", "show_fragmentation"),
    "history": ("actions", "history"),
    "import": ("actions", "imported"),
    "list": ("actions", "show"),
    "remove": ("actions", "remove"),
    "annotate": ("actions", "annotate"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    commands = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    run_it = commands.add_parser("run", help="run an experiment")
    _running(run_it)
    sweep = commands.add_parser("sweep", help="run an experiment for every combination that a file lists, each once")
    _sweeping(sweep)
    ab = commands.add_parser("ab", help="run two ways of scheduling in turn until it is decided which one is better")
    _alternating(ab)
    check = commands.add_parser("check", help="report mistakes in experiment files without running them")
    check.add_argument("files", type=Path, nargs="+", metavar="FILE", help="experiment and sweep files")
    check.add_argument("-s", "--stack", help="the stack that experiments are to run on (default: the file's)")
    which.add_option(check)
    check.add_argument("--scheduler", metavar="NAME", help="instead of the files', as run has it")
    listed = commands.add_parser("list", help="list the runs")
    listed.add_argument("-s", "--stack", help="only those on a stack's cluster")
    listed.add_argument("--json", action="store_true", help="for programs")
    remove = commands.add_parser("remove", help="remove runs, with all that they have written")
    remove.add_argument("runs", nargs="+", metavar="RUN", help="as compare has it")
    compare = commands.add_parser("compare", help="compare runs side by side")
    _comparing(compare)
    show = commands.add_parser("show", help="a run, or two side by side, on a time line: what was where, and when")
    _showing(show)
    why = commands.add_parser("why", help="why a pod went to its node, by kube-scheduler's own scores")
    _explaining(why)
    fragmentation = commands.add_parser(
        "fragmentation", help="how much of the free GPUs a run's typical pods could not use, over time, from its report"
    )
    fragmentation.add_argument("run", metavar="RUN", help="as compare has it, or a history-1.json.gz")
    fragmentation.add_argument(
        "--repetition", type=int, default=1, metavar="N", help="which one of a run (default: the first)"
    )
    fragmentation.add_argument("--json", action="store_true", help="for programs, every moment")
    baseline = commands.add_parser("baseline", help="write a run as the baseline of an experiment, to be committed")
    baseline.add_argument("run", metavar="RUN", help="as compare has it")
    baseline.add_argument("file", type=Path, metavar="FILE", help="to write; the experiment's file names it")
    imported = commands.add_parser("import", help="write other projects' benchmarks as experiments, with their nodes")
    _importing(imported)
    history = commands.add_parser("history", help="write a page with all runs, to search, filter and see trends")
    annotate = commands.add_parser("annotate", help="show a run's missed thresholds on GitHub, from within a workflow")
    annotate.add_argument("run", nargs="?", default="latest", help="as compare has it (default: latest)")
    annotate.add_argument("--file", default="", help="the experiment's file as the repository has it")
    annotate.add_argument("--level", choices=("error", "warning"), default="error", help="of a missed threshold")
    for each in (run_it, sweep, ab, compare, baseline, show, why, fragmentation, history, listed, remove, annotate):
        each.add_argument(
            "--results", type=Path, metavar="DIRECTORY", help="of all runs (default: .kumulus/experiments)"
        )

    for each in (compare, baseline, show, why, fragmentation, remove, annotate):
        for action in arguments(each):
            if action.dest in ("run", "runs"):
                complete_by(action, _runs)


def _runs(parsed_args: argparse.Namespace, **_: object) -> list[str]:
    """The runs, for the shell's completion: as `list` has them, with latest."""
    from kumulus.extras.lab.errors import LabError
    from kumulus.extras.lab.report.files import manifest

    try:
        listed = manifest(parsed_args.results or project.home() / "experiments")
    except LabError:
        return []
    return ["latest", *(str(each[key]) for key in ("label", "run_id") for each in listed if each.get(key))]


def _label(text: str) -> str:
    """What a run is called, which no other name of a run may be."""
    if not text or text == "latest" or "/" in text:
        raise argparse.ArgumentTypeError(f"{text!r} is no name of a run; write one such as main")
    return text


def _running(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, help="the experiment file, or the name of one in the project's experiments/")
    _on_cluster(parser)
    parser.add_argument("--repetitions", type=int, metavar="N", help="instead of the file's")
    parser.add_argument("--seed", type=int, metavar="N", help="instead of the file's")
    parser.add_argument("--scheduler", metavar="NAME", help=f"instead of the file's: default, {', '.join(NAMES)}")
    parser.add_argument("--scheduler-config", metavar="FILE", help="its configuration")
    parser.add_argument("--scheduler-binary", metavar="FILE", help="a program of your own in its place")
    parser.add_argument("--why", action="store_true", help="as if the file said why: true")
    parser.add_argument("--label", type=_label, metavar="NAME", help="what to call the run, such as main")
    parser.add_argument("--prices", type=Path, metavar="FILE", help="prices of your own (default: the stack's)")
    parser.add_argument("-q", "--quiet", action="store_true", help="show nothing but the outcome")
    parser.add_argument(
        "--offline", action="store_true", help="place the trace by the file's policy, without a cluster"
    )
    parser.add_argument("--seeds", metavar="FROM-TO", help="offline: one run for each, as 42-51 or 1,2,5")
    parser.add_argument(
        "--ties", choices=("name", "random"), help="offline: which node if a policy finds several equally good"
    )
    parser.add_argument("--policy", metavar="NAME", help="instead of the file's: FGD, BestFit … or a Python file")
    parser.add_argument(
        "--jobs", type=int, metavar="N", help="offline: how many runs at once (default: one for each CPU)"
    )
    parser.add_argument("--json", action="store_true", help="offline: for programs")


def _on_cluster(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-s", "--stack", help="which stack's cluster (default: the file's)")
    which.add_option(parser)
    parser.add_argument("--kubeconfig", type=Path, help="another cluster's kubeconfig, instead of a stack")


def _sweeping(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, help="the sweep file")
    parser.add_argument(
        "--engine",
        default="local",
        metavar="WHERE",
        help="local (default), or a cluster of yours: dask://HOST:PORT or ray://HOST:PORT",
    )
    parser.add_argument("--jobs", type=int, default=0, metavar="N", help="how many at once (default: as many as fit)")
    parser.add_argument("-q", "--quiet", action="store_true", help="show nothing but the outcome")


def _alternating(parser: argparse.ArgumentParser) -> None:
    what = "a scheduler's name, its configuration (.yaml), a policy (.py), or a program in its place"
    parser.add_argument("file", type=Path, help="the experiment file")
    parser.add_argument("--a", metavar="WHAT", help=f"the baseline: {what} (default: as the file has it)")
    parser.add_argument("--b", metavar="WHAT", required=True, help="what is compared with it, likewise")
    parser.add_argument(
        "--until", default="decided", metavar="WHEN", help="decided (default), or a number of pairs to run in any case"
    )
    parser.add_argument(
        "--at-most", type=int, default=100, metavar="N", help="pairs after which it ends undecided (default: 100)"
    )
    parser.add_argument(
        "--measure",
        action="append",
        metavar="NAME",
        help="what to compare (default: timeToSchedule.p99); can be given several times",
    )
    parser.add_argument(
        "--margin", default="10%", metavar="PERCENT", help="smaller differences do not count (default: 10%%)"
    )
    _on_cluster(parser)
    parser.add_argument("--prices", type=Path, metavar="FILE", help="prices of your own (default: the stack's)")
    parser.add_argument("--github", action="store_true", help="show the verdict on GitHub, from within a workflow")
    parser.add_argument("-q", "--quiet", action="store_true", help="show nothing but the outcome")


def _comparing(parser: argparse.ArgumentParser) -> None:
    name = "a run's label, its id or the beginning of it, a path, or latest"
    parser.add_argument("runs", nargs="+", metavar="RUN", help=f"{name}; A+B+C takes runs as repetitions of one")
    parser.add_argument("--all", action="store_true", help="every measure, not only the main ones")
    parser.add_argument("--json", action="store_true", help="for programs, every measure of every repetition")
    parser.add_argument(
        "--fail-if",
        action="append",
        metavar="LIMIT",
        help="of two runs: end with 1 if a measure of the second is further above the first's (+) or below it (-) than "
        "this, as timeToSchedule.p99:+10%% or fragmentation.end:+1pt; can be given several times",
    )
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write the limits of --fail-if as JUnit XML")
    parser.add_argument("--github", action="store_true", help="show them on GitHub, from within a workflow")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write an HTML page with them as well")
    parser.add_argument(
        "--pictures",
        type=Path,
        metavar="DIRECTORY",
        help="draw each measure with its spread over seeds, a file for each",
    )


def _showing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help="as compare has it, or a history-1.json.gz")
    parser.add_argument(
        "--repetition", type=int, default=1, metavar="N", help="which one of a run (default: the first)"
    )
    parser.add_argument("--html", type=Path, metavar="FILE", help="write one page that needs nothing but itself")
    parser.add_argument("--picture", type=Path, metavar="FILE.png", help="draw one moment of it (or .svg, .pdf)")
    parser.add_argument("--at", metavar="TIME", help="which one, such as 100s (default: when the most pods had a node)")
    parser.add_argument("--port", type=port, default=0, help="where to listen (default: any port that is free)")


def _explaining(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="as compare has it; a run of a file with why: true")
    parser.add_argument(
        "pod", nargs="?", metavar="POD", help="a pod or the beginning of its name (default: all in sums)"
    )
    parser.add_argument(
        "--repetition", type=int, metavar="N", help="which one of a run (default: any; without why: true, the first)"
    )
    parser.add_argument("--json", action="store_true", help="for programs")


def _importing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("format", choices=("scheduler_perf", "kueue", "clusterloader2"), help="whose benchmark it is")
    parser.add_argument("file", type=Path, help="performance-config.yaml, generator.yaml, or a test's file")
    parser.add_argument("--case", default="", metavar="NAME", help="of scheduler_perf: this case (default: all)")
    parser.add_argument("--workload", default="", metavar="NAME", help="of scheduler_perf: this workload of it")
    parser.add_argument(
        "--into", type=Path, default=Path("imported"), metavar="DIRECTORY", help="where to write (default: imported)"
    )


def run(args: argparse.Namespace) -> int:
    """Run the action."""
    from kumulus.extras.journal.errors import JournalError
    from kumulus.extras.lab.errors import LabError
    from kumulus.model.errors import SpecError

    module, function = _ACTIONS["offline" if getattr(args, "offline", False) else args.action]
    action = getattr(import_module(f"kumulus.extras.lab.commands.{module}"), function)
    if getattr(args, "results", None) is None:
        args.results = project.home() / "experiments"
    try:
        code: int = action(args)
        return code
    except (JournalError, LabError, SpecError) as error:
        raise UserError(str(error)) from None
