"""Numbers of things, and lists of names, in messages."""

from __future__ import annotations

from kumulus.model.words import counted, listed


def test_one_thing_is_in_the_singular() -> None:
    assert [counted(number, "node") for number in (0, 1, 2550)] == ["0 nodes", "1 node", "2,550 nodes"]


def test_of_many_names_the_first_are_listed_and_the_others_counted() -> None:
    assert listed(["a", "b"], 2) == "a, b"
    assert listed([str(number) for number in range(2000)], 2, "; ") == "0; 1 and 1,998 more"
    assert listed([], 2) == ""
