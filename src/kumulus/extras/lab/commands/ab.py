"""`kumulus experiment ab`: two ways of scheduling, run in turn until it is decided which one is better."""

import argparse
import secrets
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from kumulus.cli.errors import UserError
from kumulus.extras.lab.ab import page
from kumulus.extras.lab.ab.pairs import Pairs
from kumulus.extras.lab.ab.running import Side, Until, compared
from kumulus.extras.lab.commands.run import on_cluster, overridden_by
from kumulus.extras.lab.file.load import LoadedExperiment, load
from kumulus.extras.lab.file.measures import BETTER, instead
from kumulus.extras.lab.file.model import OWN
from kumulus.extras.lab.policies.load import PAPER
from kumulus.extras.lab.report import checks
from kumulus.extras.lab.report.model import Report
from kumulus.extras.lab.run.bench import RunOptions
from kumulus.extras.lab.run.progress import RunProgress
from kumulus.extras.lab.running import PATIENCE, Run
from kumulus.extras.schedulers import NAMES
from kumulus.kube import Client, load_kubeconfig

NOT_DECIDED = 3
"""The exit code where nothing is known to be worse, and something is not decided."""

_MEASURES = ("timeToSchedule.p99",)
_MOST_PAIRS = 1000
_SCHEDULER = "kube-scheduler"


@dataclass(frozen=True)
class _Asked:
    """The command line: what is compared with what, by which measures, and for how long."""

    names: tuple[str, str]
    what: tuple[argparse.Namespace, argparse.Namespace]
    pairs: Pairs
    until: Until

    def sides(self, loaded: LoadedExperiment) -> tuple[Side, Side]:
        """A and B of an experiment."""
        one, two = (Side(name, overridden_by(loaded, what)) for name, what in zip(self.names, self.what, strict=True))
        return one, two


def run(args: argparse.Namespace) -> int:
    """Compare A and B; 0 if B is better or they are alike, 1 if it is worse or incomplete, 3 if not decided."""
    loaded = load(args.file)
    asked = _asked(args, loaded)
    asked.sides(loaded)
    progress = RunProgress(sys.stderr, args.quiet)
    return on_cluster(args, loaded, progress, lambda priced, options: _ab(priced, options, asked, args))


def _asked(args: argparse.Namespace, loaded: LoadedExperiment) -> _Asked:
    measures = tuple(dict.fromkeys(args.measure or _MEASURES))
    for name in measures:
        if name not in BETTER:
            raise UserError(f"--measure {name} is not measured; write {instead(name)}")
        if not BETTER[name]:
            raise UserError(f"--measure {name} is neither better nor worse if there is more of it; write another one")
    for option, value in (("--until", args.until), ("--at-most", str(args.at_most))):
        if value != "decided" and not (value.isdecimal() and 1 <= int(value) <= _MOST_PAIRS):
            number = "decided, or a number" if option == "--until" else "a number"
            raise UserError(f"{option} is {value}; write {number} from 1 to {_MOST_PAIRS:,}")
    decided = args.until == "decided"
    until = Until(decided, args.at_most if decided else int(args.until))
    margin = args.margin.removesuffix("%")
    if not margin.replace(".", "", 1).isdecimal() or not 0 < float(margin) < 100:
        raise UserError(f"--margin is {args.margin}; write a percentage such as 5%")
    what = _what(args.a, loaded), _what(args.b, loaded)
    return _Asked(_names(args), what, Pairs(measures, float(margin) / 100), until)


def _what(value: str | None, loaded: LoadedExperiment) -> argparse.Namespace:
    """What one side has instead of the file's, as options of `run`."""
    options = {"repetitions": None, "seed": None, "scheduler": None, "scheduler_config": None}
    found = argparse.Namespace(**options, scheduler_binary=None, policy=None, ties=None, why=None)
    if value is None:
        return found
    if value == OWN or value in NAMES:
        found.scheduler = value
    elif value.endswith(".py") or value in PAPER:
        found.policy = value
    else:
        if value.endswith((".yaml", ".yml", ".json")):
            found.scheduler_config = value
        else:
            found.scheduler_binary = value
        if loaded.experiment.scheduler.name == OWN:
            # The cluster's own scheduler takes neither.
            found.scheduler = _SCHEDULER
    return found


def _names(args: argparse.Namespace) -> tuple[str, str]:
    """What the two are called: files by their names, unless those are the same."""
    written = args.a or f"{args.file.name} as it is", args.b
    if written[0] == written[1]:
        # How much runs differ of themselves.
        return f"{written[0]} (A)", f"{written[1]} (B)"
    one, two = (Path(each).name for each in written)
    return written if one == two else (one, two)


async def _ab(loaded: LoadedExperiment, options: RunOptions, asked: _Asked, args: argparse.Namespace) -> int:
    async with Client(load_kubeconfig(options.kubeconfig), patience=PATIENCE) as client:

        async def make(each: LoadedExperiment) -> Report:
            # Without on_report: plots would take CPU from the runs that follow.
            return await Run(client, each, options).run()

        found = await compared(asked.sides(loaded), asked.pairs, asked.until, make, options.say)
    directory = args.results / found.experiment / f"ab-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
    page.write(found, directory)
    options.say("")
    print("\n".join(page.lines(found)))
    print(f"page: {directory / page.PAGE}", flush=True)
    if args.github:
        title, outputs = f"{found.experiment}: {page.headline(found)}", f"verdict={found.verdict}\nreport={directory}\n"
        for line in checks.on_github(page.suite(found), title, page.checks_of(found), outputs):
            print(line)
    return {"worse": 1, "incomplete": 1, "not decided": NOT_DECIDED}.get(found.verdict, 0)
