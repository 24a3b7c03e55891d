"""Run every trial in full and publish the counts: ``make soak``, or ``python -m tests.soak`` with these options.

What ``make test`` runs of these tests is a small sample. A part that was ended can be gone on with by ``--first``.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

from tests.soak.report import RECORD, publish
from tests.support import trials

HERE = Path(__file__).resolve().parent
# Rounds of each part. A round has three trials of kills or of interrupts, twenty-four of faults, one of power; a round
# of input takes one minute, a round of alone fifty.
PARTS = {
    "kills": 50,
    "faults": 2,
    "interrupts": 10,
    "power": 52,
    "sequences": 1,
    "side_by_side": 1,
    "input": 10,
    "alone": 1,
}


def main() -> int:
    """Run the parts one after the other, then write the table; 1 when one of them failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--rounds", type=int, help="rounds of each part instead of its own number")
    parser.add_argument("--first", type=int, default=0, help="number of the first round")
    parser.add_argument("--seed", default=trials.seed(), help="seed of all moments")
    parser.add_argument("--anew", action="store_true", help="forget what was recorded before")
    parser.add_argument("--publish", action="store_true", help="only write the table anew")
    asked = parser.parse_args()
    for part in asked.parts:
        if part not in PARTS:
            parser.error(f"no part {part!r}; there are {', '.join(PARTS)}")
    if asked.anew:
        RECORD.unlink(missing_ok=True)
    failed = []
    for part in [] if asked.publish else asked.parts or list(PARTS):
        variables = {
            trials.ROUNDS: str(asked.rounds or PARTS[part]),
            trials.FIRST: str(asked.first),
            trials.SEED: asked.seed,
            trials.RECORD: str(RECORD),
        }
        # A full part takes longer than the time limit of a test.
        command = [sys.executable, "-m", "pytest", str(HERE / f"test_{part}.py"), "-q", "-s", "--timeout=0"]
        if subprocess.run(command, env={**os.environ, **variables}, check=False).returncode:
            failed.append(part)
    publish()
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
