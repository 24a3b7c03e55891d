"""Read a stack's file as the Pulumi program does, for commands that need no cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli import project
from cli.errors import UserError

if TYPE_CHECKING:
    from spec.load import Loaded


def load(stack: str) -> Loaded:
    """What a stack is to become.

    Raises:
        UserError: there is no such stack, or its file has mistakes.
    """
    from spec import load as reader
    from spec.errors import SpecError
    from spec.secrets import without_secrets
    from spec.yamltext import read_yaml

    name = project.require_stack(stack)
    file = project.ROOT / "stacks" / f"Pulumi.{name}.yaml"
    try:
        document = read_yaml(file.read_text(encoding="utf-8"), f"stacks/{file.name}")
        config = document.get("config") if isinstance(document, dict) else None
        values = config if isinstance(config, dict) else {}
        return reader.load(
            {key: without_secrets(value) for key, value in values.items() if str(key).startswith("kumulus:")},
            name,
            project.ROOT,
        )
    except SpecError as error:
        raise UserError(str(error)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"stacks/{file.name} cannot be read: {error}") from None
