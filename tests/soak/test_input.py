"""Damaged and hostile input files of every kind: a readable error or none, within two seconds and 200 MB."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.support import fuzz
from tests.support.trials import Trial, note, rounds, seed, soaking

# A round is a minute of CPU time, divided among the kinds; a short sample without `make soak`.
SECONDS = 60 / len(fuzz.KINDS)
SAMPLE = 2.0


def test_hostile_and_damaged_files_are_told_soon_in_words_and_in_little_memory(tmp_path: Path) -> None:
    wrong = [
        mistake
        for number in rounds(1)
        for kind in fuzz.KINDS
        for mistake in fed(kind, f"{seed()}:{number}", SECONDS if soaking() else SAMPLE, tmp_path / "now")
    ]
    assert wrong == []


def fed(kind: str, drawn: str, seconds: float, now: Path) -> list[str]:
    """Run one round of one kind in its own process; returns what broke a promise."""
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.fuzz", kind, drawn, str(seconds), str(now)],
        cwd=fuzz.ROOT,
        env={**os.environ, "PYTHONPATH": str(fuzz.ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds * 40 + 600,
    )
    told: dict[str, Any] = {"texts": 0, "broken": [now.read_text()[:300]]}
    if done.returncode == 0:
        told = json.loads(done.stdout)
    outcome = f"{told['texts']} texts" if not told["broken"] else json.dumps(told["broken"][:3])
    note(
        Trial(
            "hostile and damaged files",
            f"read, {kind}",
            drawn,
            outcome,
            not told["broken"],
            round(time.monotonic() - began, 1),
            injected=told["texts"],
        )
    )
    if done.returncode:
        return [f"it ended: {done.stderr[-2000:]}"]
    return [str(each) for each in told["broken"]] or ([] if told["texts"] else ["nothing was read"])
