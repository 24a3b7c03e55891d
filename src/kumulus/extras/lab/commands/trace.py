"""Import a published trace of a production cluster: a stack file with its machines, an experiment file with its tasks.

    kumulus trace import openb NODES.csv PODS.csv --inflate 1.3 --stay --policy FGD --stack s.yaml --experiment e.yaml
    kumulus trace import philly cluster_job_log cluster_machine_list --stack philly --experiment philly.yaml
    kumulus trace import csv jobs.csv --columns arrival=submitted,gpus=num_gpu --machines count=50,gpus=8 …
    kumulus trace formats

Rows that cannot be tasks are counted, listed by line, and kept in a file next to the experiment file. docs/traces.md
describes the formats and how to run a trace, with a cluster or without.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING

from kumulus.cli import errors, project
from kumulus.cli.errors import UserError

if TYPE_CHECKING:
    from kumulus.extras.lab.offline.placing import EmptyNode
    from kumulus.extras.lab.traces.writing import WantedExperiment

_SUFFIXES = (".yaml", ".yml")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    commands = parser.add_subparsers(dest="action", metavar="import|formats", required=True)
    commands.add_parser("formats", help="list the formats, with the files that each takes")
    imports = commands.add_parser("import", help="import a trace")
    imports.add_argument("format", metavar="FORMAT", help="as `kumulus trace formats` lists them: openb, philly, swf …")
    imports.add_argument("files", metavar="FILE", nargs="+", type=Path, help="the trace's files; also packed by gzip")
    imports.add_argument("--stack", required=True, help="the stack file to write, or a stack's name in this project")
    imports.add_argument("--experiment", required=True, type=Path, metavar="FILE", help="the experiment file to write")
    imports.add_argument("--policy", default="", help="a policy of the paper, as FGD, or a Python file")
    imports.add_argument(
        "--inflate", type=float, metavar="SHARE", help="draw tasks until they ask for a share of all GPUs, as 1.3"
    )
    imports.add_argument("--stay", action="store_true", help="pods stay: nothing ends")
    imports.add_argument(
        "--milli-gpus",
        action="store_true",
        help="nodes declare GPUs in thousandths as well, so that schedulers without a policy count parts of them",
    )
    imports.add_argument(
        "--resource-claims",
        choices=("milli", "mig"),
        help="pods ask for GPUs by ResourceClaim: a part of one in thousandths, or as a MIG device",
    )
    imports.add_argument(
        "--user-queues", action="store_true", help="each task waits in the queue of its user, or virtual cluster"
    )
    imports.add_argument("--keep-names", action="store_true", help="name nodes as the trace names its machines")
    imports.add_argument("--shuffle", action="store_true", help="the seed decides the order of the tasks")
    imports.add_argument("--speed", type=float, default=1.0, metavar="N", help="how many times faster than recorded")
    imports.add_argument("--limit", type=int, metavar="N", help="only the first N tasks")
    imports.add_argument("--window", metavar="FROM-TO", help="only tasks of a time, as 0s-168h, from the first task on")
    imports.add_argument(
        "--columns", default="", metavar="KEY=HEADING,…", help="of the format csv: which column is what"
    )
    imports.add_argument(
        "--machines",
        action="append",
        default=[],
        metavar="KEY=VALUE,…",
        help="machines of a trace that lists none: count=550,gpus=8,cpu=64,memory=512Gi,model=P100",
    )


def run(args: argparse.Namespace) -> int:
    """Run the action."""
    from kumulus.extras.lab.errors import LabError
    from kumulus.extras.lab.traces.formats import FORMATS

    if args.action == "formats":
        width = max(len(each.files) for each in FORMATS.values())
        for each in FORMATS.values():
            print(f"{each.name:<12} {each.files:<{width}}  {each.about}")
        return 0
    try:
        return _import(args)
    except LabError as error:
        raise UserError(str(error)) from None


def _import(args: argparse.Namespace) -> int:
    from kumulus.extras.lab.traces.formats import FORMATS
    from kumulus.extras.lab.traces.importing import first_lines, import_trace
    from kumulus.model.names import suggest

    if args.format not in FORMATS:
        near = suggest(args.format, FORMATS)
        raise UserError(f"{args.format} is no format: {f'did you mean {near}?' if near else ', '.join(FORMATS)}")
    if args.experiment.suffix not in _SUFFIXES:
        raise UserError(f"--experiment {args.experiment} is no YAML file; write {args.experiment}.yaml")
    stack = _stack_file(args.stack)
    errors.refuse_others(first_lines(stack, args.experiment))
    written = import_trace(
        FORMATS[args.format],
        args.files,
        stack,
        args.experiment,
        machines=[machine for text in args.machines for machine in _machines(text)],
        columns=_pairs(args.columns, "--columns"),
        wanted=_wanted(args),
    )
    print("\n".join(written.lines))
    for line in written.listed:
        print(f"  bad: {line}")
    if written.bad is not None:
        print(f"every bad row: {written.bad}")
    print(f"wrote {stack}, {args.experiment}, {written.tasks}")
    return 0


def _wanted(args: argparse.Namespace) -> WantedExperiment:
    from kumulus.extras.lab.traces.writing import WantedExperiment

    for name in ("inflate", "speed", "limit"):
        value = getattr(args, name)
        if value is not None and not 0 < value < math.inf:
            raise UserError(f"--{name} is {value:g}; write a number above 0")
    if args.resource_claims and args.policy:
        other = f"--policy {args.policy}, which counts the same GPUs by an account of its own"
        raise UserError(f"--resource-claims cannot be combined with {other}; leave one of them out")
    return WantedExperiment(
        policy=args.policy,
        inflate=args.inflate,
        stay=args.stay,
        shuffle=args.shuffle,
        speed=args.speed,
        limit=args.limit,
        window=_window(args.window),
        milli_gpus=args.milli_gpus,
        resource_claims=args.resource_claims,
        keep_names=args.keep_names,
        user_queues=args.user_queues,
    )


def _window(text: str | None) -> tuple[float, float] | None:
    from kumulus.model import durations

    if text is None:
        return None
    first, _, last = text.partition("-")
    try:
        found = durations.seconds(first), durations.seconds(last)
    except ValueError:
        found = (1.0, 0.0)
    if found[0] >= found[1]:
        raise UserError(f"--window is {text}; write two durations, as 0s-168h, the second one longer")
    return found


def _stack_file(name: str) -> Path:
    """The path of a stack file, given as such or as the name of a stack in the project."""
    return Path(name) if name.endswith(_SUFFIXES) else project.current().stack_file(name)


def _pairs(text: str, option: str) -> dict[str, str]:
    pairs = [pair.partition("=") for pair in text.split(",") if pair]
    for key, equals, value in pairs:
        if not equals or not value:
            raise UserError(f"{option} has {key}; write KEY=VALUE, with commas between")
    return {key.strip(): value.strip() for key, _, value in pairs}


def _machines(text: str) -> list[EmptyNode]:
    from kumulus.extras.lab.offline.placing import EmptyNode
    from kumulus.model.quantity import NANO, QuantityError, parse

    pairs = _pairs(text, "--machines")
    values = {"count": "1", "gpus": "0", "cpu": "64", "memory": "512Gi", "model": ""} | pairs
    for key in pairs:
        if key not in ("count", "gpus", "cpu", "memory", "model"):
            raise UserError(f"--machines has no {key}; it has count, gpus, cpu, memory and model")
    try:
        count, gpus = int(values["count"]), int(values["gpus"])
        cpu, memory = parse(values["cpu"]).nanos * 1000 // NANO, parse(values["memory"]).nanos // (NANO << 20)
    except (ValueError, QuantityError):
        raise UserError(f"--machines {text} has something that is no number; write count=550,gpus=8,cpu=64") from None
    if count < 1 or not 0 <= gpus <= 64 or cpu < 1 or memory < 1:
        raise UserError(f"--machines {text}: count, cpu and memory are at least 1, gpus from 0 to 64")
    return [EmptyNode(f"machine-{number}", cpu, memory, gpus, values["model"]) for number in range(count)]
