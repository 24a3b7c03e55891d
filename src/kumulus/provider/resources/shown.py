"""What the running pulumi command has shown in its preview: an update must not destroy what a preview has not shown.

Pulumi does not say whether an update had a preview, and it starts a plugin for each of the two. Both plugins have the
same parent, pulumi itself. The first leaves a note under the parent's identity for the second.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path

from kumulus.host import files, lifetime, machine


class Shown:
    """The replacements of clusters that a preview has shown.

    Args:
        command: the pulumi command, as :func:`kumulus.host.lifetime.own` names a process; None where it is not known.
        folder: where the notes are.
    """

    def __init__(self, command: str | None = None, folder: Path | None = None) -> None:
        self._command = command or lifetime.parent()
        self._folder = folder or machine.state_home() / "kumulus" / "shown"

    def note(self, directory: str) -> None:
        """Note that the command has shown the replacement of the cluster with this directory.

        If the note cannot be written, the update requires the user's explicit consent.
        """
        if self._command is None:
            return
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._forget_ended()
            files.write(self._file(directory), self._command, 0o600)

    def has(self, directory: str) -> bool:
        """Whether the command has shown that."""
        with suppress(OSError, ValueError):
            return self._command is not None and self._file(directory).read_text() == self._command
        return False

    def _file(self, directory: str) -> Path:
        name = hashlib.sha256(f"{self._command} {directory}".encode()).hexdigest()[:32]
        return self._folder / name

    def _forget_ended(self) -> None:
        for file in self._folder.iterdir():
            with suppress(OSError, ValueError):
                if lifetime.runs(file.read_text()) is False:
                    file.unlink()
