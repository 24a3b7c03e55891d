"""`kumulus experiment compare`: runs side by side, and whether the change from one to another keeps its limits."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from kumulus.cli.errors import UserError
from kumulus.extras.lab.file.measures import BETTER, UNITS
from kumulus.extras.lab.report import checks as of_checks
from kumulus.extras.lab.report import compare as comparison
from kumulus.extras.lab.report import gate
from kumulus.extras.lab.report import history as all_runs
from kumulus.extras.lab.report.change import MeasureChange
from kumulus.extras.lab.report.checks import MeasureCheck
from kumulus.extras.lab.report.files import find, os_errors_explained, report_at
from kumulus.extras.lab.report.model import Report
from kumulus.extras.lab.report.together import together
from kumulus.host import files
from kumulus.model.words import aligned

_TWO = 2


def run(args: argparse.Namespace) -> int:
    """Show runs side by side; 1 if a limit of `--fail-if` is not kept."""
    limits = gate.limits(args.fail_if or ())
    if limits and len(args.runs) != _TWO:
        raise UserError("--fail-if is about two runs: the one to compare with, and the new one")
    if not limits and (args.junit or args.github):
        raise UserError("--junit and --github show limits; write --fail-if MEASURE:+10%")
    columns = [[(path, report_at(path)) for path in _found(run, args.results)] for run in args.runs]
    reports = [together([report for _, report in column]) for column in columns]
    changes, checks = _changes(reports, limits)
    if args.json:
        print(json.dumps(_plain(reports, changes, checks), indent=2))
    else:
        _show(args, reports, checks)
    if args.page is not None:
        all_runs.write_comparison(args.page, columns, changes, checks)
        _say(args, f"wrote {args.page}")
    if args.pictures is not None:
        # Drawing needs a library that is slow to load.
        from kumulus.extras.lab.report import spreads

        drawn = [*spreads.write(reports, args.pictures), *spreads.write_by_demand(reports, args.pictures)]
        _say(args, f"wrote {len(drawn)} pictures to {args.pictures}")
    if limits:
        _published(reports[1], checks, args)
    return 0 if all(each.holds for each in checks) else 1


def _found(run: str, results: Path) -> list[Path]:
    """The report of a run, or those of several that `+` joins."""
    return [find(each, results) for each in ([run] if Path(run).exists() else run.split("+"))]


def _say(args: argparse.Namespace, line: str) -> None:
    print(line, file=sys.stderr if args.json else sys.stdout)


def _show(args: argparse.Namespace, reports: Sequence[Report], checks: Sequence[MeasureCheck]) -> None:
    print(aligned(_with_changes(comparison.table(reports, args.all), reports)))
    for line in comparison.unfair(reports):
        print(f"unfair: {line}")
    for check in checks:
        print(f"{'kept' if check.holds else 'missed'}: {check.name}: {check.found}")


def _plain(
    reports: Sequence[Report], changes: Sequence[MeasureChange], checks: Sequence[MeasureCheck]
) -> dict[str, object]:
    """The comparison for programs: every measure of every repetition."""
    runs = [
        {
            "runId": each.metadata.run_id,
            "label": each.metadata.label,
            "experiment": each.metadata.experiment,
            "scheduler": each.metadata.scheduler.name,
            "configuration": each.metadata.scheduler.config,
            "status": each.results.status,
            "repetitions": [test.details.measures for test in each.results.tests],
        }
        for each in reports
    ]
    found = [
        {
            "measure": each.measure,
            "before": each.before,
            "after": each.after,
            "verdict": each.verdict,
            "note": each.note,
        }
        for each in changes
    ]
    limits = [{"limit": each.name, "holds": each.holds, "found": each.found} for each in checks]
    return {"runs": runs, "changes": found, "limits": limits, "unfair": list(comparison.unfair(reports))}


def _changes(reports: Sequence[Report], limits: Sequence[gate.Limit]) -> tuple[list[MeasureChange], list[MeasureCheck]]:
    """What became of the measures that have limits, or of the main ones, and whether the limits are kept."""
    if len(reports) != _TWO:
        return [], []
    measures = [each.measure for each in limits] or [name for name in comparison.MAIN if BETTER[name]]
    changes = gate.changes((reports[0], reports[1]), list(dict.fromkeys(measures)))
    return changes, gate.checks(limits, reports, changes)


def _with_changes(rows: list[list[str]], reports: Sequence[Report]) -> list[list[str]]:
    if len(reports) != _TWO:
        return rows
    measures = [row[0] for row in rows if row[0] in UNITS]
    amounts = {each.measure: each.amount for each in gate.changes((reports[0], reports[1]), measures)}
    return [[*row, amounts.get(row[0], "" if index else "difference")] for index, row in enumerate(rows)]


def _published(report: Report, checks: Sequence[MeasureCheck], args: argparse.Namespace) -> None:
    suite = f"{report.metadata.experiment}.compare"
    if args.junit is not None:
        with os_errors_explained(args.junit):
            files.write(args.junit, of_checks.junit(suite, checks))
        _say(args, f"wrote {args.junit}")
    if args.github:
        missed = sum(not each.holds for each in checks)
        title = f"{report.metadata.experiment}: {missed} of {len(checks)} limits missed"
        for line in of_checks.on_github(suite, title, checks, f"missed={missed}\n"):
            _say(args, line)
