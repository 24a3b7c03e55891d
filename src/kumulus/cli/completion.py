"""Print what a shell needs to complete commands, options and the names of stacks.

eval "$(kumulus completion bash)"                                  # in ~/.bashrc
eval "$(kumulus completion zsh)"                                   # in ~/.zshrc, after compinit
kumulus completion fish > ~/.config/fish/completions/kumulus.fish
"""

from __future__ import annotations

import argparse

from kumulus.cli.errors import UserError
from kumulus.host import installation

SHELLS = ("bash", "zsh", "fish")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("shell", choices=SHELLS, help="which shell reads it")


def run(args: argparse.Namespace) -> int:
    """Print it."""
    try:
        from argcomplete.shell_integration import shellcode
    except ImportError:
        way = installation.way_to_add("completion")
        raise UserError(f"completion needs the package argcomplete\n  To get it: {way}") from None

    print(shellcode(["kumulus"], shell=args.shell))
    return 0
