"""What every command does first on a cluster: restore what runs that are gone have changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kumulus.extras.journal import book, undo
from kumulus.extras.journal.book import Journal
from kumulus.extras.journal.changes import Changes
from kumulus.extras.journal.errors import Busy
from kumulus.host import lifetime
from kumulus.kube import ApiError, objects

if TYPE_CHECKING:
    from kumulus.kube import Client


async def recover(client: Client) -> list[str]:
    """Restore what runs that are gone have changed on a cluster; changes of a run that still runs are not touched.

    Returns:
        What was done, a line for each run; and a line for each journal that cannot be read.

    Raises:
        JournalError: something is still as a run has left it; its journal stays.
        ApiError, Unreachable: the server refused, or gave no answer.
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
        client: of the cluster.
        cluster: UID of its kube-system namespace.
    """
    if not any(book.directory(cluster).glob("*.json")):
        return []
    async with book.turn(cluster):
        return await _recovered(client, cluster)


async def begin(client: Client, run: str, experiment: str) -> tuple[Journal, list[str]]:
    """Begin a run: restore what others left, and open its journal.

    Args:
        client: of the cluster.
        run: the run's id.
        experiment: its experiment's name.

    Returns:
        The journal, on the disk already; and what was restored, in lines.

    Raises:
        Busy: another run is under way on the cluster: they would disturb each other's measurements.
        JournalError, ApiError, Unreachable: as for :func:`recover`.
    """
    cluster = await objects.identity(client)
    async with book.turn(cluster):
        lines = await _recovered(client, cluster)
        for other in book.read(cluster)[0]:
            raise Busy(_busy(other))
        journal = Journal(Changes(run, experiment, cluster, lifetime.own()))
        journal.add()
    return journal, lines


async def _recovered(client: Client, cluster: str) -> list[str]:
    lines = [
        f"{file} is no journal that can be read; see what it was of, and remove it" for file in book.read(cluster)[1]
    ]
    for journal in book.unrestored(cluster):
        done = await undo.put_back(client, journal)
        journal.discard()
        changes = journal.changes
        lines.append(
            f"experiment {changes.experiment} (run {changes.run}) did not come to its end; "
            f"put back: {', '.join(done) or 'nothing'}"
        )
    return lines


def _busy(journal: Journal) -> str:
    changes = journal.changes
    who = f"{changes.experiment}, run {changes.run}"
    if book.runs(journal):
        return f"another experiment runs on this cluster ({who}, process {changes.process.split(' ')[3]}); wait for it"
    return (
        f"another experiment may run on this cluster ({who}), on another machine or in another container; wait for it, "
        f"or remove {journal.file} when it is gone for good"
    )
