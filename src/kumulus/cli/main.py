"""From the command line to a subcommand, and from what it raises to an exit code."""

from __future__ import annotations

import difflib
import importlib
import io
import os
import sys
from argparse import ArgumentParser
from collections.abc import Sequence

from kumulus.cli.errors import UserError, os_message
from kumulus.cli.registry import COMMANDS, GROUPS, Command, arguments, offered, parser_of, subcommands
from kumulus.host import installation
from kumulus.host.extras import BrokenExtra, Extra
from kumulus.model.words import listed
from kumulus.toolchain.venv import enter_venv, has_venv, with_venv

_INTERRUPTED = 130


def script() -> int:
    """The command `kumulus` of an environment that Kumulus is installed in."""
    return main(sys.argv[1:])


def main(arguments: Sequence[str]) -> int:
    """Run a subcommand and return the exit code: 0, 1 if it failed, 2 if the command line is wrong."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # What the locale's encoding has no letter for, such as the lines of a tree in Latin-1, is printed as ?.
        sys.stdout.reconfigure(errors="replace")
    try:
        os.getcwd()
    except FileNotFoundError:
        print("error: the current directory was removed\n  Change to one that is there", file=sys.stderr)
        return 1
    try:
        try:
            return _main(arguments)
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader, such as `head`, has seen enough.
        _drop_unprinted()
        return 0
    except BrokenExtra as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        if (message := os_message(error)) is None:
            raise
        print(f"error: {message}", file=sys.stderr)
        _drop_unprinted()
        return 1


def _main(arguments: Sequence[str]) -> int:
    # A shell asks for completions: see completion.py, which is imported only then.
    if "_KUMULUS_COMPLETE" in os.environ:
        if has_venv():
            with_venv()
        from kumulus.cli.completion import complete

        complete()
    if not arguments or arguments[0] in {"-h", "--help", "help"}:
        print(_help())
        return 0
    if arguments[0] in {"-V", "--version"}:
        from kumulus.cli.versions import versions

        print(versions())
        return 0
    name, *rest = arguments
    found = offered().get(name)
    if found is None and name in COMMANDS:
        print(f"error: `kumulus {name}` is for a checkout of Kumulus; this one is installed with pip", file=sys.stderr)
        return 1
    if found is None:
        print(_unknown(name), file=sys.stderr)
        return 2
    return _run(name, found.command, rest, found.extra)


def _run(name: str, command: Command, arguments: Sequence[str], extra: Extra | None) -> int:
    # Imported here to keep -h fast. Everything that can go wrong with the tools is one of the two errors below.
    from kumulus.toolchain.errors import ToolchainError

    # What follows `--` is of another program.
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    try:
        # Help comes from the parsers, and none of these needs a package.
        asks_for_help = "-h" in own or "--help" in own
        if not asks_for_help and (command.venv or (command.parses and has_venv())):
            enter_venv()
        module, parser = parser_of(name, command)
        parsed, further = parser.parse_known_args(arguments)
        if further and not command.passes_on:
            parser.error(f"unrecognized arguments: {' '.join(further)}{_meant(parser, arguments, further)}")
        parsed.passed_on = further
        if extra is not None and not command.core_only:
            _require(name, extra)
        return module.run(parsed)
    except (UserError, ToolchainError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _meant(parser: ArgumentParser, line: Sequence[str], further: Sequence[str]) -> str:
    """What to write if there is one word too many; it may be a stack, which `up` takes without -s.

    Args:
        line: all words of the command line.
        further: those that the parser does not know.
    """
    for word in line:
        parser = subcommands(parser).get(word, parser)
    is_one_word = len(further) == 1 and not further[0].startswith("-")
    takes_stack = any("-s" in each.option_strings and each.dest == "stack" for each in arguments(parser))
    return f"; if it is a stack, write -s {further[0]}" if takes_stack and is_one_word else ""


def _drop_unprinted() -> None:
    """Drop what could not be printed, so that Python does not complain again when it flushes at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _help() -> str:
    width = max(map(len, offered()))
    groups: dict[str, list[str]] = {each: [] for each in GROUPS}
    for name, each in offered().items():
        title = each.command.group or (f"{each.extra.name}: {each.extra.summary}" if each.extra else "")
        groups.setdefault(title, []).append(f"  {name:<{width}}  {each.command.summary}")
    kumulus = installation.command()
    blocks = ["\n".join([title, *lines]) for title, lines in groups.items() if lines]
    more = (
        f"{kumulus} COMMAND -h says more about one, {kumulus} --version which versions are used.\n"
        f"Where a text names docs/PAGE.md: {kumulus} docs PAGE prints it."
    )
    return "\n\n".join([f"usage: {kumulus} COMMAND [-h] ...", *blocks, more])


def _require(name: str, extra: Extra) -> None:
    """See that a command's packages are there: a checkout gets them by itself, as it gets the core's."""
    from kumulus.toolchain import venv

    checkout = installation.checkout()
    if extra.missing and checkout is not None and not extra.install:
        venv.ensure(checkout, [extra.name])
        importlib.invalidate_caches()
    if extra.missing:
        comes, it = ("come", "them") if len(extra.missing) > 1 else ("comes", "it")
        what = f"`kumulus {name}` needs {listed(extra.missing)}, which {comes} with the extra {extra.name}"
        raise UserError(f"{what}\n  To get {it}: {extra.way_to_install}")


def _with_action(name: str) -> list[str]:
    """The commands that have an action of that name, each followed by it: `experiment why`."""
    found = []
    for called, each in offered().items():
        _, parser = parser_of(called, each.command)
        found += [f"{called} {name}"] if name in subcommands(parser) else []
    return found


# What other programs call these commands.
_ALSO = {"create": "up", "start": "up", "init": "new", "status": "ls", "cost": "price"}
_ALSO |= dict.fromkeys(("delete", "destroy", "stop"), "down")


def _unknown(name: str) -> str:
    also = [_ALSO[name]] if name in _ALSO else []
    near = also or [*_with_action(name), *difflib.get_close_matches(name, offered(), n=3)]
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(offered())}"
    return f"error: there is no command {name!r}: {hint}"
