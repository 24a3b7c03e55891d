"""The process that a scheduler's output goes through."""

import io
from pathlib import Path

from kumulus.extras.schedulers.decisions.document import Decision, DecisionTotals, decisions
from kumulus.extras.schedulers.decisions.reader import read


def bound(number: int) -> bytes:
    return (
        f'I1 1 schedule_one.go:1] "Successfully bound pod to node" pod="n/p{number}" node="x" '
        "evaluatedNodes=2 feasibleNodes=1\n"
    ).encode()


def test_decisions_are_in_the_file_and_all_else_in_the_log(tmp_path: Path) -> None:
    log = io.BytesIO()
    read([b"hello\n", bound(1), b"bye\n"], tmp_path / "d", log)

    assert log.getvalue() == b"hello\nbye\n"
    assert list(decisions(tmp_path / "d")) == [Decision("n/p1", "x", 2, 1), DecisionTotals(bound=1, explained=1)]


def test_a_file_at_its_limit_takes_no_more_and_says_how_many_it_left_out(tmp_path: Path) -> None:
    read([bound(n) for n in range(10)], tmp_path / "d", io.BytesIO(), limit=200)

    *kept, totals = decisions(tmp_path / "d")
    assert isinstance(totals, DecisionTotals)
    assert 0 < len(kept) < 10
    assert (totals.bound, totals.dropped) == (10, 10 - len(kept))


def test_a_second_start_adds_to_the_file(tmp_path: Path) -> None:
    for number in (1, 2):
        read([bound(number)], tmp_path / "d", io.BytesIO())

    assert [each.pod for each in decisions(tmp_path / "d") if isinstance(each, Decision)] == ["n/p1", "n/p2"]


def test_a_last_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    read([bound(1)], tmp_path / "d", io.BytesIO())
    text = (tmp_path / "d").read_text()
    (tmp_path / "d").write_text(text + '{"pod":"n/p2","no')

    assert len(list(decisions(tmp_path / "d"))) == 2
