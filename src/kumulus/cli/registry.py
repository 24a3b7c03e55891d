"""Which subcommands there are: those of the core, and those of the extras. Each is a module with two functions.

    def add_arguments(parser: argparse.ArgumentParser) -> None
    def run(args: argparse.Namespace) -> int        # the exit code

Its docstring is the text of `kumulus <command> -h`. It raises `kumulus.cli.errors.UserError` for the user's mistakes.
"""

import argparse
import importlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, NoReturn, Protocol, cast

from kumulus.host import extras, installation
from kumulus.host.extras import Extra


class Module(Protocol):
    """The interface of a subcommand's module."""

    __doc__: str | None

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the command's arguments."""

    def run(self, args: argparse.Namespace) -> int:
        """Run the command; returns the exit code."""


_SHORT = 160
_WRONG_COMMAND_LINE = 2


class Parser(argparse.ArgumentParser):
    """An argument parser that says what is wrong, and the usage only if that is short; so do its subparsers.

    It takes options by their whole names only, unlike argparse's, for which `--name` may stand for `--namespace`.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"allow_abbrev": False, **kwargs})

    def error(self, message: str) -> NoReturn:
        """Print what is wrong and exit with code 2."""
        message = re.sub(r"argument (\S+): invalid int value: '(.*)'", r"\1 is \2, not a whole number", message)
        usage = " ".join(self.format_usage().split())
        hint = usage if len(usage) <= _SHORT else f"`{self.prog} -h` lists the arguments"
        self.exit(_WRONG_COMMAND_LINE, f"error: {message}\n  {hint}\n")

    def add_subparsers(self, **kwargs: Any) -> Any:
        """As argparse does it, but each subcommand's help begins with its line from the parent's help."""
        commands: Any = super().add_subparsers(**kwargs)
        undescribed = commands.add_parser

        def add_parser(name: str, **kwargs: Any) -> argparse.ArgumentParser:
            help_text = kwargs.get("help")
            about = {"description": f"{help_text[0].upper()}{help_text[1:]}."} if help_text else {}
            return cast(argparse.ArgumentParser, undescribed(name, **{**about, **kwargs}))

        commands.add_parser = add_parser
        return commands


def arguments(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """The arguments of a parser. argparse has no public list of them: nothing else here uses a private part of it."""
    return parser._actions


def subcommands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The parsers of a parser's subcommands, by name; only their argument has a dict of choices."""
    return next((each.choices for each in arguments(parser) if isinstance(each.choices, dict)), {})


def complete_by(argument: argparse.Action, completer: Callable[..., Iterable[str]]) -> None:
    """Have the shell complete an argument by what a function returns.

    Args:
        completer: called with ``parsed_args``, the values on the line so far.
    """
    # completion.py reads it.
    argument.completer = completer  # type: ignore[attr-defined]


def port(written: str) -> int:
    """Read a port."""
    if not written.isdigit() or not 1 <= int(written) <= 65535:
        raise argparse.ArgumentTypeError(f"{written!r} is not a port; write a number from 1 to 65535")
    return int(written)


PROJECT, STACK, YOURS, MACHINE = "On a project", "On a stack", "On your own cluster", "On files and machines"
GROUPS = (PROJECT, STACK, YOURS, MACHINE)
"""The titles in the list of commands, as in docs/start.md."""


@dataclass(frozen=True)
class Command:
    """A line of the list that `kumulus -h` prints."""

    module: str
    """Where it is implemented, see :class:`Module`."""
    summary: str
    """What the list says of it."""
    venv: bool = False
    """Whether it needs the packages that Kumulus needs; in a checkout it then runs in .venv."""
    parses: bool = False
    """Whether it reads the project's files; in a checkout it then runs in .venv, if there is one."""
    passes_on: bool = False
    """Whether arguments that it does not know go to the program that it starts."""
    checkout: bool = False
    """Whether it makes sense only in a checkout."""
    core_only: bool = False
    """Of an extra's command: whether it needs none of the extra's packages."""
    group: str = ""
    """Where the list has it, one of :data:`GROUPS`; empty for a third party's, which are listed under their extra."""


# By group; the empty text stands for the module of the command's name.
_CORE: dict[str, dict[str, Command]] = {
    PROJECT: {
        "new": Command("", "create a project: a stack of 30 nodes, and a program of five lines", venv=True),
        "completion": Command("", "print a script that completes commands and stacks in a shell"),
        "docs": Command("", "print a page of the documentation, with its address"),
    },
    STACK: {
        "up": Command("", "fetch what is missing, then bring a stack up", parses=True, passes_on=True),
        "preview": Command("", "fetch what is missing, then show the changes of `up`", parses=True, passes_on=True),
        "down": Command("", "destroy what a stack created; no error if there is nothing", parses=True, passes_on=True),
        "env": Command("", 'print shell commands for plain pulumi and kubectl: `eval "$(kumulus env)"`', parses=True),
        "fault": Command("", "inject a fault into a live cluster, clear it, list active faults", venv=True),
    },
    MACHINE: {
        "schema": Command("", "print the JSON schema of a stack or experiment file, for editors", venv=True),
        "convert": Command("", "print a KEMU ClusterConfig as a stack file", venv=True),
        "ls": Command("", "list every cluster on this machine, its owner and its size", venv=True),
        "doctor": Command("", "list the tools: what is installed, what is missing, how to get it", parses=True),
        "tools": Command("", "fetch missing tools: download or build them, or list them"),
        "kind": Command("", "run kind the way Kumulus does", passes_on=True, venv=True),
        "venv": Command("", "create or update .venv", checkout=True),
        "clean": Command("", "remove .venv and caches", checkout=True),
        "uninstall": Command("", "list what is left of Kumulus on this machine, and remove it", venv=True),
    },
}
COMMANDS: dict[str, Command] = {
    name: replace(each, module=f"kumulus.cli.{name.replace('-', '_')}", group=group)
    for group, commands in _CORE.items()
    for name, each in commands.items()
}
"""Those of the core."""


@dataclass(frozen=True)
class Offered:
    """A subcommand, with the extra that brings it; None for the core's."""

    command: Command
    extra: Extra | None = None


def offered() -> dict[str, Offered]:
    """Every subcommand that makes sense here, by name.

    Raises:
        BrokenExtra: an extra cannot be imported.
    """
    found = {name: Offered(command) for name, command in COMMANDS.items()}
    for extra in extras.every():
        found |= {name: Offered(command, extra) for name, command in extra.commands.items() if name not in COMMANDS}
    return {name: each for name, each in found.items() if installation.checkout() or not each.command.checkout}


def parser_of(name: str, command: Command) -> tuple[Module, argparse.ArgumentParser]:
    """A subcommand's module, and the parser of its arguments."""
    module = cast(Module, importlib.import_module(command.module))
    parser = Parser(
        prog=f"kumulus {name}", description=module.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    module.add_arguments(parser)
    return module, parser
