"""Restores a snapshot before each repetition, so that all begin with the same pods on the same nodes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kumulus.extras.lab.errors import LabError
from kumulus.extras.snapshots.file import SUFFIX, Damaged
from kumulus.nodes.errors import ProviderError
from kumulus.runtimes.snapshots import restore

if TYPE_CHECKING:
    from kumulus.kube import Client


async def begin_from(client: Client, name: str, snapshots: Path, kubeconfig: Path) -> str:
    """Restore a snapshot; returns a line about what was done.

    Args:
        client: of the cluster.
        name: the snapshot's.
        snapshots: the directory of the stack's snapshots.
        kubeconfig: of the cluster.

    Raises:
        LabError: there is no such snapshot, or it cannot be restored into this cluster.
        ApiError, Unreachable: the cluster could not be asked.
    """
    file = snapshots / f"{Path(name).name}{SUFFIX}"
    _require(file, name)
    try:
        done = await restore(client, kubeconfig, file)
    except (ProviderError, Damaged) as error:
        raise LabError(f"from: snapshot {name}: {error}") from None
    except OSError as error:
        raise LabError(f"from: snapshot {name}: {error.strerror or error}") from None
    return f"begins from the snapshot {name}: {done.written:,} objects put back, {done.removed:,} removed"


def _require(file: Path, name: str) -> None:
    """Make sure that a snapshot is there.

    Raises:
        LabError: it is not there; says which snapshots are.
    """
    if not file.is_file():
        there = ", ".join(sorted(each.name.removesuffix(SUFFIX) for each in file.parent.glob(f"*{SUFFIX}")))
        remedy = f"there are {there}" if there else f"make it: kumulus snapshot save {name}"
        raise LabError(f"from: there is no snapshot {name}; {remedy}")
