"""``kumulus:index:DestroyCheck``: checks first in a destroy whether the cluster may be destroyed, and from here.

Pulumi drops what is deleted with a cluster, such as its pools, from the state without asking the provider, before the
cluster can report that it is on another machine, or that an experiment runs there. This resource depends on all of
that, so it is deleted first. See docs/decisions/machine.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from kumulus.provider.properties import STRING, STRINGS, Property
from kumulus.provider.resources.base import Found, Operation, Properties, Resource, known
from kumulus.provider.resources.cluster_place import Places
from kumulus.provider.resources.left_by_runs import require_no_run
from kumulus.provider.settings import Settings
from kumulus.runtimes.base import Runtime

_NAME, _IDENTITY = "name", "clusterIdentity"


class DestroyCheck(Resource):
    """Where and which a cluster is, for a destroy to look there first; it stands for nothing outside the state."""

    token: ClassVar[str] = "kumulus:index:DestroyCheck"
    inputs: ClassVar = (
        Property(_NAME, STRING, "The cluster's name.", required=True),
        Property("runtime", STRING, "The cluster's runtime.", required=True),
        Property("directory", STRING, "Where its files are."),
        Property("owner", STRING, "Its owner, as the cluster has it on record."),
        Property("machine", STRINGS, "The machine that it is on: its `id` and its `name`."),
        Property(_IDENTITY, STRING, "Its identity: while a run is under way there, it is not destroyed."),
    )
    delete_before_replace: ClassVar[bool] = False

    def __init__(self, runtimes: Mapping[str, Runtime], settings: Settings) -> None:
        """Serve it.

        Args:
            runtimes: by name.
            settings: where this is, and whether clusters are moved here.
        """
        self._settings = settings
        self._places = Places(runtimes, settings)

    async def create(self, op: Operation, inputs: Properties) -> tuple[str, Properties]:
        """See :meth:`Resource.create`."""
        return "" if op.preview else str(known(inputs, _NAME)), inputs

    async def read(self, op: Operation, resource_id: str, outputs: Properties, inputs: Properties) -> Found | None:
        """See :meth:`Resource.read`; there is nothing to look at."""
        by_id = {_NAME: resource_id}
        return Found(resource_id, outputs or by_id, inputs or by_id)

    async def update(self, op: Operation, resource_id: str, old_outputs: Properties, inputs: Properties) -> Properties:
        """See :meth:`Resource.update`."""
        return inputs

    async def delete(self, op: Operation, resource_id: str, outputs: Properties) -> None:
        """See :meth:`Resource.delete`.

        Raises:
            ProviderError: a run is under way on the cluster, it is on another machine, or a later version wrote its
                files.
        """
        require_no_run(str(outputs.get(_IDENTITY) or ""))
        if not self._settings.move_here:
            self._places.require_here(outputs)
