"""`kumulus experiment show`: recorded runs on a time line, as a page of this machine or as a file to keep."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from kumulus.cli.errors import UserError
from kumulus.extras.lab.report.decided import read
from kumulus.extras.lab.report.files import HISTORY, os_errors_explained
from kumulus.extras.lab.report.read import find, report_at
from kumulus.extras.lab.report.why import explained
from kumulus.extras.watch.history.document import History, HistoryError, load
from kumulus.host import files


def show(args: argparse.Namespace) -> int:
    """Show one run, or two side by side.

    Raises:
        UserError: there is nothing to show, or the port is taken.
        LabError: there is no such run, or the file cannot be written.
    """
    if len(args.runs) > 2:
        raise UserError("two runs can be seen side by side, not more; `kumulus experiment compare` takes any number")
    histories = [history_of(run, args.results, args.repetition) for run in args.runs]
    reasons = [_reasons(run, args.results) for run in args.runs]
    if args.html is not None:
        _write(args.html, histories, reasons)
        return 0
    return _serve(histories, reasons, args.port)


def history_of(run: str, results: Path, repetition: int) -> History:
    """The history of one repetition of a run, by the run's name or the history's file.

    Raises:
        UserError: the run has no history, or it cannot be read.
        LabError: there is no such run.
    """
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
                f"{run} has no {file.name}: recorded without a cluster, or it did not begin\n  Run the experiment again"
            )
    try:
        return load(file)
    except HistoryError as error:
        raise UserError(str(error)) from None


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


def _serve(histories: list[History], reasons: list[dict[str, list[str]]], port: int) -> int:
    from kumulus.extras.watch.console.serving import PortInUse
    from kumulus.extras.watch.console.show import shown

    async def serve() -> None:
        async with shown(histories, reasons).served(port) as address:
            print(f"{' beside '.join(str(each.about.get('title')) for each in histories)}: {address}")
            print("Ctrl-C ends it", flush=True)
            await asyncio.Event().wait()

    try:
        asyncio.run(serve())
    except PortInUse as error:
        raise UserError(str(error)) from None
    except PermissionError:
        raise UserError(f"port {port} is not yours to listen on\n  Choose one from 1024 to 65535") from None
    return 0
