"""`kumulus experiment fragmentation`: what of the free GPUs a run's pods could not use, from its report's events."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator

from kumulus.cli.errors import UserError
from kumulus.extras.lab.commands.show import history_of
from kumulus.extras.lab.offline.recorded import Moment, Recorded, fragmentation

_ROWS = 10


def show(args: argparse.Namespace) -> int:
    """Measure a recorded run.

    Raises:
        UserError: the run has no history, or no GPU is in it.
        LabError: there is no such run.
    """
    history = history_of(args.run, args.results, args.repetition)
    found = fragmentation(history)
    if found is None:
        raise UserError(f"{args.run} has no GPUs to be fragmented: its nodes have none, or its pods ask for none")
    if args.json:
        print(json.dumps(_answer(found)))
    else:
        print("\n".join(_table(str(history.about.get("title")), found)))
    return 0


def _answer(found: Recorded) -> dict[str, object]:
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


def _table(title: str, found: Recorded) -> Iterator[str]:
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


def _row(at: int, now: Moment) -> str:
    idle = _share(now.fragmented, now.gpus - now.allocated)
    shares = [_share(part, now.gpus) for part in (now.arrived, now.allocated, now.fragmented)]
    cells = [f"{at / 1000:>8,.0f} s", f"{shares[0]:>6.1f} %", f"{shares[1]:>7.2f} %", f"{shares[2]:>15.2f} %"]
    return "  ".join([*cells, f"{idle:>6.2f} %"])


def _share(part: float, whole: int) -> float:
    return 100 * part / whole if whole else 0.0
