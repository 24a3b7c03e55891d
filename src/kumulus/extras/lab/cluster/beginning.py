"""Restores a snapshot before each repetition, so that all begin with the same pods on the same nodes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from kumulus.extras.journal.book import Journal
from kumulus.extras.journal.snapshots import restore
from kumulus.extras.lab.errors import LabError
from kumulus.extras.snapshots.file import SUFFIX, Damaged
from kumulus.nodes.errors import ProviderError
from kumulus.runtimes.existing.copy import outlives_by_note

if TYPE_CHECKING:
    from kumulus.extras.lab.file.model import Beginning
    from kumulus.kube import Client


async def begin_from(
    client: Client, journal: Journal, wanted: Beginning, snapshots: Path, kubeconfig: Path, stop: asyncio.Event
) -> str:
    """Restore a snapshot; returns a line about what was done."""
    name = wanted.snapshot
    file = snapshots / f"{Path(name).name}{SUFFIX}"
    _require(file, name)
    if outlives_by_note(kubeconfig) and not wanted.allowDeletion:
        raise LabError(
            "from: the cluster is others', too, and a restore deletes what was created since in the snapshot's "
            "namespaces; write allowDeletion: true below from, if that is meant"
        )
    try:
        done = await restore(client, journal, kubeconfig, file, stop)
    except (ProviderError, Damaged) as error:
        raise LabError(f"from: snapshot {name}: {error}") from None
    except OSError as error:
        raise LabError(f"from: snapshot {name}: {error.strerror or error}") from None
    return f"begins from the snapshot {name}: {done.summary}"


def _require(file: Path, name: str) -> None:
    """Make sure that a snapshot is there.

    Raises:
        LabError: it is not there; says which snapshots are.
    """
    if not file.is_file():
        there = ", ".join(sorted(each.name.removesuffix(SUFFIX) for each in file.parent.glob(f"*{SUFFIX}")))
        remedy = f"there are {there}" if there else f"make it: kumulus snapshot save {name}"
        raise LabError(f"from: there is no snapshot {name}; {remedy}")
