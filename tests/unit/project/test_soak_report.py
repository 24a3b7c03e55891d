"""The table of docs/reliability.md: what is counted in it, and what is not."""

from pathlib import Path

import pytest

from tests.soak.report import publish
from tests.support import trials
from tests.support.trials import NotStruck, Trial, note, until_struck


def test_trials_are_counted_by_fault_and_operation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record, page = tmp_path / "trials.jsonl", tmp_path / "page.md"
    monkeypatch.setenv(trials.RECORD, str(record))
    for trial in (
        Trial("kill -9", "create", "plugin, after 5 of 400 nodes", "by the next up", True, 3.0, 1),
        Trial("kill -9", "create", "pulumi, after 7 of 400 nodes", "a-0 is missing", False, 5.0, 1, redrawn=2),
        Trial("500 for one request in five", "delete", "throughout", "in the same up", True, 0.5, 1200),
    ):
        note(trial)
    page.write_text("before\n<!-- counted: begin -->\nold\n<!-- counted: end -->\nafter\n")
    publish(record, page)
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert ": 3 trials, 1 of which did not converge. Every fault struck, 1,202 times in all; 2 that came too late" in (
        text.replace("\n", " ")
    )
    assert "| kill -9 | create | 2 | 2 | 1 | 4.0 | 5.0 |" in text
    assert "| 500 for one request in five | delete | 1 | 1,200 | 1 | 0.5 | 0.5 |" in text


def test_a_trial_whose_fault_came_too_late_is_drawn_anew_and_counted_so() -> None:
    drawn: list[int] = []

    def trial(draw: int) -> Trial:
        drawn.append(draw)
        if draw < 2:
            raise NotStruck("it had ended")
        return Trial("kill -9", "create", "plugin", "by the next up", True, 3.0, 1)

    assert until_struck(trial).redrawn == 2
    assert drawn == [0, 1, 2]


def test_a_fault_that_never_strikes_fails_the_test_and_so_does_one_that_is_only_said_to() -> None:
    def late(draw: int) -> Trial:
        raise NotStruck("it had ended")

    with pytest.raises(AssertionError, match="did not strike in 8 draws"):
        until_struck(late)
    with pytest.raises(AssertionError, match="without its fault"):
        until_struck(lambda _: Trial("500", "create", "throughout", "in the same up", True, 1.0, 0))


def test_a_trials_moment_depends_on_its_seed_and_on_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    first = trials.chance("kill", "create", 3).random()
    trials.chance("kill", "create", 2).random()
    assert trials.chance("kill", "create", 3).random() == first
    monkeypatch.setenv(trials.SEED, "another")
    assert trials.chance("kill", "create", 3).random() != first
