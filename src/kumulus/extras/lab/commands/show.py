"""`kumulus experiment show`, `fragmentation` and `why`: recorded runs on a time line, and what was decided in them."""

import argparse
import asyncio
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kumulus.cli.errors import UserError
from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.offline.recorded import FragmentationState, RunFragmentation, fragmentation
from kumulus.extras.lab.report.files import HISTORY, find, os_errors_explained, report_at
from kumulus.extras.lab.report.model import FILE
from kumulus.extras.lab.report.why import Decided, explained, like, named, read, sums, waits, waits_of
from kumulus.extras.watch.history.document import History, HistoryError, load
from kumulus.host import files
from kumulus.model.durations import seconds

_ROWS = 10


def show(args: argparse.Namespace) -> int:
    """Show one run, or two side by side."""
    if len(args.runs) > 2:
        raise UserError("two runs can be seen side by side, not more; `kumulus experiment compare` takes any number")
    histories = [history_of(run, args.results, args.repetition) for run in args.runs]
    reasons = [_reasons(run, args.results) for run in args.runs]
    if args.html is not None or args.picture is not None:
        if args.html is not None:
            _write(args.html, histories, reasons)
        if args.picture is not None:
            _draw(args.picture, histories, args.at)
        return 0
    return _serve(histories, reasons, args.port)


def history_of(run: str, results: Path, repetition: int) -> History:
    """The history of one repetition of a run, by the run's name or the history's file; its title is the run's label."""
    path = Path(run)
    if path.name.endswith(".json.gz"):
        file = path
    else:
        report = find(run, results)
        file = report.parent / HISTORY.format(repetition)
        if not file.is_file():
            tests = len(report_at(report).results.tests)
            if repetition > tests > 0:
                raise UserError(f"{run} has {tests} repetitions; write --repetition 1 to {tests}")
            raise UserError(
                f"{run} has no {file.name}: recorded without a cluster, or it did not begin, or was killed\n"
                "  Run the experiment again"
            )
    try:
        history = load(file)
    except HistoryError as error:
        raise UserError(str(error)) from None
    # A history whose report is not next to it, or cannot be read, is called by its experiment.
    with suppress(LabError):
        history.about["title"] = report_at(file.with_name(FILE)).metadata.label or history.about.get("title", "")
    return history


def _reasons(run: str, results: Path) -> dict[str, list[str]]:
    """Why pods are where they are, as `kumulus experiment why` says it; empty if that was not recorded."""
    path = Path(run)
    decided = read(path.parent if path.name.endswith(".json.gz") else find(run, results).parent)
    if decided is None:
        return {}
    return {each.pod: explained(each, decided.columns.get(each.pod)) for each in decided.decisions}


def _write(file: Path, histories: list[History], reasons: list[dict[str, list[str]]]) -> None:
    from kumulus.extras.watch.console import bundle

    with os_errors_explained(file):
        files.write(file, bundle.page(histories, reasons))
    print(f"wrote {file} ({file.stat().st_size / 1e6:.1f} MB)")


def _draw(file: Path, histories: list[History], at: str | None) -> None:
    from kumulus.extras.lab.report import picture

    if file.suffix not in (".png", ".svg", ".pdf"):
        raise UserError(f"{file} does not say what picture it is to be; write its name with .png, .svg or .pdf")
    try:
        when = None if at is None else round(seconds(at) * 1000)
    except ValueError:
        raise UserError(f"--at is {at}; write a time from the run's beginning, such as 100s") from None
    picture.write(histories, when, file)
    print(f"wrote {file}: {'; '.join(map(picture.result, histories))}")


def _serve(histories: list[History], reasons: list[dict[str, list[str]]], port: int) -> int:
    from kumulus.extras.watch.console.bundle import shown
    from kumulus.extras.watch.console.serving import PortInUse

    async def serve() -> None:
        async with shown(histories, reasons).served(port) as address:
            print(f"{' and '.join(str(each.about.get('title')) for each in histories)}: {address}")
            print("Ctrl-C ends it", flush=True)
            await asyncio.Event().wait()

    try:
        asyncio.run(serve())
    except PortInUse as error:
        raise UserError(str(error)) from None
    except PermissionError:
        raise UserError(f"port {port} is not yours to listen on\n  Choose one from 1024 to 65535") from None
    return 0


def show_fragmentation(args: argparse.Namespace) -> int:
    """Measure a recorded run."""
    history = history_of(args.run, args.results, args.repetition)
    found = fragmentation(history)
    if found is None:
        raise UserError(f"{args.run} has no GPUs to be fragmented: its nodes have none, or its pods ask for none")
    if args.json:
        print(json.dumps(_answer(found)))
    else:
        print("\n".join(_table(str(history.about.get("title")), found)))
    return 0


def _answer(found: RunFragmentation) -> dict[str, object]:
    return {
        "typical_kinds": found.kinds,
        "mean_percent_of_all_gpus": round(100 * found.mean, 4),
        "moments": [
            {
                "at_ms": each.at,
                "gpus": each.gpus,
                "arrived": each.arrived,
                "allocated": each.allocated,
                "fragmented": round(each.fragmented, 4),
            }
            for each in found.moments
        ],
        **found.curves,
    }


def _table(title: str, found: RunFragmentation) -> Iterator[str]:
    kinds = f"{found.kinds} typical kinds" if found.kinds != 1 else "one typical kind"
    yield f"{title}: {kinds} of pods, {found.moments[-1].gpus:,} GPUs"
    yield f"{'AT':>10}  {'ARRIVED':>8}  {'ALLOCATED':>9}  {'FRAGMENTED OF ALL':>17}  {'OF IDLE':>8}"
    for row in range(_ROWS + 1):
        at = found.end * row // _ROWS
        yield _row(at, found.at(at))
    peak = found.peak
    yield (
        f"mean over time {100 * found.mean:.2f} % of all GPUs; "
        f"most {_share(peak.fragmented, peak.gpus):.2f} % after {peak.at / 1000:,.0f} s"
    )


def _row(at: int, now: FragmentationState) -> str:
    idle = _share(now.fragmented, now.gpus - now.allocated)
    shares = [_share(part, now.gpus) for part in (now.arrived, now.allocated, now.fragmented)]
    cells = [f"{at / 1000:>8,.0f} s", f"{shares[0]:>6.1f} %", f"{shares[1]:>7.2f} %", f"{shares[2]:>15.2f} %"]
    return "  ".join([*cells, f"{idle:>6.2f} %"])


def _share(part: float, whole: int) -> float:
    return 100 * part / whole if whole else 0.0


def why(args: argparse.Namespace) -> int:
    """Explain where a pod went."""
    decided = read(find(args.run, args.results).parent)
    document, lines = _as_said(args) if decided is None else _as_decided(decided, args)
    print(json.dumps(document, indent=1) if args.json else "\n".join(lines))
    return 0


def _as_decided(decided: Decided, args: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    """What is known of a run that has recorded decisions: how the scheduler decided about a pod, or about all."""
    kept, waiting = {each.pod: each for each in decided.of(args.repetition)}, decided.waiting(args.repetition)
    if args.pod is None:
        return sums(decided.of(args.repetition), decided.totals, of_one=args.repetition is not None)
    pod = named([*kept, *waiting], args.pod)
    if pod is None:
        dropped = sum(each.dropped for each in decided.totals)
        more = f"; {dropped} bindings were not kept, as the file had reached its limit" if dropped else ""
        near = like([*kept, *waiting], args.pod)
        remedy = f"Did you mean {near}?" if near else "`kumulus experiment why RUN` counts the known pods"
        raise UserError(f"nothing is known of a pod {args.pod}{more}{_end(args)}\n  {remedy}")
    if pod not in kept:
        return {"pod": pod, "reason": waiting[pod]}, [f"{pod} was never bound", f"  {waiting[pod]}"]
    column = decided.columns.get(pod)
    document = asdict(kept[pod]) | ({} if column is None else {"policy": asdict(column)})
    return document, explained(kept[pod], column)


def _as_said(args: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    """What is known of a run that has not recorded decisions: why pods waited, as they and their jobs said."""
    directory, repetition = find(args.run, args.results).parent, args.repetition or 1
    file = directory / HISTORY.format(repetition)
    if not file.is_file():
        raise UserError(
            f"{args.run} has not recorded how its scheduler decided\n"
            "  Write why: true in the experiment's file, and run it again"
        )
    history = history_of(str(file), args.results, 1)
    found = waits(history) if args.pod is None else waits_of(history, args.pod)
    if found is None:
        near = like((str(each[0]) for each in [*history.pods, *history.jobs]), args.pod)
        remedy = f"Did you mean {near}?" if near else "`kumulus experiment why RUN` says why they waited"
        raise UserError(f"nothing is known of a pod or job {args.pod}{_end(args)}\n  {remedy}")
    document, lines = found
    several = len([*directory.glob(HISTORY.format("*"))]) > 1
    which = f" in repetition {repetition} (others: --repetition N)" if several else ""
    first = "how the scheduler decided was not recorded (why: true does, for kube-scheduler); this is what pods said"
    return document, [f"{first}{which}:", *lines]


def _end(args: argparse.Namespace) -> str:
    """How the run ended, for pods that no one has seen: with that, it says why they were not created."""
    results = report_at(find(args.run, args.results)).results
    ends = dict.fromkeys(each for each in (results.error, *(test.details.ended for test in results.tests)) if each)
    return f"; the run's end: {', '.join(ends)}" if ends else ""
