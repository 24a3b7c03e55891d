"""What commands say of themselves with -h."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import pytest

from kumulus.cli.main import parser_of
from kumulus.cli.registry import offered


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
