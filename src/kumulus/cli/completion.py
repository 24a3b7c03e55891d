"""Print what a shell needs to complete commands, options and the names of stacks.

eval "$(kumulus completion bash)"                                  # in ~/.bashrc
eval "$(kumulus completion zsh)"                                   # in ~/.zshrc, after compinit
kumulus completion fish > ~/.config/fish/completions/kumulus.fish
"""

import argparse
import importlib
import os
from importlib.util import find_spec
from typing import NoReturn

from kumulus.cli import project, which
from kumulus.cli.errors import UserError
from kumulus.cli.registry import arguments, complete_by, offered, parser_of, subcommands
from kumulus.host import installation
from kumulus.toolchain import venv

SHELLS = ("bash", "zsh", "fish")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("shell", choices=SHELLS, help="which shell reads it")


def run(args: argparse.Namespace) -> int:
    """Print it."""
    checkout = installation.checkout()
    if find_spec("argcomplete") is None and checkout is not None:
        venv.ensure(checkout, ["completion"])
        importlib.invalidate_caches()
    if find_spec("argcomplete") is None:
        way = installation.way_to_add("completion")
        raise UserError(f"completion needs the package argcomplete\n  To get it: {way}")
    from argcomplete.shell_integration import shellcode

    print(shellcode(["kumulus"], shell=args.shell))
    return 0


_STACKS = ("stack", "named")


def complete() -> NoReturn:
    """Print the possible completions of the line for the shell, and exit."""
    import argcomplete

    argcomplete.autocomplete(parser(os.environ.get("COMP_LINE", "")), always_complete_options="long")
    os._exit(1)


def parser(line: str) -> argparse.ArgumentParser:
    """A parser of the whole command, with the arguments of only the subcommand on the line."""
    whole = argparse.ArgumentParser(prog="kumulus")
    whole.add_argument("--version", action="store_true")
    subparsers = whole.add_subparsers()
    words = line.split()
    for name, each in offered().items():
        if len(words) > 1 and words[1] == name:
            _, its = parser_of(name, each.command)
            if any(action.dest == "named" for action in arguments(its)):
                # The first word of these: see stack.add_arguments.
                its.add_argument("stack", nargs="?")
            _with_stacks(its)
            subparsers.add_parser(name, parents=[its], add_help=False, help=each.command.summary)
        else:
            subparsers.add_parser(name, help=each.command.summary)
    return whole


def stacks(**_: object) -> list[str]:
    """The names of the project's stacks."""
    try:
        return project.current().stacks()
    except UserError:
        return []


def clusters(parsed_args: argparse.Namespace, **_: object) -> list[str]:
    """The names of the clusters of the stack on the line so far, or else of the current stack."""
    try:
        stack = project.chosen(getattr(parsed_args, "stack", None))
        return [each.cluster for each in which.every(stack) if each.cluster]
    except UserError:
        return []


def _with_stacks(its: argparse.ArgumentParser) -> None:
    for action in arguments(its):
        if action.dest in _STACKS:
            complete_by(action, stacks)
        if action.dest == "cluster":
            complete_by(action, clusters)
    for each in subcommands(its).values():
        _with_stacks(each)
