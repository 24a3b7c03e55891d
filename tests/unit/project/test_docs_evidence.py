"""The pages on reliability and security say what a test shows, and name it."""

import re
from pathlib import Path

import pytest

from tests.support.project import ROOT

PAGES = ("reliability.md", "security.md")
_TEST = re.compile(r"tests/[\w/]+\.py")
_NO_TEST = re.compile(r"same test|the same,|not tested|Not tested")


def text(page: str) -> str:
    return (Path(ROOT) / "docs" / page).read_text()


@pytest.mark.parametrize("page", PAGES)
def test_every_test_that_is_named_is_there(page: str) -> None:
    named = _TEST.findall(text(page))
    assert named
    assert [each for each in named if not (ROOT / each).is_file()] == []


def claims() -> dict[str, str]:
    """What the page on reliability says of each fault, by its first words, and of each limit."""
    after = text("reliability.md").partition("## What happens at each fault")[2]
    faults, _, limits = after.partition("## Limits imposed by Pulumi")
    found = {part.partition("**")[0]: part for part in re.split(r"^\*\*(?=\S)", faults, flags=re.MULTILINE)[1:]}
    return found | {part[:40]: part for part in re.split(r"^- ", limits, flags=re.MULTILINE)[1:]}


@pytest.mark.parametrize("claim", list(claims()))
def test_what_happens_at_a_fault_names_its_test(claim: str) -> None:
    assert _TEST.search(claims()[claim]) or _NO_TEST.search(claims()[claim])


def rows() -> list[str]:
    """Who might attack a stack, and what keeps them out."""
    table = text("security.md").partition("| Who |")[2].partition("\n\n")[0]
    return table.splitlines()[2:]


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.split("|")[1].strip()[:30])
def test_what_keeps_somebody_out_names_its_test(row: str) -> None:
    # Who is not kept out needs none.
    assert _TEST.search(row) or _NO_TEST.search(row) or "| nothing:" in row
