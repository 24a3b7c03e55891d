"""What `kumulus fit --watch` says, and when it says nothing."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from kumulus.extras.capture.commands.fit import Said
from kumulus.extras.capture.fit import Answer
from kumulus.extras.capture.probe import Probe
from kumulus.extras.capture.verdict import Verdict

WANTED = Probe("training", "default", {}, {}, 3)


def answer(fitted: int, reason: str = "") -> Answer:
    return Answer(Verdict(3, Counter({"node": fitted}), reason))


def test_only_another_answer_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    said = Said(WANTED)
    for each in (answer(1, "2 Insufficient cpu"), answer(1, "3 Insufficient cpu"), answer(3), answer(3)):
        said.of(each, [])
    lines = [re.sub(r"^[0-9:]{8}  ", "", line) for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "training: 1 of 3 pods fit: 2 Insufficient cpu",
        "training: 3 of 3 pods fit, before 1",
    ]


def test_a_source_that_is_away_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    said = Said(WANTED)
    for each in (answer(3), "no answer", "no answer", answer(3), "no answer", answer(2, "why")):
        said.of(*((None, [each]) if isinstance(each, str) else (each, [])))
    lines = [re.sub(r"^[0-9:]{8}  ", "", line) for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "training: 3 of 3 pods fit",
        "no answer; going on",
        "no answer; going on",
        "training: 2 of 3 pods fit, before 3: why",
    ]
