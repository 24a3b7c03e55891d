"""What every command does first on a cluster: restore what runs that are gone have changed."""

from __future__ import annotations

import secrets
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from kumulus.extras.journal import book, namespace, undo
from kumulus.extras.journal.book import Journal
from kumulus.extras.journal.changes import EXPERIMENT, JournaledChanges
from kumulus.extras.journal.errors import Busy, NotWritten, Unfinished
from kumulus.host import lifetime
from kumulus.kube import ApiError, objects

if TYPE_CHECKING:
    from kumulus.kube import Client


async def recover(client: Client) -> list[str]:
    """Restore what runs that are gone have changed on a cluster; changes of a run that still runs are not touched.

    Returns:
        What was done, a line for each run; and a line for each journal that cannot be read.
    """
    # Nearly always there is no journal at all, and no need to ask which cluster this is.
    if not any(book.directory("any").parent.glob("*/*.json")):
        return []
    try:
        cluster = await objects.identity(client)
    except ApiError as error:
        if error.status != 403:
            raise
        # A user who may not even read namespaces has created none.
        return []
    return await recover_cluster(client, cluster)


async def recover_cluster(client: Client, cluster: str) -> list[str]:
    """Like :func:`recover`, for a caller that already knows the cluster.

    Args:
        cluster: UID of its kube-system namespace.
    """
    if not any(book.directory(cluster).glob("*.json")):
        return []
    async with book.run_lock(cluster):
        return await _recovered(client, cluster)


async def begin(
    client: Client, run: str, name: str, *, command: str = EXPERIMENT, finish: str | None = None
) -> tuple[Journal, list[str]]:
    """Begin a run: restore what others left, and open its journal. It ends with :func:`end`.

    Args:
        name: of its experiment, workload, capture or snapshot.
        command: which command it is a run of. What an earlier run of the same one has not finished, this one finishes.
        finish: the command line that finishes the run if it is cut off; None if what it changes is to be undone.

    Returns:
        The journal, on the disk already; and what was restored, in lines.

    Raises:
        Busy: another run is under way on the cluster: they would disturb each other.
        Unfinished: a run of another command has left the cluster half changed.
    """
    cluster = await objects.identity(client)
    async with book.run_lock(cluster):
        lines = await _recovered(client, cluster, command)
        if others := book.under_way(cluster):
            raise Busy(others)
        for other in book.read(cluster)[0]:
            left = other.changes
            raise Unfinished(f"{left.what} (run {left.run}) did not come to its end; finish it: {left.finish}")
        lines += [f"removed {each}, which an earlier run had left" for each in await namespace.clear_leftovers(client)]
        journal = Journal(JournaledChanges(run, name, cluster, lifetime.own(), command=command, finish=finish))
        journal.add()
    return journal, lines


async def end(journal: Journal) -> None:
    """Close a run's journal; the next command restores or names what is still listed in it."""
    with suppress(NotWritten):
        async with book.run_lock(journal.changes.cluster):
            journal.close()


def run_id(now: datetime) -> str:
    """An id for a run that begins now."""
    return f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


async def _recovered(client: Client, cluster: str, command: str = "") -> list[str]:
    lines = [
        f"{file} is no journal that can be read; see what it was of, and remove it" for file in book.read(cluster)[1]
    ]
    for journal in book.unrestored(cluster):
        done = await undo.put_back(client, journal)
        changes = journal.changes
        line = f"{changes.what} (run {changes.run}) did not come to its end"
        if done or not changes.finish:
            line += f"; put back: {', '.join(done) or 'nothing'}"
        if changes.finish and changes.command != command:
            line += f"; to finish it: {changes.finish}"
        else:
            journal.discard()
        lines.append(line)
    return lines
