"""In a checkout, going on with the Python of its .venv, which has the packages that Kumulus needs."""

from __future__ import annotations

import os
import sys

from kumulus.cli.errors import UserError
from kumulus.host import installation


def enter_venv() -> None:
    """Run this command again in .venv, in place of this process; returns if it runs there already or is installed."""
    checkout = installation.checkout()
    if checkout is None or os.path.realpath(sys.prefix) == os.path.realpath(checkout / ".venv"):
        return
    python = str(installation.python())
    os.execv(python, [python, str(checkout / "kumulus"), *sys.argv[1:]])


def require_venv(command: str) -> None:
    """Continue in .venv, for a command that needs it only for some of its arguments."""
    if not has_venv():
        made = f"{installation.command()} venv"
        raise UserError(f".venv is missing, which `kumulus {command}` runs in\n  To get it: {made}")
    enter_venv()


def has_venv() -> bool:
    """Whether there is a .venv to enter, or none is needed."""
    return installation.python().exists()
