"""What commands say of themselves with -h."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kumulus.cli.main import parser_of
from kumulus.cli.registry import GROUPS, offered


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """A parser, and those of its subcommands."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from parsers(each)


@pytest.mark.parametrize("name", offered())
def test_every_argument_of_every_command_says_what_it_is(name: str) -> None:
    for parser in parsers(parser_of(name, offered()[name].command)[1]):
        assert (parser.description or "").strip(), parser.prog
        arguments = [each for each in parser._actions if not isinstance(each, argparse._SubParsersAction)]
        assert [each.dest for each in arguments if not each.help] == [], parser.prog


def test_commands_are_listed_in_the_groups_of_the_page_of_commands() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "start.md").read_text()
    sections = dict(re.findall(r"^\| (On [^|]+) \| \|\n(.*?)\n\n", page, re.MULTILINE | re.DOTALL))
    assert list(sections) == list(GROUPS)
    for name, each in offered().items():
        assert re.search(rf"kumulus {name}\b", sections[each.command.group]), name
