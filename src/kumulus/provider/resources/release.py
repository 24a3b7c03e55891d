"""What the resources about a Helm release have in common: which release it is, and its revisions."""

from __future__ import annotations

from typing import ClassVar

from kumulus.helm import history
from kumulus.helm.history import Revision
from kumulus.provider.properties import STRING, Property
from kumulus.provider.resources.base import Checked, Found, Operation, Properties, known
from kumulus.provider.resources.in_cluster import PLACE, InCluster


class OfRelease(InCluster):
    """A resource about a Helm release; ``namespace`` and ``name`` say which, beside its cluster's place."""

    inputs: ClassVar[tuple[Property, ...]] = (
        *PLACE,
        Property("namespace", STRING, "The Helm release's namespace.", required=True, replaces=True),
        Property("name", STRING, "The Helm release's name.", required=True, replaces=True),
    )

    def check(self, old_inputs: Properties, inputs: Properties, program: str) -> Checked:
        """See :meth:`Resource.check`."""
        return Checked({key: inputs[key] for key in self.keys() if key in inputs}, self.input_failures(inputs))

    async def read(self, op: Operation, resource_id: str, outputs: Properties, inputs: Properties) -> Found | None:
        """See :meth:`Resource.read`; there is nothing to see but what :meth:`compare` looks for anyway."""
        return Found(resource_id, outputs, inputs)

    async def revisions(self, properties: Properties, patience: float) -> list[Revision]:
        """The release's revisions; arguments and errors as of :meth:`InCluster.client`."""
        client = await self.client(properties, patience)
        namespace, name = str(known(properties, "namespace")), str(known(properties, "name"))
        return await history.revisions(client, namespace, name, patience)

    @staticmethod
    def id_of(inputs: Properties) -> str:
        """Its id: ``namespace/name`` of the release."""
        return f"{known(inputs, 'namespace')}/{known(inputs, 'name')}"
