"""Resources about a Helm release: what they share, its mark, and the wait until it is ready."""

import asyncio
import time
from typing import ClassVar

from kumulus.helm import history
from kumulus.helm.history import Revision
from kumulus.helm.readiness import Readiness, look
from kumulus.model.identity import Owner
from kumulus.model.words import listed
from kumulus.nodes.errors import ProviderError
from kumulus.provider.connections import UNASKED
from kumulus.provider.properties import INTEGER, NUMBER, STRING, Property
from kumulus.provider.resources.base import Operation, Properties, known
from kumulus.provider.resources.diffing import Difference
from kumulus.provider.resources.in_cluster import LOOK_PATIENCE, PLACE, WORK_PATIENCE, InCluster
from kumulus.provider.values import contains_unknown


class OfRelease(InCluster[Properties]):
    """A resource about a Helm release; ``namespace`` and ``name`` say which, in addition to its cluster's place."""

    inputs: ClassVar[tuple[Property, ...]] = (
        *PLACE,
        Property("namespace", STRING, "The Helm release's namespace.", required=True, replaces=True),
        Property("name", STRING, "The Helm release's name.", required=True, replaces=True),
    )

    def title(self, properties: Properties) -> str:
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


# ``kumulus:index:ReleaseMark``: a note in the cluster that the stack's state has a Helm release.
#
# It is declared after the release. A release without it was installed by an update that was killed before it ended,
# and Pulumi would fail on it forever; see ``release_preparation`` and docs/decisions/helm-releases.md.


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
        owner = self.owner(op, inputs, old)
        with self.needing_cluster(inputs):
            found = await self.revisions(inputs, WORK_PATIENCE)
            if history.others(found, owner, proven=True):
                raise ProviderError(f"release {self.id_of(inputs)} is another stack's; it was not marked as this one's")
            if found:
                client = await self.client(inputs, WORK_PATIENCE)
                await history.mark_recorded(client, str(inputs["namespace"]), found[-1], owner)
        return inputs


# ``kumulus:index:ReleaseReady``: waits for a Helm release's workloads, including those that operators create.
#
# It is declared after a release that nothing else waits for. See docs/decisions/observability.md.


_EVERY = 1.0
# Longer than a pod takes to start if its image is present; after that, the user sees the reason for the wait.
_QUIET = 20.0
_MOST_REASONS = 4
_REMEDY = (
    "have the nodes reach the images' registry, load the images into them (with runtime kind: loadImages), or name "
    "others in prometheusStack.valuesObject; kubectl describe pod tells more; then run the update again"
)


class ReleaseReady(OfRelease):
    """That what a Helm release has in the cluster has come up, and what operators make of it."""

    token: ClassVar[str] = "kumulus:index:ReleaseReady"
    inputs: ClassVar = (
        *OfRelease.inputs,
        Property("revision", INTEGER, "The release's revision; another one is waited for again."),
        Property("timeout", NUMBER, "How many seconds to wait.", required=True),
    )

    async def make(self, op: Operation, resource_id: str, inputs: Properties, old: Properties | None) -> Properties:
        """See :meth:`InCluster.make`: waits until the release is ready."""
        begun, reported, shown = time.monotonic(), False, ""
        patience = float(known(inputs, "timeout"))
        where = self.title(inputs)
        while True:
            with self.needing_cluster(inputs):
                client = await self.client(inputs, WORK_PATIENCE)
                found = await look(client, str(known(inputs, "namespace")), str(known(inputs, "name")))
            if not found.waiting:
                op.report.status(found.counted, last=True)
                return inputs
            waited = time.monotonic() - begun
            if waited >= patience:
                raise ProviderError(f"{where} is not ready after {patience:.0f} s: {_why(found)}; {_REMEDY}")
            status = f"{found.counted}{f': {found.reasons[0]}' if found.reasons else ''}"
            if status != shown:
                # Each status is a separate line if the output is not a terminal.
                op.report.status(status)
                shown = status
            if waited >= _QUIET and found.reasons and not reported:
                reported = True
                op.report.warn(f"waiting up to {patience:.0f} s for {_why(found)}")
            try:
                await asyncio.wait_for(op.stop.wait(), _EVERY)
            except TimeoutError:
                continue
            raise ProviderError(f"{where}: cancelled while waiting for {_why(found)}")


def _why(found: Readiness) -> str:
    """The reasons that pods give for waiting, or else the workloads that are waiting."""
    reasons = found.reasons or found.waiting
    return listed(reasons, _MOST_REASONS, "; ")
