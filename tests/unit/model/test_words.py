"""Texts for people: numbers of things, lists of names, tables, and parts of pages."""

from __future__ import annotations

from kumulus.model.words import aligned, counted, listed, with_part


def test_one_thing_is_in_the_singular() -> None:
    assert [counted(number, "node") for number in (0, 1, 2550)] == ["0 nodes", "1 node", "2,550 nodes"]


def test_of_many_names_the_first_are_listed_and_the_others_counted() -> None:
    assert listed(["a", "b"], 2) == "a, b"
    assert listed([str(number) for number in range(2000)], 2, "; ") == "0; 1 and 1,998 more"
    assert listed([], 2) == ""


def test_the_columns_of_a_table_are_aligned_and_its_lines_end_with_their_last_word() -> None:
    assert aligned([("NAME", "SIZE"), ("a", "10 MB"), ("long", "")]) == "NAME  SIZE\na     10 MB\nlong"


def test_a_part_of_a_page_is_replaced_between_its_comments() -> None:
    page = "a\n<!-- x: begin -->\nold\n<!-- x: end -->\nb\n"
    assert with_part(page, "x", "new\n") == page.replace("old", "new")
