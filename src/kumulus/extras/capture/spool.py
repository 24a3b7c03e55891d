"""The pages that were read so far, on disk: an interrupted capture resumes after its last complete page."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kumulus.host import files

DIRECTORY = ".unfinished"
_SOURCE = "source.json"


class AnotherSource(Exception):
    """An unfinished capture in the directory was read from another cluster."""


class Spool:
    """The pages of each kind, one line of JSON per page; an incomplete line is ignored.

    Args:
        directory: of the capture; the pages are in a subdirectory that only the owner can read.

    Raises:
        AnotherSource: a capture of another source was started there.
    """

    def __init__(self, directory: Path, source: str) -> None:
        self.path = directory / DIRECTORY
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.resumed = False
        file = self.path / _SOURCE
        if file.exists():
            try:
                begun = str(json.loads(file.read_text(encoding="utf-8"))["source"])
            except (ValueError, KeyError, TypeError):
                begun = source
            if begun != source:
                raise AnotherSource(begun)
            self.resumed = any(self.path.glob("*.jsonl"))
        files.write(file, json.dumps({"source": source}), mode=0o600)

    def token(self, kind: str) -> str | None:
        """The token of the next page of a kind: "" for the first one, None when all pages are there."""
        last: str | None = ""
        for page in self._lines(kind):
            last = page["continue"] or None
        return last

    def add(self, kind: str, items: list[dict[str, Any]], token: str, note: str = "") -> None:
        """Save a page; ``token`` is of the next, empty after the last, ``note`` a remark such as a missing right."""
        line = json.dumps({"items": items, "continue": token, "note": note}, separators=(",", ":")) + "\n"
        file = self._file(kind)
        end = self._whole(kind)
        with os.fdopen(os.open(file, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as opened:
            # The rest of an incomplete page is overwritten.
            opened.truncate(end)
            opened.seek(end)
            opened.write(line.encode())
            opened.flush()

    def restart(self, kind: str) -> None:
        """Delete a kind's pages, as the server no longer accepts their continue token."""
        self._file(kind).unlink(missing_ok=True)

    def items(self, kind: str) -> Iterator[dict[str, Any]]:
        """A kind's objects, as far as they have been read."""
        for page in self._lines(kind):
            yield from page["items"]

    def note(self, kind: str) -> str:
        """The remark about a kind."""
        return next((str(page["note"]) for page in self._lines(kind) if page["note"]), "")

    def remove(self) -> None:
        """Delete everything."""
        shutil.rmtree(self.path, ignore_errors=True)

    def _file(self, kind: str) -> Path:
        return self.path / f"{kind}.jsonl"

    def _lines(self, kind: str) -> Iterator[dict[str, Any]]:
        try:
            with self._file(kind).open("rb") as opened:
                for line in opened:
                    if not line.endswith(b"\n"):
                        return
                    yield json.loads(line)
        except FileNotFoundError:
            return

    def _whole(self, kind: str) -> int:
        """The number of bytes in complete lines."""
        try:
            with self._file(kind).open("rb") as opened:
                return sum(len(line) for line in opened if line.endswith(b"\n"))
        except FileNotFoundError:
            return 0
