"""`kumulus experiment run`: an experiment on a cluster."""

import argparse
import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from kumulus.cli import cluster, project, stack_file, which
from kumulus.cli.errors import UserError
from kumulus.extras.federation.section import Federated
from kumulus.extras.lab import running
from kumulus.extras.lab.federation.members import RunningFederation, Worker
from kumulus.extras.lab.file.load import LoadedExperiment, load, overridden, with_prices
from kumulus.extras.lab.file.model import ExperimentSpec
from kumulus.extras.lab.report import compare as comparison
from kumulus.extras.lab.report import junit, text
from kumulus.extras.lab.report.making import delayed
from kumulus.extras.lab.report.model import Report
from kumulus.extras.lab.run.bench import RunOptions
from kumulus.extras.lab.run.progress import RunProgress
from kumulus.host import interrupts
from kumulus.kube import ApiError, KubeconfigError, Unreachable
from kumulus.nodes.catalog.prices import Prices, catalog
from kumulus.runtimes import directories


def run(args: argparse.Namespace) -> int:
    """Run an experiment; see the command's help."""
    for name in ("seeds", "jobs", "json"):
        if getattr(args, name):
            raise UserError(f"--{name} is for runs without a cluster; write --offline")
    loaded = overridden_by(load(_named(args.file)), args)
    return on_cluster(args, loaded, RunProgress(sys.stderr, args.quiet), _run)


def _named(file: Path) -> Path:
    """The experiment's file, also where only the name of one in the project's folder is given."""
    here = project.found()
    there = here.root / "experiments" / f"{file}.yaml" if here else file
    return there if not file.suffix and not file.exists() and there.is_file() else file


def on_cluster(
    args: argparse.Namespace,
    loaded: LoadedExperiment,
    progress: RunProgress,
    do: Callable[[LoadedExperiment, RunOptions], Awaitable[int]],
) -> int:
    """Do something with an experiment on the cluster that is meant; returns the exit code.

    Args:
        do: it; takes the experiment with the prices of the place, and how a run is made there, which Ctrl-C ends.
    """
    found = _cluster(args, loaded.experiment)
    kubeconfig = found.require_up() if found else args.kubeconfig
    federation = of_hub(found, kubeconfig) if found else None
    priced, prices = _priced(loaded, args)

    async def done() -> int:
        stop = interrupts.stop_event(
            progress.say,
            "ending: the report has what was measured so far, and the cluster is put as it was (Ctrl-C again: at once)",
            "ended at once: the next command on this cluster puts it back as it was",
        )
        options = RunOptions(
            kubeconfig,
            stack=found.label if found else args.stack or kubeconfig.stem,
            results=args.results,
            on_sample=progress.show,
            say=progress.say,
            stop=stop,
            commit=_commit(),
            prices=prices,
            snapshots=found.snapshots if found else None,
            federation=federation,
            label=getattr(args, "label", None) or "",
        )
        return await do(priced, options)

    try:
        return asyncio.run(done())
    except (ApiError, KubeconfigError, Unreachable) as error:
        hint = f"\n  {cluster.how_to_start(found.stack)}" if found else ""
        more = filter(None, (directories.no_room(kubeconfig.parent), delayed(error)))
        raise UserError(f"{error}{hint}" + "".join(f"\n  {line}" for line in more)) from None


async def _run(loaded: LoadedExperiment, options: RunOptions) -> int:
    def conclude(report: Report, directory: Path) -> None:
        options.say("")
        with suppress(OSError):
            print("\n".join([*text.lines(report), *_unlike(loaded, report), f"report: {directory}"]), flush=True)
        junit.write_forms(report, directory)

    report, _ = await running.run(loaded, replace(options, on_report=conclude))
    return 0 if report.results.status == "success" else 1


def _unlike(loaded: LoadedExperiment, report: Report) -> Iterator[str]:
    if loaded.baseline is not None:
        yield from (f"baseline: {line}" for line in comparison.unfair([loaded.baseline, report]))


def overridden_by(loaded: LoadedExperiment, args: argparse.Namespace) -> LoadedExperiment:
    """The experiment with the command line's overrides, checked as the file is."""
    overrides: dict[str, object] = {
        name: value for name in ("repetitions", "seed") if (value := getattr(args, name)) is not None
    }
    files = {"config": args.scheduler_config, "binary": args.scheduler_binary}
    # Paths in a file are relative to the file, those on the command line to the working directory.
    chosen = {key: str(Path(file).absolute()) for key, file in files.items() if file}
    if args.policy:
        overrides["policy"] = str(Path(args.policy).absolute()) if args.policy.endswith(".py") else args.policy
    if args.why:
        overrides["why"] = True
    if args.ties:
        overrides["policyTies"] = args.ties
    if args.scheduler or chosen:
        overrides["scheduler"] = {"name": args.scheduler or loaded.experiment.scheduler.name, **chosen}
    if not overrides:
        return loaded
    made = ExperimentSpec.checked({"name": "x", "workloads": [{"name": "x"}], **overrides}, "the command line")
    wanted = loaded.experiment.model_copy(update={key: getattr(made, key) for key in overrides})
    return overridden(loaded, wanted, "the command line")


def _cluster(args: argparse.Namespace, experiment: ExperimentSpec) -> which.StackCluster | None:
    """The stack's cluster that is meant; None for one that is known by its kubeconfig alone."""
    if args.kubeconfig is not None:
        return None
    stack = args.stack or experiment.stack
    if not stack:
        raise UserError("the file names no stack; write -s STACK, or --kubeconfig FILE for any cluster")
    return which.chosen(stack, args.cluster)


def _priced(loaded: LoadedExperiment, args: argparse.Namespace) -> tuple[LoadedExperiment, Prices]:
    """Machine prices: the command's file, else the stack's, else the catalog; a file is kept with the run's inputs."""
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


def of_hub(found: which.StackCluster, kubeconfig: Path) -> RunningFederation | None:
    """The federation whose hub a cluster is; None if it is not a hub."""
    # Only a cluster in a stack of several can be a hub.
    if not found.cluster:
        return None
    stack = stack_file.described(found.stack)
    federated = stack.joined.get("federation") if stack else None
    if not stack or not isinstance(federated, Federated) or federated.hub != found.cluster:
        return None
    there = {each.cluster: each for each in which.every(found.stack)}
    asked = federated.asked
    workers = tuple(Worker(name, there[name].kubeconfig) for name in federated.workers)
    name = stack.clusters[found.cluster].cluster_name
    return RunningFederation(found.cluster, kubeconfig, name, workers, asked.queue, asked.kueueNamespace)
