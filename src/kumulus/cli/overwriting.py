"""Files that an import writes: over those of an earlier import, but over no other."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kumulus.cli.errors import UserError


def refuse_others(files: Mapping[Path, str]) -> None:
    """Refuse to overwrite what is not of an earlier import, which may have been killed while it wrote.

    Args:
        files: what the import will write, with how the first line of each begins.
    """
    for file, beginning in files.items():
        try:
            with file.open("rb") as opened:
                there = opened.read(len(beginning.encode()))
        except FileNotFoundError:
            continue
        except OSError as error:
            raise UserError(f"{file}: {error.strerror}") from None
        if not beginning.encode().startswith(there):
            raise UserError(f"{file} is there already, and not of an import\n  Name another, or delete it")
