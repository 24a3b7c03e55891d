"""`kumulus experiment run --offline`: a trace placed by a policy, without a cluster."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from kumulus.cli import stack_file, which
from kumulus.cli.errors import UserError
from kumulus.extras.lab.file.load import LoadedExperiment, load

if TYPE_CHECKING:
    from kumulus.extras.lab.offline.measuring import OfflineOutcome
    from kumulus.extras.lab.offline.placing import Ties
    from kumulus.stackfile.load import LoadedCluster

_SHOWN = (20, 40, 60, 80, 90, 95, 100, 110, 120, 130)
_MOST_SEEDS = 10_000


def run(args: argparse.Namespace) -> int:
    """Run an experiment without a cluster; see the command's help."""
    from kumulus.extras.lab.offline import experiment as offline

    _refused(args)
    loaded = load(args.file)
    if args.policy:
        # A path on the command line is relative to the working directory.
        named = str(Path(args.policy).absolute()) if args.policy.endswith(".py") else args.policy
        loaded = replace(loaded, experiment=loaded.experiment.model_copy(update={"policy": named}))
    seeds = _seeds(args, loaded)
    ties: Ties = args.ties or loaded.experiment.policyTies
    prepared = offline.study(loaded, _stack(args, loaded).pools, ties)
    outcomes = offline.run(prepared, seeds, args.jobs or 0)
    failures = [outcome for outcome in outcomes if outcome.failed]
    if failures:
        count = sum(outcome.failed for outcome in failures)
        print(f"the policy failed on {count:,} pods, which were not placed:\n{failures[0].failure}", file=sys.stderr)
    if args.json:
        print(json.dumps(_answer(loaded, ties, outcomes)))
    else:
        print("\n".join(_table(loaded, ties, outcomes)))
    return 0


def _answer(loaded: LoadedExperiment, ties: str, outcomes: list[OfflineOutcome]) -> dict[str, object]:
    return {
        "experiment": loaded.experiment.name,
        "policy": loaded.experiment.policy,
        "ties": ties,
        "seeds": [
            {
                "seed": outcome.seed,
                "pods": outcome.pods,
                "placed": outcome.placed,
                "failed": outcome.failed,
                **outcome.curves,
            }
            for outcome in outcomes
        ],
    }


def _table(loaded: LoadedExperiment, ties: str, outcomes: list[OfflineOutcome]) -> Iterator[str]:
    seeds = f"{len(outcomes)} seeds" if len(outcomes) != 1 else f"seed {outcomes[0].seed}"
    yield f"{loaded.experiment.name}: {loaded.experiment.policy}, ties by {ties}, {seeds}, mean ± standard deviation"
    yield f"{'ARRIVED':>8}  {'ALLOCATED':>16}  {'FRAGMENTED OF ALL':>18}  {'FRAGMENTED OF IDLE':>18}"
    for percent in _SHOWN:
        cells = []
        for measure in outcomes[0].curves:
            values = [value for outcome in outcomes if (value := outcome.curves[measure].get(str(percent))) is not None]
            if values:
                spread = f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else ""
                cells.append(f"{statistics.mean(values):.2f}{spread} %")
        if cells:
            yield f"{percent:>6} %  {cells[0]:>16}  {cells[1]:>18}  {cells[2]:>18}"


def _refused(args: argparse.Namespace) -> None:
    for name in (
        "kubeconfig",
        "repetitions",
        "scheduler",
        "scheduler_config",
        "scheduler_binary",
        "prices",
        "why",
        "label",
    ):
        if getattr(args, name):
            raise UserError(f"--{name.replace('_', '-')} is for runs on a cluster; leave it out, or --offline")
    if args.jobs is not None and args.jobs < 1:
        raise UserError(f"--jobs is {args.jobs}; write a number above 0")


def _seeds(args: argparse.Namespace, loaded: LoadedExperiment) -> list[int]:
    if args.seeds is None:
        return [loaded.experiment.seed if args.seed is None else args.seed]
    found: list[int] = []
    for part in args.seeds.split(","):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise UserError(f"--seeds is {args.seeds}; write 42-51, or 1,2,5")
        found.extend(range(int(first), int(last or first) + 1))
    if not 1 <= len(found) <= _MOST_SEEDS:
        raise UserError(f"--seeds {args.seeds} are {len(found):,}; write from 1 to {_MOST_SEEDS:,}, the smaller first")
    return found


def _stack(args: argparse.Namespace, loaded: LoadedExperiment) -> LoadedCluster:
    """The stack with the machines: the command's, or the one that the file names by path or by its name."""
    experiment = loaded.experiment
    named = args.stack or ("" if experiment.stackFile else experiment.stack)
    if named and not named.endswith((".yaml", ".yml")):
        return stack_file.load_one(named, which.chosen(named, args.cluster).cluster)
    if not named and not experiment.stackFile:
        raise UserError("the file names no stack, whose machines a run without a cluster has; write -s STACK")
    path = Path(named) if named else loaded.directory / experiment.stackFile
    if not path.is_file():
        raise UserError(f"{path} is not there; write another stackFile, or -s STACK")
    found = stack_file.described_by(path)
    if found is None:
        raise UserError(f"{path} does not describe a cluster: it has no kumulus:cluster")
    one = found.only or found.clusters.get(args.cluster or found.hub)
    if one is None:
        raise UserError(f"{path} has the clusters {', '.join(found.clusters)}; choose one by --cluster")
    return one
