"""Extras: found by their entry points, ours and a third party's; what is broken or missing is said."""

import shutil
from importlib import import_module, util
from pathlib import Path

import pytest

from kumulus.cli import main
from kumulus.cli.registry import COMMANDS, offered
from kumulus.host import extras, installation
from kumulus.toolchain import venv
from tests.support import toy
from tests.support.project import ROOT

OURS = sorted(path.parent.name for path in (ROOT / "src" / "kumulus").rglob("extra.py"))

COMMAND = "import sys; from kumulus.cli.main import main; sys.exit(main(sys.argv[1:]))"
STACK = "from kumulus.stackfile.load import load; from pathlib import Path; "
# As the engine's language host runs a program, which shows the message of a RunError and nothing else.
PROGRAM = """
import pulumi
try:
    {what}
except pulumi.RunError as error:
    print(f"shown: {{error}}")
"""


def broken(site: Path, folder: Path, **files: str) -> Path:
    """A copy of the installed toy with other contents in some of its modules."""
    copy = folder / "site"
    shutil.copytree(site, copy)
    for name, text in files.items():
        (copy / "toy_extra" / f"{name}.py").write_text(text)
    return copy


def test_ours_are_all_found_and_each_is_called_like_its_folder() -> None:
    assert [each.name for each in extras.every() if not each.install] == OURS


def test_whatever_an_extra_names_is_there() -> None:
    for extra in extras.every():
        for each in extra.commands.values():
            module = import_module(each.module)
            assert callable(module.run), each.module
            assert callable(module.add_arguments), each.module
    for part in ("resources", "additions", "runs", "findings", "files"):
        extras.brought(part)
    for part in ("schedulers", "runtimes", "sections", "stack_sections"):
        assert all(extras.named(part, name) for name in extras.names(part))


def test_no_two_bring_a_command_of_the_same_name() -> None:
    names = [*COMMANDS, *(name for extra in extras.every() for name in extra.commands)]
    assert sorted(names) == sorted(set(names))
    assert set(names) == set(offered())


def test_a_third_partys_command_is_listed_explained_and_run(toy_site: Path) -> None:
    listed = toy.ask(toy_site, "-c", COMMAND, "-h").stdout
    assert "\ntoy: a toy\n  play " in listed
    played = toy.ask(toy_site, "-c", COMMAND, "play", "blocks")
    assert (played.returncode, played.stdout, played.stderr) == (0, "playing with blocks\n", "")


def test_a_third_partys_section_is_checked_described_and_declared(toy_site: Path) -> None:
    """The program: a stack file with the section declares what the section is for, and a mistake in it is explained."""
    answer = toy.ask(toy_site, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/unit/host/toy_stack.py", cwd=ROOT)
    assert answer.returncode == 0, answer.stdout


SYNTAX = "def ("
LATER = "from kumulus.host.extras import Extra\nEXTRA = Extra('toy', 'of a later Kumulus', colours=())\n"


REASONS = (
    ({"__init__": "import nothing_like_it\n"}, "No module named 'nothing_like_it'"),
    ({"__init__": ""}, "has no attribute 'EXTRA'"),
    ({"__init__": "EXTRA = 1\n"}, "is no Extra"),
    ({"__init__": SYNTAX}, "invalid syntax"),
    ({"__init__": LATER}, "unexpected keyword argument 'colours'"),
)


# Each reason by the quickest; what the others do with it does not depend on which it is.
@pytest.mark.parametrize(
    ("what", "files", "reason"),
    [
        *(("command", *each) for each in REASONS),
        *((what, *each) for what, each in zip(("plugin", "program", "component"), REASONS[2:], strict=True)),
    ],
)
def test_one_that_is_broken_is_one_line_without_a_traceback(
    what: str, files: dict[str, str], reason: str, toy_site: Path, tmp_path: Path
) -> None:
    site = broken(toy_site, tmp_path, **files)
    answer = {
        "command": lambda: toy.ask(site, "-c", COMMAND, "-h"),
        "plugin": lambda: toy.ask(site, "-m", "kumulus.provider.plugin", "127.0.0.1:1"),
        "program": lambda: toy.ask(site, "-c", PROGRAM.format(what="from kumulus import program; program.run()")),
        "component": lambda: toy.ask(site, "-c", PROGRAM.format(what="from kumulus import KwokCluster")),
    }[what]()
    said = answer.stderr if what in ("command", "plugin") else answer.stdout
    first = "error: " if what in ("command", "plugin") else "shown: "
    assert said.startswith(f"{first}the extra toy "), answer
    assert reason in said
    assert said.count("\n") == 1
    assert "Traceback" not in answer.stderr
    assert answer.returncode == (1 if what in ("command", "plugin") else 0)


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"runtime": SYNTAX}, "the extra toy cannot be loaded (invalid syntax"),
        ({"runtime": "RUNTIME = 'kwok'\n"}, "has no Descriptor for 'toy'"),
        ({"games": "class Games: pass\n"}, "has no ClusterSection for 'games'"),
    ],
)
def test_a_part_that_is_broken_is_one_line_too(
    files: dict[str, str], reason: str, toy_site: Path, tmp_path: Path
) -> None:
    site = broken(toy_site, tmp_path, **files)
    for answer in (
        toy.ask(site, "-c", PROGRAM.format(what="from kumulus import KwokCluster")),
        toy.ask(site, "-m", "kumulus.provider.plugin", "127.0.0.1:1") if "runtime" in files else None,
    ):
        if answer:
            assert reason in answer.stdout + answer.stderr
            assert "Traceback" not in answer.stderr, answer


def test_a_section_whose_packages_are_missing_is_refused_where_a_file_has_it(toy_site: Path, tmp_path: Path) -> None:
    init = (toy.SOURCE / "toy_extra" / "__init__.py").read_text()
    needy = init.replace('install="', 'needs=("toy_box",), install="')
    site = broken(toy_site, tmp_path, __init__=needy, games="import toy_box\n")
    what = "print(load({'cluster': {%s}}, 'dev', Path()).cluster_name)"
    assert toy.ask(site, "-c", STACK + what % "").stdout == "dev\n"
    refused = toy.ask(site, "-c", STACK + what % "'games': {'players': []}").stderr
    assert "games: needs toy_box, which the extra toy has; run: pip install 'toy-extra'" in refused, refused


def test_a_name_that_is_taken_is_refused(toy_site: Path, tmp_path: Path) -> None:
    text = (toy.SOURCE / "toy_extra" / "__init__.py").read_text()
    for ours, theirs in (('runtimes={"toy"', 'runtimes={"kwok"'), ('sections={"games"', 'sections={"tenants"')):
        site = broken(toy_site, tmp_path / theirs[:4], __init__=text.replace(ours, theirs))
        answer = toy.ask(site, "-c", PROGRAM.format(what="from kumulus import EmulatedCluster"))
        assert "the extra toy brings" in answer.stdout, answer
        assert "which the core has; uninstall it" in answer.stdout


def test_a_command_whose_packages_are_missing_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    there = util.find_spec
    monkeypatch.setattr(util, "find_spec", lambda name: None if name == "textual" else there(name))
    monkeypatch.setattr(installation, "checkout", lambda: None)
    assert main.main(["watch", "--once"]) == 1
    assert capsys.readouterr().err == (
        "error: `kumulus watch` needs textual, which comes with the extra watch\n"
        f"  To get it: pip install '{ROOT}[watch]'\n"
    )


CORE_ONLY = {"topology": ("-s", "racks"), "price": ("-s", "racks"), "plan": ("--nodes", "10")}


@pytest.mark.parametrize("name", CORE_ONLY)
def test_a_command_that_needs_the_core_only_runs_without_any_extras_packages(name: str) -> None:
    packages = [each for extra in extras.every() for each in extra.needs]
    without = f"import sys; sys.modules |= dict.fromkeys({packages}); {COMMAND}"
    answer = toy.ask(ROOT / "src", "-c", without, name, *CORE_ONLY[name], cwd=ROOT)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert "node" in answer.stdout


def test_these_commands_of_extras_with_packages_need_the_core_only() -> None:
    assert {name for name, each in offered().items() if each.command.core_only} == set(CORE_ONLY)


def test_a_checkout_gets_the_packages_of_a_command_by_itself(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    there, installed = util.find_spec, list[str]()
    monkeypatch.setattr(util, "find_spec", lambda name: None if name == "textual" and not installed else there(name))
    monkeypatch.setattr(venv, "ensure", lambda _, names: installed.extend(names))
    with pytest.raises(SystemExit):
        main.main(["watch", "--onec"])
    assert not installed
    assert main.main(["watch", "--once", "-s", "nothing"]) == 1
    assert installed == ["watch"]
    assert "come with" not in capsys.readouterr().err
