"""Captures of a few objects, written to files and read back."""

from pathlib import Path
from typing import Any

from kumulus.extras.capture import putting, writing
from kumulus.extras.capture.reading import captured
from kumulus.extras.capture.spool import Spool
from kumulus.extras.capture.words import Words


def spooled(directory: Path, *raws: dict[str, Any]) -> Spool:
    spool = Spool(directory, "test")
    for raw in raws:
        if (kept := captured(raw["kind"], raw, raw.get("apiVersion", "v1"))) is not None:
            spool.add(raw["kind"], [kept], "more")
    return spool


def written(directory: Path, words: Words | None, *raws: dict[str, Any]) -> dict[str, str]:
    """The files of a capture, as `kumulus capture --to DIRECTORY` writes them."""
    directory.mkdir(parents=True)
    spool = spooled(directory, *raws)
    writing.write(spool, directory, words)
    spool.remove()
    return {file.name: file.read_text() for file in directory.iterdir()}


def put_back(directory: Path) -> list[dict[str, Any]]:
    return list(putting.read(directory / "workload.yaml"))
