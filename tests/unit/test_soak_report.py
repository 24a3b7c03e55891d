"""The table of docs/reliability.md: what is counted in it, and what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak.report import publish
from tests.support import trials
from tests.support.trials import Trial, note


def test_trials_are_counted_by_fault_and_operation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record, page = tmp_path / "trials.jsonl", tmp_path / "page.md"
    monkeypatch.setenv(trials.RECORD, str(record))
    for trial in (
        Trial("kill -9", "create", "plugin, after 5 of 1000 nodes", "by the next up", True, 3.0),
        Trial("kill -9", "create", "pulumi, after 7 of 1000 nodes", "a-0 is missing", False, 5.0),
        Trial("kill -9", "create", "plugin, too late", "by the next up", True, 1.0),
        Trial("Ctrl-C", "delete", "after 9 of 1000 nodes", "recorded", True, 0.5),
    ):
        note(trial)
    page.write_text("before\n<!-- counted: begin -->\nold\n<!-- counted: end -->\nafter\n")
    publish(record, page)
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert ": 3 trials. 1 more are not counted" in text
    assert "| kill -9 | create | 2 | 1 | 4.0 | 5.0 |" in text
    assert "| Ctrl-C | delete | 1 | 1 | 0.5 | 0.5 |" in text


def test_a_trials_moment_depends_on_its_seed_and_on_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    first = trials.chance("kill", "create", 3).random()
    trials.chance("kill", "create", 2).random()
    assert trials.chance("kill", "create", 3).random() == first
    monkeypatch.setenv(trials.SEED, "another")
    assert trials.chance("kill", "create", 3).random() != first
