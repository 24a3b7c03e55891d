"""``kumulus:index:Lifetime``: the life of one cluster, for other providers' resources to be ``deleted_with``.

It stands for nothing outside the state. When the cluster's identity changes, it is replaced, the new one created first.
The old one is then deleted in the same step as the old resources of the lost cluster, and the engine skips their
deletes, which would reach no cluster. See docs/decisions/deleted-with.md.
"""

from __future__ import annotations

from typing import ClassVar

from kumulus.provider.resources.base import Found, Operation, Properties, Resource, known
from kumulus.provider.resources.in_cluster import PLACE


class Lifetime(Resource):
    """The life of one cluster, for other resources to be `deletedWith`; it stands for nothing outside the state."""

    token: ClassVar[str] = "kumulus:index:Lifetime"
    inputs: ClassVar = (PLACE[1],)
    delete_before_replace: ClassVar[bool] = False

    async def create(self, op: Operation, inputs: Properties) -> tuple[str, Properties]:
        """See :meth:`Resource.create`."""
        return "" if op.preview else str(known(inputs, "clusterIdentity")), inputs

    async def read(self, op: Operation, resource_id: str, outputs: Properties, inputs: Properties) -> Found | None:
        """See :meth:`Resource.read`; the id is the cluster's identity, and the next cluster has another one."""
        known_by_id = {"clusterIdentity": resource_id}
        return Found(resource_id, outputs or known_by_id, inputs or known_by_id)

    async def update(self, op: Operation, resource_id: str, old_outputs: Properties, inputs: Properties) -> Properties:
        """See :meth:`Resource.update`; there is nothing that could change in place."""
        return inputs

    async def delete(self, op: Operation, resource_id: str, outputs: Properties) -> None:
        """See :meth:`Resource.delete`; there is nothing to remove."""
