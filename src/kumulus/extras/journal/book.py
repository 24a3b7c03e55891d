"""The journals of one cluster: `$XDG_STATE_HOME/kumulus/experiments/<cluster>/<run>.json`.

A cluster is identified by the UID of its kube-system namespace, so that every command finds its journals, whatever
kubeconfig it uses. A journal lists only what is still to be restored, and is removed with its last entry.
"""

import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from kumulus.extras.journal.changes import JournaledChanges, changes_from
from kumulus.extras.journal.errors import NotWritten
from kumulus.host import files, lifetime
from kumulus.host.machine import state_home

_LOCK = ".lock"


def directory(cluster: str) -> Path:
    """Where a cluster's journals are."""
    return state_home() / "kumulus" / "experiments" / (Path(cluster).name or "none")


class Journal:
    """The journal of one run: what is written here is on the disk when the call returns."""

    def __init__(self, changes: JournaledChanges) -> None:
        self.changes = changes
        self.file = directory(changes.cluster) / f"{changes.run}.json"

    def add(self, **found: Any) -> None:
        """Record what is about to be changed.

        Args:
            found: fields of :class:`JournaledChanges`; a list is added to the recorded one.
        """
        merged: dict[str, Any] = {}
        for key, value in found.items():
            several = isinstance(value, (list, tuple))
            merged[key] = tuple(dict.fromkeys((*getattr(self.changes, key), *value))) if several else value
        self._write(replace(self.changes, **merged))

    def drop(self, **done: Any) -> None:
        """Remove the entries that have been restored.

        Args:
            done: fields of :class:`JournaledChanges`: for a list the entries to remove, otherwise None.
        """
        remaining: dict[str, Any] = {}
        for key, value in done.items():
            gone = frozenset(value or ())
            remaining[key] = None if value is None else tuple(x for x in getattr(self.changes, key) if x not in gone)
        changed = replace(self.changes, **remaining)
        if changed != self.changes:
            self._write(changed)

    def close(self) -> None:
        """Close it: removed if nothing is to be restored; otherwise the next command sees that the run is over."""
        if self.changes.empty:
            self.discard()
        else:
            self._write(replace(self.changes, process=""))

    def discard(self) -> None:
        """Remove it: everything has been restored, or went with its cluster."""
        with _os_errors_explained(self.file):
            files.remove(self.file)

    def _write(self, changes: JournaledChanges) -> None:
        with _os_errors_explained(self.file):
            self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            files.write(self.file, json.dumps(changes.to_plain(), indent=1) + "\n", mode=0o600)
        self.changes = changes


def read(cluster: str) -> tuple[list[Journal], list[Path]]:
    """The journals of a cluster, the oldest first, and the files that are not journals: damaged, or another owner's."""
    found, unread = [], []
    for file in sorted(directory(cluster).glob("*.json")):
        try:
            journal = Journal(changes_from(file.read_text()))
        except FileNotFoundError:
            continue
        except (OSError, ValueError):
            unread.append(file)
            continue
        found.append(journal)
    return found, unread


def unrestored(cluster: str) -> list[Journal]:
    """The journals of runs that are gone, with what is to be restored. Quick, and without network."""
    return [each for each in read(cluster)[0] if each.changes.process == "" or runs(each) is False]


def runs(journal: Journal) -> bool | None:
    """Whether a journal's run is still under way; None if that cannot be known from here."""
    return lifetime.runs(journal.changes.process) if journal.changes.process else False


def under_way(cluster: str) -> str:
    """Say which run is or may be under way on a cluster, and what to do; empty without one. Without network."""
    for journal in read(cluster)[0]:
        changes, known = journal.changes, runs(journal)
        if known:
            pid = changes.process.split(" ")[3]
            return (
                f"{changes.what} runs on this cluster (run {changes.run}, process {pid}); wait for it, "
                f"or end it in order: kill {pid}"
            )
        if known is None:
            return (
                f"{changes.what} may run on this cluster (run {changes.run}), on another machine or in another "
                f"container; wait for it, or remove {journal.file} when it is gone for good"
            )
    return ""


def discard(cluster: str) -> None:
    """Remove the journals of a cluster that is gone, and with it all that would have been restored."""
    with suppress(OSError, NotWritten):
        for journal in unrestored(cluster):
            journal.discard()
        _tidy(directory(cluster))


@asynccontextmanager
async def run_lock(cluster: str) -> AsyncIterator[None]:
    """Let one process at a time begin a run on a cluster or restore what others left."""
    folder = directory(cluster)
    with _os_errors_explained(folder / _LOCK):
        lock, _ = await files.take_lock(folder / _LOCK)
    try:
        yield
    finally:
        _tidy(folder)
        os.close(lock)


@contextmanager
def _os_errors_explained(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise NotWritten(
            f"the journal {file}, by which a killed run is put back, cannot be written: {error.strerror}; "
            "make room, or set XDG_STATE_HOME to a directory of your own"
        ) from None


def _tidy(folder: Path) -> None:
    """Remove the directory if it holds no journal; a process that waits for the lock creates it again."""
    if not any(folder.glob("*.json")):
        with suppress(OSError):
            (folder / _LOCK).unlink(missing_ok=True)
            folder.rmdir()
