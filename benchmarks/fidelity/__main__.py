"""Make docs/fidelity.md: ``python -m benchmarks.fidelity [PART ...]``, of kind, emulated, speed, clone, page."""

import argparse
import json
import sys
from datetime import UTC, datetime
from typing import Any

import psutil

from benchmarks.fidelity import cloned, page, places, record, speed
from benchmarks.fidelity.page import RESULTS
from kumulus.provider.plugin.__main__ import collect_rarely

PARTS = ("kind", "emulated", "speed", "clone", "page")


def main() -> int:
    """Record the parts that the command line names, or all of them, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fidelity", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--times", type=int, default=5, help="attempts at each situation (default: 5)")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="these alone")
    arguments = parser.parse_args()
    for name in arguments.parts:
        if name not in PARTS:
            parser.error(f"no part {name!r}; there are {', '.join(PARTS)}")
    collect_rarely()
    for part in arguments.parts or PARTS:
        if part == "page":
            page.write(_known())
            continue
        load = round(psutil.getloadavg()[0], 1)
        found = _recorded(part, arguments.times, arguments.only)
        if arguments.only:
            # What was recorded of others stays as it is, and so does when.
            _keep({part: _known().get(part, {}) | found})
            continue
        date = datetime.now(UTC).strftime("%Y-%m-%d")
        _keep({part: found, f"{part} recorded": {"date": date, "load average before": load}})
    return 0


def _recorded(part: str, times: int, only: list[str]) -> Any:
    if part == "speed":
        return speed.record(times)
    if part == "clone":
        return cloned.record(times)
    if part == "kind":
        with places.kind() as place:
            _keep({"about": place.about})
            return record.record(place, times, only)
    known = _known()
    if "about" not in known:
        raise SystemExit("what the nodes are like is not known; record kind first: python -m benchmarks.fidelity kind")
    with places.emulated(known["about"], record.starts(known["kind"])) as place:
        return record.record(place, times, only)


def _known() -> dict[str, Any]:
    known: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    return known


def _keep(found: dict[str, Any]) -> None:
    # Read again: parts may be recorded at the same time.
    RESULTS.write_text(_written(_known() | found))


def _written(known: dict[str, Any], depth: int = 2) -> str:
    """As JSON with a line for each situation, so that a change of one is a change of its line."""
    if depth == 0:
        return json.dumps(known, sort_keys=True, ensure_ascii=False)
    parts = [
        f"{json.dumps(key)}: {_written(value, depth - 1) if isinstance(value, dict) else json.dumps(value)}"
        for key, value in sorted(known.items())
    ]
    return "{\n" + ",\n".join(parts) + "\n}" + "\n" * (depth == 2)


if __name__ == "__main__":
    sys.exit(main())
