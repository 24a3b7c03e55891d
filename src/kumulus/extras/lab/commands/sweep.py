"""`kumulus experiment sweep`: an experiment for every combination that a file lists."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from kumulus.cli.errors import UserError
from kumulus.model.words import counted


def run(args: argparse.Namespace) -> int:
    """Run a sweep; 1 if a run failed, was cut off or missed a threshold.

    Raises:
        UserError: an option has a wrong value.
    """
    from kumulus.extras.lab.sweep import page, sweep
    from kumulus.extras.lab.sweep.engines import engine
    from kumulus.extras.lab.sweep.file import load, words

    if args.jobs < 0:
        raise UserError(f"--jobs is {args.jobs}; write a number above 0")
    described = load(args.file)

    def say(line: str) -> None:
        if not args.quiet:
            print(line, file=sys.stderr, flush=True)

    options = sweep.Options(
        directory=args.results / "sweeps" / described.name,
        engine=engine(args.engine),
        jobs=args.jobs,
        # The command as it was called, but with an absolute path: runs start in their cluster's project.
        kumulus=(sys.executable, str(Path(sys.argv[0]).absolute())),
        say=say,
    )
    done = sweep.run(described, args.file.resolve().parent, options)
    print("\n".join(page.lines(described, done.found)))
    for file in done.files:
        print(f"wrote {file}")
    failed = [result for result in done.results if not result.complete]
    if failed:
        first = failed[0]
        print(f"{counted(len(failed), 'run')} failed, {words(first.values)} first: {first.error}", file=sys.stderr)
    return 1 if failed or any(result.status == "failure" for result in done.results) else 0
