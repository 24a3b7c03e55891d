"""Trials of faults: how many, at which seeded moments, and a record of each outcome."""

import functools
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

ROUNDS = "KUMULUS_SOAK_ROUNDS"
FIRST = "KUMULUS_SOAK_FIRST"
SEED = "KUMULUS_SOAK_SEED"
RECORD = "KUMULUS_SOAK_RECORD"


@dataclass(frozen=True)
class Trial:
    """One fault, injected once."""

    fault: str
    """What was done, as docs/reliability.md names it."""
    during: str
    """``create``, ``update``, ``delete`` or another operation."""
    moment: str
    """When it was injected, and where."""
    outcome: str
    """``in the same up``, ``by the next up``, or what went wrong."""
    converged: bool
    """Whether the nodes and their fields were exactly as declared in the end."""
    seconds: float
    """Duration of the up that converged; for an interrupt, from the signal to pulumi's end."""
    injected: int
    """How often the fault was seen to strike: 1 for a kill, the number of requests harmed by a proxy."""
    redrawn: int = 0
    """How often it was drawn again because the command had ended before its moment came."""


class NotStruck(Exception):
    """The command had ended before the fault's moment came: the trial is drawn again."""


_MOST_DRAWS = 8


def until_struck(trial: Callable[[int], Trial]) -> Trial:
    """Draw a trial again until its fault strikes.

    Args:
        trial: one trial; gets the number of earlier draws, on which its moment has to depend.

    Raises:
        AssertionError: it never struck, so that the test shows nothing.
    """
    for drawn in range(_MOST_DRAWS):
        try:
            found = trial(drawn)
        except NotStruck as missed:
            print(f"seed {seed()}: not struck, drawn again: {missed}", file=sys.stderr, flush=True)
            continue
        assert found.injected > 0, f"counted as a trial without its fault: {found}"
        return replace(found, redrawn=drawn)
    raise AssertionError(f"the fault did not strike in {_MOST_DRAWS} draws")


def seed() -> str:
    """The seed of all trials: a fixed one unless the environment sets another."""
    return os.environ.get(SEED) or "kumulus"


def rounds(sample: int) -> range:
    """Numbers of the rounds to run: a small sample, or more in ``make soak``."""
    first = int(os.environ.get(FIRST) or 0)
    return range(first, first + int(os.environ.get(ROUNDS) or sample))


def soaking() -> bool:
    """Whether ``make soak`` runs, and not the small sample of ``make test``."""
    return bool(os.environ.get(ROUNDS))


def chance(*what: object) -> random.Random:
    """A source of random numbers for one trial, which does not depend on those before it."""
    return random.Random(":".join(map(str, (seed(), *what))))


def note(trial: Trial) -> None:
    """Print a trial and, when it is recorded, append it to the record."""
    print(f"seed {seed()}: {trial}", file=sys.stderr, flush=True)
    if path := os.environ.get(RECORD):
        line = {"date": datetime.now(UTC).strftime("%Y-%m-%d"), "seed": seed(), "code": _code(), **asdict(trial)}
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with Path(path).open("a") as record:
            record.write(json.dumps(line) + "\n")
            record.flush()
            os.fsync(record.fileno())


@functools.cache
def _code() -> str:
    """The commit under test, with a + where the package differs from it."""

    def git(*words: str) -> str:
        root = Path(__file__).resolve().parents[2]
        return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False).stdout.strip()

    return git("rev-parse", "--short=12", "HEAD") + ("+" if git("status", "--porcelain", "src", "components") else "")


def recorded(path: Path) -> Iterator[tuple[str, Trial]]:
    """The trials of a record, each with its date."""
    for line in path.read_text().splitlines():
        entry = json.loads(line)
        date = entry.pop("date")
        entry.pop("seed")
        entry.pop("code")
        yield date, Trial(**entry)
