"""What resources about a Helm release have in common: which release it is, and its revisions."""

from __future__ import annotations

from typing import ClassVar

from kumulus.helm import history
from kumulus.helm.history import Revision
from kumulus.provider.properties import STRING, Property
from kumulus.provider.resources.base import Operation, Properties, known
from kumulus.provider.resources.in_cluster import PLACE, InCluster


class OfRelease(InCluster):
    """A resource about a Helm release; ``namespace`` and ``name`` say which, beside its cluster's place."""

    inputs: ClassVar[tuple[Property, ...]] = (
        *PLACE,
        Property("namespace", STRING, "The Helm release's namespace.", required=True, replaces=True),
        Property("name", STRING, "The Helm release's name.", required=True, replaces=True),
    )

    def title(self, properties: Properties) -> str:
        """See :meth:`InCluster.title`."""
        return f"release {self.id_of(properties)}"

    def id_of(self, inputs: Properties) -> str:
        """See :meth:`InCluster.id_of`: ``namespace/name`` of the release."""
        return f"{known(inputs, 'namespace')}/{known(inputs, 'name')}"

    def place_of(self, properties: Properties) -> tuple[object, ...]:
        """See :meth:`InCluster.place_of`: which release it is about."""
        return (properties.get("namespace"), properties.get("name"))

    async def look(self, op: Operation, outputs: Properties, inputs: Properties) -> Properties:
        """See :meth:`InCluster.look`; what is recorded stands, as :meth:`compare` may look at the release instead."""
        return outputs

    async def remove(self, op: Operation, outputs: Properties) -> None:
        """See :meth:`InCluster.remove`: most of these resources have nothing to remove besides the release."""

    async def revisions(self, properties: Properties, patience: float) -> list[Revision]:
        """The release's revisions; arguments and errors as of :meth:`InCluster.client`."""
        client = await self.client(properties, patience)
        namespace, name = str(known(properties, "namespace")), str(known(properties, "name"))
        return await history.revisions(client, namespace, name, patience)
