"""Read a stack's file as the Pulumi program does, for commands that need no cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from kumulus.cli import project
from kumulus.cli.errors import UserError
from kumulus.surroundings import pulumi_project

if TYPE_CHECKING:
    from kumulus.stackfile.load import Loaded

# Where a stack of Kumulus' own program describes its cluster.
_OURS = ("kumulus:cluster", "kumulus:clusterConfig")


def load(stack: str) -> Loaded:
    """What a stack is to become.

    Raises:
        UserError: there is no such stack, or its file has mistakes.
    """
    name = project.require_stack(stack)
    file, shown = _file(name)
    return _load(_config(file, shown), name, project.root(), shown)


def described(stack: str) -> Loaded | None:
    """What a stack is to become, or None where its file does not say: all of it is secret, or its program is another.

    Raises:
        UserError: there is no such stack, or its file has mistakes.
    """
    name = project.require_stack(stack)
    file, shown = _file(name)
    return _described(_config(file, shown), name, project.root(), shown)


def described_by(file: Path) -> Loaded | None:
    """The same for any stack file; its paths start in its project, or beside it where it has none.

    Raises:
        UserError: there is no such file, or it has mistakes.
    """
    stack, folder = file.name.removeprefix("Pulumi.").partition(".")[0], file.absolute().parent
    owner = pulumi_project.find(folder)
    return _described(_config(file, str(file)), stack, owner.root if owner else folder, str(file))


def check(stack: str) -> None:
    """Look for mistakes in a stack's file before Pulumi is told of the stack.

    Raises:
        UserError: its file has mistakes; with what its program would say of them.
    """
    described(stack)


def parse(stack: str) -> dict[str, Any]:
    """What a stack's file says of its cluster, as it stands there; {} where it says nothing that can be read.

    Raises:
        UserError: the file cannot be read, or is no YAML; with the line.
    """
    found = _config(*_file(stack)).get("kumulus:cluster")
    return found if isinstance(found, dict) else {}


def _described(values: dict[str, Any], stack: str, base: Path, shown: str) -> Loaded | None:
    from kumulus.stackfile.secrets import left_out

    known = left_out(values)
    assert isinstance(known, dict)
    # Of a program of the user's own, the configuration is that program's matter.
    if all(known.get(key) is None for key in _OURS):
        return None
    try:
        return _load(values, stack, base, shown)
    except UserError:
        if known == values:
            raise
    try:
        # A mapping may be secret as a whole, for which a text cannot stand.
        return _load(known, stack, base, shown)
    except UserError:
        return None


def _load(values: dict[str, Any], stack: str, base: Path, shown: str) -> Loaded:
    from kumulus.model.errors import SpecError
    from kumulus.stackfile import load as reader
    from kumulus.stackfile.secrets import without_secrets

    ours = {key: without_secrets(value) for key, value in values.items() if str(key).startswith("kumulus:")}
    try:
        return reader.load(ours, stack, base, source=shown)
    except SpecError as error:
        raise UserError(str(error)) from None


def _file(stack: str) -> tuple[Path, str]:
    """A stack's file, and what to call it."""
    wanted = project.current()
    file = wanted.stack_file(stack)
    return file, wanted.shown(file)


def _config(file: Path, shown: str) -> dict[str, Any]:
    """A stack file's configuration.

    Raises:
        UserError: it cannot be read, or is no YAML.
    """
    from kumulus.model.errors import SpecError
    from kumulus.stackfile.yamltext import read_yaml_file

    try:
        document = read_yaml_file(file, shown)
    except SpecError as error:
        raise UserError(str(error)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{shown} cannot be read: {error}") from None
    config = document.get("config") if isinstance(document, dict) else None
    return config if isinstance(config, dict) else {}
