"""Measure: ``make bench``, or ``python -m benchmarks [SCENARIO ...]`` for some of it; each is written when it ends."""

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable

import psutil

from benchmarks import (
    ab,
    capture,
    console,
    creation,
    engine,
    faults,
    fitting,
    in_tests,
    largest,
    leases,
    many,
    many_pods,
    multikueue,
    page,
    replay,
    snapshots,
    sweeps,
)
from benchmarks.report import Row, write
from kumulus.provider.plugin.__main__ import collect_rarely

SCENARIOS: dict[str, Callable[[], Awaitable[list[Row]]]] = {
    "kwokctl": creation.against_kwokctl,
    "limit": creation.against_the_limit,
    "large": creation.large,
    "pods": creation.with_pods,
    "many-pods": many_pods.created,
    "engine": engine.large_stack,
    "largest": largest.fleet,
    "leases": leases.standing,
    "many": many.side_by_side,
    "multikueue": multikueue.dispatched,
    "faults": faults.applied,
    "fault-previews": faults.previewed,
    "console": console.view,
    "page": page.of_an_hour,
    "replay": replay.recorded_day,
    "capture": capture.captured,
    "fit": fitting.probes,
    "snapshots": snapshots.full,
    "sweeps": sweeps.judged,
    "ab": ab.decided,
    "tests": in_tests.clusters,
    "gym": in_tests.episodes,
}


async def measure(names: list[str]) -> list[Row]:
    """Run the scenarios, print each row as it comes and write it down."""
    rows: list[Row] = []
    for name in names:
        print(f"{name} …", file=sys.stderr, flush=True)
        load = psutil.getloadavg()[0]
        found = await SCENARIOS[name]()
        # Scenarios that cannot be measured on this machine keep their published figures.
        if found:
            write(name, found, load, SCENARIOS)
        for row in found:
            mark = "reached" if row.passed else "MISSED"
            print(f"{row.what}: {row.reached}; must: {row.must}: {mark}", flush=True)
            rows.append(row)
    return rows


def main() -> int:
    """Run the scenarios that the command line names, or all of them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=f"of {', '.join(SCENARIOS)}")
    chosen = parser.parse_args().scenarios
    for name in chosen:
        if name not in SCENARIOS:
            parser.error(f"no scenario {name!r}; there are {', '.join(SCENARIOS)}")
    # The plugin does this as well; here its work is done in this process.
    collect_rarely()
    rows = asyncio.run(measure(chosen or list(SCENARIOS)))
    return 1 if not all(row.passed for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
