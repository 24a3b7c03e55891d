"""Resources about a Helm release: what they share, its mark, the wait until it is ready, and the removal of its CRDs.

Helm creates the CustomResourceDefinitions of a chart and never removes them. This resource is created before the
release and records which CRDs of an API group existed before. After the release is gone, it removes those that Helm has
created since, except CRDs that somebody else has written or that still have objects. It removes none while another
owner's kwok-controller runs.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, ClassVar

from kumulus.helm import history
from kumulus.helm.history import Revision
from kumulus.helm.readiness import Readiness, look
from kumulus.kube import objects
from kumulus.kube.errors import tolerating
from kumulus.kwok.stages import API_VERSION
from kumulus.model.identity import Owner
from kumulus.model.unknown import UNKNOWN
from kumulus.model.words import listed
from kumulus.nodes.errors import ProviderError
from kumulus.provider.connections import UNASKED
from kumulus.provider.properties import INTEGER, NUMBER, STRING, Property, listing
from kumulus.provider.resources.base import Checked, Failure, Operation, Properties, known
from kumulus.provider.resources.diffing import Difference
from kumulus.provider.resources.in_cluster import LOOK_PATIENCE, PLACE, WORK_PATIENCE, InCluster, with_remedy
from kumulus.provider.values import contains_unknown
from kumulus.runtimes.existing.kwok import others_controller

if TYPE_CHECKING:
    from kumulus.kube import Client


class OfRelease(InCluster[Properties]):
    """A resource about a Helm release; ``namespace`` and ``name`` say which, beside its cluster's place."""

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


KWOK = API_VERSION.partition("/")[0]
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_BEFORE = "before"
# The field manager of Helm in the plugin that installs the release.
_HELM = "pulumi-resource-kubernetes"


class Definitions(InCluster[Properties]):
    """The kinds of an API group that a chart brings, which Helm would leave behind."""

    token: ClassVar[str] = "kumulus:index:Definitions"
    inputs: ClassVar = (*PLACE, Property("group", STRING, "The kinds' API group.", required=True, replaces=True))
    outputs: ClassVar = (Property(_BEFORE, listing(STRING), "Names of those that were there first, which stay."),)

    def check(self, old_inputs: Properties, inputs: Properties, program: str) -> Checked:
        checked = super().check(old_inputs, inputs, program)
        group = inputs.get("group")
        if group is not None and group is not UNKNOWN and not isinstance(group, str):
            checked.failures.append(Failure("group", f"{group!r} is not a string"))
        return checked

    def title(self, properties: Properties) -> str:
        return f"kinds of {properties.get('group')}"

    def id_of(self, inputs: Properties) -> str:
        return str(known(inputs, "group"))

    def place_of(self, properties: Properties) -> tuple[object, ...]:
        """See :meth:`InCluster.place_of`: which kinds they are."""
        return (properties.get("group"),)

    def failed(self, properties: Properties, error: Exception) -> ProviderError:
        return with_remedy(super().failed(properties, error), properties)

    async def previewed(self, op: Operation, inputs: Properties, old: Properties | None) -> Properties:
        return {**inputs, _BEFORE: UNKNOWN if old is None else old.get(_BEFORE)}

    async def make(self, op: Operation, resource_id: str, inputs: Properties, old: Properties | None) -> Properties:
        """See :meth:`InCluster.make`: an update changes nothing in the cluster."""
        if old is not None:
            return await self.previewed(op, inputs, old)
        with self.needing_cluster(inputs):
            client, owner = await self.client(inputs, WORK_PATIENCE), self.owner(op, inputs)
            there = await _of(client, resource_id)
            if owner.identity and await history.is_there(client, "", owner):
                # Made again, beside releases that the stack has: what only Helm has written came with them.
                there = [each for each in there if _writers(each) - {_HELM}]
        return {**inputs, _BEFORE: sorted(each["metadata"]["name"] for each in there)}

    async def look(self, op: Operation, outputs: Properties, inputs: Properties) -> Properties:
        return outputs

    async def remove(self, op: Operation, outputs: Properties) -> None:
        """See :meth:`InCluster.remove`; a kind that others need stays, with a warning."""
        group, before = str(known(outputs, "group")), set(outputs.get(_BEFORE) or ())
        client = await self.client(outputs, WORK_PATIENCE)
        ours = [each for each in await _of(client, group) if each["metadata"]["name"] not in before]
        if ours and group == KWOK and (theirs := await others_controller(client)):
            op.report.warn(f"the kinds of {group} stay: {theirs}, which is not this stack's, works with them")
            return
        for each in ours:
            name = each["metadata"]["name"]
            if writers := _writers(each) - {_HELM}:
                op.report.warn(f"{name} stays: {', '.join(sorted(writers))} has written it")
            elif left := await _objects(client, each["spec"]):
                op.report.warn(f"{name} stays: there are objects of it, {left[0]} among them")
            else:
                await objects.remove(client, f"{_DEFINITIONS}/{name}")


def _writers(definition: dict[str, Any]) -> set[str]:
    """The field managers that have written the definition, without its status, which the API server writes."""
    fields = definition["metadata"].get("managedFields") or ()
    return {str(each.get("manager")) for each in fields if not each.get("subresource")}


async def _of(client: Client, group: str) -> list[dict[str, Any]]:
    return [item async for page in client.pages(_DEFINITIONS) for item in page if item["spec"]["group"] == group]


async def _objects(client: Client, spec: dict[str, Any]) -> list[str]:
    """Names of the objects of a kind; none if the kind is not served."""
    served = [version["name"] for version in spec["versions"] if version.get("served")]
    if not served:
        return []
    with tolerating(404):
        return await objects.names(client, f"/apis/{spec['group']}/{served[0]}/{spec['names']['plural']}")
    return []
