"""Extras: found by their entry points, ours and a third party's; what is broken or missing is said."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from importlib import import_module, util
from pathlib import Path

import pytest

from kumulus.cli import main
from kumulus.cli.registry import COMMANDS, offered
from kumulus.host import extras, installation
from tests.support.project import ROOT

OURS = sorted(path.parent.name for path in (ROOT / "src" / "kumulus").rglob("extra.py"))

TOY = """
    from kumulus.cli.registry import Command
    from kumulus.host.extras import Extra

    EXTRA = Extra("toy", "a toy", commands={"play": Command("toy_extra", "play with it")})

    def add_arguments(parser):
        parser.add_argument("with_what")

    def run(args):
        print(f"playing with {args.with_what}")
        return 0
"""


def packed(folder: Path, module: str, value: str) -> None:
    """A distribution as pip leaves it: a module, and its metadata with an entry point."""
    folder.mkdir(exist_ok=True)
    (folder / "toy_extra.py").write_text(textwrap.dedent(module))
    about = folder / "toy_extra-1.0.dist-info"
    about.mkdir(exist_ok=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-extra\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[kumulus]\ntoy = {value}\n")


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    code = "import sys; from kumulus.cli.main import main; sys.exit(main(sys.argv[1:]))"
    code = f"import sys; sys.path.insert(0, {str(folder)!r}); {code}"
    return subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)


def test_ours_are_all_found_and_each_is_called_like_its_folder() -> None:
    assert [each.name for each in extras.every() if not each.install] == OURS


def test_whatever_an_extra_names_is_there() -> None:
    for extra in extras.every():
        for each in extra.commands.values():
            module = import_module(each.module)
            assert callable(module.run), each.module
            assert callable(module.add_arguments), each.module
    for part in ("resources", "additions", "runs", "files"):
        extras.brought(part)
    for extra in extras.every():
        assert all(extras.declares(section) for section in extra.sections_in_cluster)


def test_no_two_bring_a_command_of_the_same_name() -> None:
    names = [*COMMANDS, *(name for extra in extras.every() for name in extra.commands)]
    assert sorted(names) == sorted(set(names))
    assert set(names) == set(offered())


def test_a_third_partys_command_is_listed_explained_and_run(tmp_path: Path) -> None:
    packed(tmp_path / "site", TOY, "toy_extra:EXTRA")
    listed = command(tmp_path / "site", "-h").stdout
    assert "\ntoy: a toy\n  play " in listed
    played = command(tmp_path / "site", "play", "blocks")
    assert (played.returncode, played.stdout, played.stderr) == (0, "playing with blocks\n", "")


@pytest.mark.parametrize(
    ("module", "value", "reason"),
    [
        ("import nothing_like_it\n", "toy_extra:EXTRA", "No module named 'nothing_like_it'"),
        ("", "toy_extra:EXTRA", "has no attribute 'EXTRA'"),
        ("EXTRA = 1\n", "toy_extra:EXTRA", "is no Extra"),
    ],
)
def test_one_that_is_broken_is_named_without_a_traceback(tmp_path: Path, module: str, value: str, reason: str) -> None:
    packed(tmp_path / "site", module, value)
    answer = command(tmp_path / "site", "-h")
    assert answer.returncode == 1
    assert answer.stderr.startswith("error: the extra toy ")
    assert reason in answer.stderr
    assert answer.stderr.count("\n") == 1


def test_a_command_whose_packages_are_missing_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    there = util.find_spec
    monkeypatch.setattr(util, "find_spec", lambda name: None if name == "textual" else there(name))
    assert main.main(["watch", "--once"]) == 1
    error = capsys.readouterr().err
    assert error == (
        "error: `kumulus watch` needs textual, which comes with the extra watch\n"
        f"  To get it: {installation.command()} venv --with watch\n"
    )
