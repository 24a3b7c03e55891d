"""Measure: ``make bench``, or ``python -m benchmarks [SCENARIO ...]`` for some of it (nothing is written then)."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable

from benchmarks import creation, engine
from benchmarks.report import Row, write

SCENARIOS: dict[str, Callable[[], Awaitable[list[Row]]]] = {
    "kwokctl": creation.against_kwokctl,
    "limit": creation.against_the_limit,
    "large": creation.large,
    "pods": creation.with_pods,
    "engine": engine.large_stack,
}


async def measure(names: list[str]) -> list[Row]:
    """Run the scenarios and print each row as it comes."""
    rows: list[Row] = []
    for name in names:
        print(f"{name} …", file=sys.stderr, flush=True)
        for row in await SCENARIOS[name]():
            mark = {True: "reached", False: "MISSED", None: ""}[row.passed]
            print(f"{row.what}: {row.reached}" + (f"; must: {row.must}: {mark}" if row.must else ""), flush=True)
            rows.append(row)
    return rows


def main() -> int:
    """Run what the command line names, or everything."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=f"of {', '.join(SCENARIOS)}")
    chosen = parser.parse_args().scenarios
    for name in chosen:
        if name not in SCENARIOS:
            parser.error(f"no scenario {name!r}; there are {', '.join(SCENARIOS)}")
    rows = asyncio.run(measure(chosen or list(SCENARIOS)))
    if not chosen:
        write(rows)
    return 1 if any(row.passed is False for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
