"""Print what a shell needs to complete commands, options and the names of stacks.

eval "$(kumulus completion bash)"                                  # in ~/.bashrc
eval "$(kumulus completion zsh)"                                   # in ~/.zshrc, after compinit
kumulus completion fish > ~/.config/fish/completions/kumulus.fish
"""

import argparse
import os
import shlex
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import NoReturn

from kumulus.cli import project, which
from kumulus.cli.errors import UserError
from kumulus.cli.registry import arguments, complete_by, offered, parser_of, subcommands

# Only the line up to the cursor is passed on. Where nothing fits, bash and zsh complete files.
_SCRIPTS = {
    "bash": """\
_kumulus_complete() {
    local IFS=$'\\n'
    COMPREPLY=($(_KUMULUS_LINE="${COMP_LINE:0:COMP_POINT}" _KUMULUS_COMPLETE=bash "$1" 2>/dev/null </dev/null))
}
complete -o bashdefault -o default -F _kumulus_complete kumulus""",
    "zsh": """\
_kumulus_complete() {
    local line="${(j: :)words[1,CURRENT-1]} $PREFIX"
    local -a found=("${(@f)$(_KUMULUS_LINE="$line" _KUMULUS_COMPLETE=zsh "$words[1]" 2>/dev/null </dev/null)}")
    if [[ -n "$found" ]]; then compadd -- "$found[@]"; else _files; fi
}
compdef _kumulus_complete kumulus""",
    "fish": """\
function __kumulus_complete
    env _KUMULUS_LINE=(commandline -cp) _KUMULUS_COMPLETE=fish (commandline -po)[1] 2>/dev/null </dev/null
end
complete -c kumulus -f -a '(__kumulus_complete)'""",
}
SHELLS = tuple(_SCRIPTS)
ASKED = "_KUMULUS_COMPLETE"
"""The variable by which those scripts ask for completions; it names the shell."""
# The characters after which bash begins a new word.
_BREAKS = "=:"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("shell", choices=SHELLS, help="which shell reads it")


def run(args: argparse.Namespace) -> int:
    """Print it."""
    print(_SCRIPTS[args.shell])
    return 0


def complete() -> NoReturn:
    """Print the possible completions of the line for the shell, one a line, and exit."""
    line = os.environ.get("_KUMULUS_LINE", "")
    word = _words(line)[-1]
    # Bash replaces only what follows the last break in the word.
    cut = max(map(word.rfind, _BREAKS)) + 1 if os.environ[ASKED] == "bash" else 0
    # What completes some words needs packages, which a fresh checkout has not.
    with suppress(ImportError):
        print("\n".join(each[cut:] for each in completions(line)), flush=True)
    sys.exit(0)


def completions(line: str) -> list[str]:
    """What the last word of a line may become."""
    *before, word = _words(line)
    reader = _LineReader(parser(line))
    for each in before[1:]:
        if not reader.take(each):
            return []
    option, equals, value = word.partition("=")
    if equals and reader.waiting is None and (named := _option(reader.parser, option)) is not None:
        return [f"{option}={each}" for each in _values(named, reader.values) if each.startswith(value)]
    return sorted({each for each in reader.next_words(word) if each.startswith(word)})


class _LineReader:
    """Reads the words of a line before the last one."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self.values = argparse.Namespace()
        # The option whose value follows.
        self.waiting: argparse.Action | None = None
        self._enter(parser)

    def _enter(self, parser: argparse.ArgumentParser) -> None:
        # The parser of the command or subcommand that the words have come to.
        self.parser = parser
        # The arguments that are no options and may still follow.
        self.positional = [action for action in arguments(parser) if not action.option_strings]
        for action in arguments(parser):
            vars(self.values).setdefault(action.dest, action.default)

    def take(self, word: str) -> bool:
        """Read one word; False if it is no subcommand where one has to be."""
        if self.waiting is not None:
            setattr(self.values, self.waiting.dest, word)
            self.waiting = None
        elif word.startswith("-"):
            name, _, value = word.partition("=")
            option = _option(self.parser, name)
            if option is not None and option.nargs != 0:
                self.waiting = None if value else option
                setattr(self.values, option.dest, value or option.default)
        elif self.positional and isinstance(choices := self.positional[0].choices, dict):
            # The word names a subcommand: only their argument has a dict of choices.
            if word not in choices:
                return False
            self._enter(choices[word])
        elif self.positional:
            setattr(self.values, self.positional[0].dest, word)
            if self.positional[0].nargs not in ("*", "+"):
                del self.positional[0]
        return True

    def next_words(self, begun: str) -> Iterable[str]:
        """What may follow, given how it begins: the value of an option or an argument, or else an option."""
        if self.waiting is not None:
            return _values(self.waiting, self.values)
        if self.positional and not begun.startswith("-"):
            return _values(self.positional[0], self.values)
        return (name for action in arguments(self.parser) for name in action.option_strings if name.startswith("--"))


def _words(line: str) -> list[str]:
    """The words of a line; the last one is empty after a space."""
    try:
        words = shlex.split(line)
    except ValueError:
        words = line.split()
    return [*words, ""] if not words or line[-1:].isspace() else words


def _option(parser: argparse.ArgumentParser, name: str) -> argparse.Action | None:
    return next((action for action in arguments(parser) if name in action.option_strings), None)


def _values(action: argparse.Action, so_far: argparse.Namespace) -> Iterable[str]:
    """What an argument may be, as far as that is known, by the values on the line so far."""
    completer = getattr(action, "completer", None)
    return completer(parsed_args=so_far) if completer else map(str, action.choices or ())


def parser(line: str) -> argparse.ArgumentParser:
    """A parser of the whole command, with the arguments of only the subcommand on the line."""
    whole = argparse.ArgumentParser(prog="kumulus")
    whole.add_argument("--version", action="store_true")
    subparsers = whole.add_subparsers()
    words = line.split()
    for name, each in offered().items():
        if words[1:2] != [name]:
            subparsers.add_parser(name)
            continue
        _, command_parser = parser_of(name, each.command)
        if any(action.dest == "named" for action in arguments(command_parser)):
            # The first word may be a stack without -s: see stack.add_arguments.
            command_parser.add_argument("stack", nargs="?")
        _complete_names(command_parser)
        subparsers.add_parser(name, parents=[command_parser], add_help=False)
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


def _complete_names(command_parser: argparse.ArgumentParser) -> None:
    """Have the arguments for stacks and clusters completed, those of subcommands too."""
    for action in arguments(command_parser):
        if action.dest in ("stack", "named"):
            complete_by(action, stacks)
        if action.dest == "cluster":
            complete_by(action, clusters)
    for each in subcommands(command_parser).values():
        _complete_names(each)
