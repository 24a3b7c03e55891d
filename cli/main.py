"""From the command line to a subcommand, and from what it raises to an exit code."""

from __future__ import annotations

import argparse
import difflib
import importlib
import os
import sys
from collections.abc import Sequence
from typing import cast

from cli.errors import UserError
from cli.project import ROOT
from cli.registry import COMMANDS, Command, Module

_INTERRUPTED = 130


def main(arguments: Sequence[str]) -> int:
    """Run a subcommand; returns the exit code: 0, 1 when it failed, 2 when it was called wrongly."""
    if not arguments or arguments[0] in {"-h", "--help", "help"}:
        print(_help())
        return 0
    name, *rest = arguments
    command = COMMANDS.get(name)
    if command is None:
        print(_unknown(name), file=sys.stderr)
        return 2
    if command.venv:
        _enter_venv(arguments)
    return _run(name, command, rest)


def _run(name: str, command: Command, arguments: Sequence[str]) -> int:
    # Imported here so that -h costs nothing; everything that can go wrong with the tools is one of these two.
    from toolchain.errors import ToolchainError

    try:
        module = cast(Module, importlib.import_module(command.module))
        parser = argparse.ArgumentParser(
            prog=f"kumulus {name}", description=module.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        module.add_arguments(parser)
        parsed, further = parser.parse_known_args(arguments)
        if further and not command.passes_on:
            parser.error(f"unrecognized arguments: {' '.join(further)}")
        parsed.passed_on = further
        code = module.run(parsed)
        sys.stdout.flush()
        return code
    except (UserError, ToolchainError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader, such as `head`, has seen enough; Python must not complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _help() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {command.summary}" for name, command in COMMANDS.items()]
    return "\n".join(["usage: ./kumulus COMMAND [-h] ...", "", *lines, "", "./kumulus COMMAND -h says more about one."])


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name, COMMANDS, n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(COMMANDS)}"
    return f"error: there is no command {name!r}: {hint}"


def _enter_venv(arguments: Sequence[str]) -> None:
    environment = ROOT / ".venv"
    if os.path.realpath(sys.prefix) == str(environment.resolve()):
        return
    python = environment / "bin" / "python"
    if not python.exists():
        sys.exit(f"error: .venv is missing, which `kumulus {arguments[0]}` runs in\n  To get it: ./kumulus venv")
    os.execv(python, [str(python), str(ROOT / "kumulus"), *arguments])
