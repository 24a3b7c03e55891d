"""``kumulus:index:ReleaseMark``: a note in the cluster that the stack's state has a Helm release.

It is declared after the release. A release without it was installed by an update that was killed before it ended, and
Pulumi would fail on it forever; see ``release_preparation`` and docs/decisions/helm-releases.md.
"""

from __future__ import annotations

from typing import ClassVar

from kumulus.helm import history
from kumulus.model.identity import Owner
from kumulus.nodes.errors import ProviderError
from kumulus.provider.connections import UNASKED
from kumulus.provider.resources.base import Operation, Properties
from kumulus.provider.resources.diffing import Difference
from kumulus.provider.resources.in_cluster import LOOK_PATIENCE, WORK_PATIENCE
from kumulus.provider.resources.release import OfRelease
from kumulus.provider.values import contains_unknown


class ReleaseMark(OfRelease):
    """A note in the cluster that a Pulumi state has a Helm release."""

    token: ClassVar[str] = "kumulus:index:ReleaseMark"

    async def compare(self, old_outputs: Properties, inputs: Properties) -> list[Difference]:
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
        return [Difference("name", "update")] if revisions and not marked else []

    async def make(self, op: Operation, resource_id: str, inputs: Properties, old: Properties | None) -> Properties:
        """See :meth:`InCluster.make`."""
        owner = self.owner(op, inputs, old)
        with self.needing_cluster(inputs):
            found = await self.revisions(inputs, WORK_PATIENCE)
            if history.others(found, owner, proven=True):
                raise ProviderError(f"release {self.id_of(inputs)} is another stack's; it was not marked as this one's")
            if found:
                client = await self.client(inputs, WORK_PATIENCE)
                await history.mark_recorded(client, str(inputs["namespace"]), found[-1], owner)
        return inputs
