"""Resources about a Helm release: what they share, and its mark."""

from typing import ClassVar

from kumulus.helm import history
from kumulus.helm.history import Revision
from kumulus.model.identity import Owner
from kumulus.nodes.errors import ProviderError
from kumulus.provider.connections import UNASKED
from kumulus.provider.properties import STRING, Property
from kumulus.provider.resources.base import Operation, Properties, known
from kumulus.provider.resources.diffing import PropertyDifference
from kumulus.provider.resources.in_cluster import LOOK_PATIENCE, PLACE, WORK_PATIENCE, InClusterResource
from kumulus.provider.values import contains_unknown


class OfRelease(InClusterResource[Properties]):
    """A resource about a Helm release; ``namespace`` and ``name`` say which, in addition to its cluster's place."""

    inputs: ClassVar[tuple[Property, ...]] = (
        *PLACE,
        Property("namespace", STRING, "The Helm release's namespace.", required=True, replaces=True),
        Property("name", STRING, "The Helm release's name.", required=True, replaces=True),
    )

    def title(self, properties: Properties) -> str:
        return f"release {self.id_of(properties)}"

    def id_of(self, inputs: Properties) -> str:
        """See :meth:`InClusterResource.id_of`: ``namespace/name`` of the release."""
        return f"{known(inputs, 'namespace')}/{known(inputs, 'name')}"

    def place_of(self, properties: Properties) -> tuple[object, ...]:
        """See :meth:`InClusterResource.place_of`: which release it is about."""
        return (properties.get("namespace"), properties.get("name"))

    async def look(self, op: Operation, outputs: Properties, inputs: Properties) -> Properties:
        """See :meth:`InClusterResource.look`; what is recorded stands; :meth:`compare` may look at the release."""
        return outputs

    async def remove(self, op: Operation, outputs: Properties) -> None:
        """See :meth:`InClusterResource.remove`: most of these resources have nothing to remove besides the release."""

    async def revisions(self, properties: Properties, patience: float) -> list[Revision]:
        """The release's revisions; arguments and errors as of :meth:`InClusterResource.client`."""
        client = await self.client(properties, patience)
        namespace, name = str(known(properties, "namespace")), str(known(properties, "name"))
        return await history.revisions(client, namespace, name, patience)


# ``kumulus:index:ReleaseMark``: a note in the cluster that the stack's state has a Helm release.
#
# It is declared after the release. A release without it was installed by an update that was killed before it ended,
# and Pulumi would fail on it forever; see ``release_preparation`` and docs/decisions/helm-releases.md.


class ReleaseMark(OfRelease):
    """A note in the cluster that a Pulumi state has a Helm release."""

    token: ClassVar[str] = "kumulus:index:ReleaseMark"

    async def compare(self, old_outputs: Properties, inputs: Properties) -> list[PropertyDifference]:
        """See :meth:`Resource.compare`: a release that was installed again has to be marked again."""
        found = self.diff(old_outputs, inputs)
        if found or contains_unknown(inputs):
            return found
        try:
            revisions = await self.revisions(inputs, LOOK_PATIENCE)
        except UNASKED:
            return []
        mine = str(inputs.get("stackId") or "")
        marked = any(revision.recorded and (revision.owner or Owner()).identity == mine for revision in revisions)
        return [PropertyDifference("name", "update")] if revisions and not marked else []

    async def make(self, op: Operation, resource_id: str, inputs: Properties, old: Properties | None) -> Properties:
        owner = self.owner(op, inputs, old)
        with self.needing_cluster(inputs):
            found = await self.revisions(inputs, WORK_PATIENCE)
            if history.others(found, owner, proven=True):
                raise ProviderError(f"release {self.id_of(inputs)} is another stack's; it was not marked as this one's")
            if found:
                client = await self.client(inputs, WORK_PATIENCE)
                await history.mark_recorded(client, str(inputs["namespace"]), found[-1], owner)
        return inputs
