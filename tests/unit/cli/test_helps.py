"""What commands say of themselves with -h."""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kumulus.cli.main import main
from kumulus.cli.registry import GROUPS, arguments, offered, parser_of, subcommands

TRACE = ("trace", "import", "csv", "jobs.csv", "--stack", "s.yaml", "--experiment", "e.yaml")


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """A parser, and those of its subcommands."""
    yield parser
    for each in subcommands(parser).values():
        yield from parsers(each)


@pytest.mark.parametrize("name", offered())
def test_every_argument_of_every_command_says_what_it_is(name: str) -> None:
    for parser in parsers(parser_of(name, offered()[name].command)[1]):
        assert (parser.description or "").strip(), parser.prog
        own = [each for each in arguments(parser) if not isinstance(each.choices, dict)]
        assert [each.dest for each in own if not each.help] == [], parser.prog


def test_commands_are_listed_in_the_groups_of_the_page_of_commands() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "start.md").read_text()
    sections = dict(re.findall(r"^\| (On [^|]+) \| \|\n(.*?)\n\n", page, re.MULTILINE | re.DOTALL))
    assert list(sections) == list(GROUPS)
    for name, each in offered().items():
        assert re.search(rf"kumulus {name}\b", sections[each.command.group]), name


@pytest.mark.parametrize("number", ["nan", "inf", "-1", "0"])
@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("plan", "--nodes", "10"), "--memory"),
        (TRACE, "--speed"),
        (TRACE, "--inflate"),
        (("replay", "import", "audit.log", "--experiment", "e.yaml"), "--speed"),
        (("capture", "--to", "capture"), "--rate"),
        # Before a clone is created, which takes a while.
        (("fit", "pod.yaml", "--on", "capture", "-s", "none", "--watch"), "--every"),
    ],
)
def test_a_number_that_is_none_is_refused(
    words: tuple[str, ...],
    option: str,
    number: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Pulumi.yaml").write_text("name: fleet\nruntime: python\n")
    kubeconfig = tmp_path / ".kumulus" / "clusters" / "clone" / "kubeconfig.yaml"
    kubeconfig.parent.mkdir(parents=True)
    kubeconfig.touch()
    (tmp_path / "pod.yaml").write_text("kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c}]}\n")
    assert main([*words, option, number]) == 1
    assert capsys.readouterr().err.startswith(f"error: {option} ")
