"""What has been read so far, page by page on the disk: an interrupted capture resumes after its last complete page."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DIRECTORY = ".unfinished"
_SOURCE = "source.json"


class AnotherSource(Exception):
    """What has been begun there was read from another cluster."""


class Spool:
    """The pages of each kind, a line of JSON each; a line that was not written whole is not there.

    Args:
        directory: where the capture is to be; the pages are in a directory of their own in it, for its owner only.
        source: what is read, such as the server's address.

    Raises:
        AnotherSource: a capture of another source was begun there.
        OSError: it cannot be written.
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
        _write(file, json.dumps({"source": source}))

    def token(self, kind: str) -> str | None:
        """Where the next page of a kind begins: "" for its start, None when all of it is there."""
        last: str | None = ""
        for page in self._lines(kind):
            last = page["continue"] or None
        return last

    def add(self, kind: str, items: list[dict[str, Any]], token: str, note: str = "") -> None:
        """Keep a page.

        Args:
            kind: of its objects.
            items: reduced.
            token: where the next page begins; empty after the last.
            note: what is to be said of the kind, such as a missing right.

        Raises:
            OSError: the disk is full.
        """
        line = json.dumps({"items": items, "continue": token, "note": note}, separators=(",", ":")) + "\n"
        file = self._file(kind)
        end = self._whole(kind)
        with os.fdopen(os.open(file, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as opened:
            # What a page that was cut off has left is written over.
            opened.truncate(end)
            opened.seek(end)
            opened.write(line.encode())
            opened.flush()

    def restart(self, kind: str) -> None:
        """Forget a kind's pages: the server no longer knows where they ended."""
        self._file(kind).unlink(missing_ok=True)

    def items(self, kind: str) -> Iterator[dict[str, Any]]:
        """A kind's objects, as far as they have been read."""
        for page in self._lines(kind):
            yield from page["items"]

    def note(self, kind: str) -> str:
        """What is to be said of a kind."""
        return next((str(page["note"]) for page in self._lines(kind) if page["note"]), "")

    def remove(self) -> None:
        """Forget everything."""
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
        """Up to which byte whole lines are."""
        try:
            with self._file(kind).open("rb") as opened:
                return sum(len(line) for line in opened if line.endswith(b"\n"))
        except FileNotFoundError:
            return 0


def _write(file: Path, text: str) -> None:
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as opened:
        opened.write(text)
