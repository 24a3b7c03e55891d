"""Create a Pulumi project in a new directory: a program of five lines, and a stack `dev` of 30 nodes.

kumulus new my-fleet
cd my-fleet
kumulus up            # or, after eval "$(kumulus env)": pulumi up

kumulus new my-fleet --program    # the cluster and its nodes are declared in Python instead (docs/library.md)
"""

import argparse
import re
import shlex
import string
from pathlib import Path

from kumulus.cli import project
from kumulus.cli.errors import UserError
from kumulus.host import installation
from kumulus.host.version import REPOSITORY, VERSION

_TEMPLATES = Path(__file__).with_name("new_project")
_CALLED = {"gitignore": ".gitignore"}
# Named by the first line of the stack's file, for editors.
_SCHEMA = "stack.schema.json"
_UNRELEASED = (
    f"# As long as no package index has kumulus {VERSION}: install it from its repository by this line, or from a\n"
    f"# checkout, by `pip install PATH`:\n# kumulus @ git+{REPOSITORY}"
)
# Pulumi's own pattern.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("directory", metavar="NAME", help="the directory to create, and the project's name")
    parser.add_argument("--program", action="store_true", help="declare the cluster in Python, not in the stack's file")


def run(args: argparse.Namespace) -> int:
    """Make it."""
    directory = project.expanded(Path(args.directory))
    name = directory.name
    if not _NAME.fullmatch(name):
        raise UserError(
            f"{name or args.directory!r} is no name for a project\n"
            "  Write up to 100 letters, digits, '-', '_' and '.', the first a letter or digit"
        )
    try:
        _write(directory, name, program=args.program)
    except OSError as error:
        raise UserError(f"{error.filename or directory}: {error.strerror}") from None
    print(f"made {directory}: the stack dev, 30 nodes\n  cd {shlex.quote(str(directory))}\n  {_command(directory)} up")
    return 0


def _write(directory: Path, name: str, *, program: bool) -> None:
    there = sorted(entry.name for entry in directory.iterdir()) if directory.is_dir() else []
    # A fresh repository for the project has only .git.
    if there not in ([], [".git"]):
        raise UserError(f"{directory} is not empty: it has {there[0]}; name another directory")
    directory.mkdir(parents=True, exist_ok=True)
    for template in (*sorted(_TEMPLATES.iterdir()), *(sorted((_TEMPLATES / "program").iterdir()) if program else ())):
        if template.is_file():
            text = string.Template(template.read_text(encoding="utf-8")).substitute(
                name=name, requirement=_requirement()
            )
            (directory / _CALLED.get(template.name, template.name)).write_text(text, encoding="utf-8")
    if program:
        return
    from kumulus.stackfile.schema.published import STACK

    (directory / _SCHEMA).write_text(STACK.text(), encoding="utf-8")


def _requirement() -> str:
    """What whoever gets the project installs: from the address that pip had it from, or from an index."""
    released = f"kumulus~={VERSION}"
    # The path of a directory or a file is of no use to others.
    return installation.requirement() or (f"{_UNRELEASED}\n{released}" if installation.origin() else released)


def _command(directory: Path) -> str:
    """The command as the user types it in that directory."""
    command, checkout = installation.command(), installation.checkout()
    return command if checkout is None or command == "kumulus" else shlex.quote(str(checkout / "kumulus"))
