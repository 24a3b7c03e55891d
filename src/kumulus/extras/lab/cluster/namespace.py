"""The namespace of a repetition: everything the repetition creates is in it and is deleted with it.

A run leaves the cluster as it found it. The next command removes what a killed run left behind, by its journal; see
:mod:`kumulus.extras.journal`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kumulus.extras.journal.namespace import EXPERIMENT_LABEL, PROCESS
from kumulus.extras.lab.errors import LabError
from kumulus.host import lifetime
from kumulus.kube.namespaces import NAMESPACES
from kumulus.kube.objects import has_account
from kumulus.model.identity import NOBODY, RUN_LABEL, Owner

if TYPE_CHECKING:
    from kumulus.kube import Client

# A controller manager whose watch was cut off, as by a restart of the API server, restarts it within half a minute.
_ACCOUNT_WITHIN = 90.0


async def make(client: Client, name: str, experiment: str, run: str, owner: Owner = NOBODY) -> None:
    """Create a namespace and wait until pods can be created in it."""
    labels = {EXPERIMENT_LABEL: experiment, RUN_LABEL: run, **owner.labels}
    metadata = {"name": name, "labels": labels, "annotations": {PROCESS: lifetime.own(), **owner.annotations}}
    await client.create(NAMESPACES, {"metadata": metadata})
    if not await has_account(client, name, _ACCOUNT_WITHIN):
        raise LabError(f"the namespace {name} gets no ServiceAccount; does the controller manager run?")
