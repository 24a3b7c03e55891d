"""``kumulus:index:Definitions``: removes the CRDs of a chart, which Helm leaves behind.

Helm creates the CustomResourceDefinitions of a chart and never removes them. This resource is created before the
release and records which CRDs of an API group existed before. After the release is gone, it removes those that Helm has
created since, except CRDs that somebody else has written or that still have objects. It removes none while another
owner's kwok-controller runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from kumulus.helm import history
from kumulus.helm.crds import has_objects
from kumulus.kube import objects
from kumulus.kwok.stages import API_VERSION
from kumulus.model.plain import UNKNOWN
from kumulus.nodes.errors import ProviderError
from kumulus.provider.properties import STRING, Property, listing
from kumulus.provider.resources.base import CheckResult, InputFailure, Operation, Properties, known
from kumulus.provider.resources.in_cluster import PLACE, WORK_PATIENCE, InClusterResource, with_remedy
from kumulus.runtimes.existing.kwok import others_controller

if TYPE_CHECKING:
    from kumulus.kube import Client

KWOK = API_VERSION.partition("/")[0]
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_BEFORE = "before"
# The field manager of Helm in the plugin that installs the release.
_HELM = "pulumi-resource-kubernetes"


class Definitions(InClusterResource):
    """The kinds of an API group that a chart brings, which Helm would leave behind."""

    token: ClassVar[str] = "kumulus:index:Definitions"
    inputs: ClassVar = (*PLACE, Property("group", STRING, "The kinds' API group.", required=True, replaces=True))
    outputs: ClassVar = (Property(_BEFORE, listing(STRING), "Names of those that were there first, which stay."),)

    def check(self, old_inputs: Properties, inputs: Properties, program: str) -> CheckResult:
        checked = super().check(old_inputs, inputs, program)
        group = inputs.get("group")
        if group is not None and group is not UNKNOWN and not isinstance(group, str):
            checked.failures.append(InputFailure("group", f"{group!r} is not a string"))
        return checked

    def title(self, properties: Properties) -> str:
        return f"kinds of {properties.get('group')}"

    def id_of(self, inputs: Properties) -> str:
        return str(known(inputs, "group"))

    def place_of(self, properties: Properties) -> tuple[object, ...]:
        """See :meth:`InClusterResource.place_of`: which kinds they are."""
        return (properties.get("group"),)

    def failed(self, properties: Properties, error: Exception) -> ProviderError:
        return with_remedy(super().failed(properties, error), properties)

    async def previewed(self, op: Operation, inputs: Properties, old: Properties | None) -> Properties:
        return {**inputs, _BEFORE: UNKNOWN if old is None else old.get(_BEFORE)}

    async def make(self, op: Operation, resource_id: str, inputs: Properties, old: Properties | None) -> Properties:
        """See :meth:`InClusterResource.make`: an update changes nothing in the cluster."""
        if old is not None:
            return await self.previewed(op, inputs, old)
        with self.needing_cluster(inputs):
            client, owner = await self.client(inputs, WORK_PATIENCE), self.owner(op, inputs)
            there = await _definitions_of(client, resource_id)
            if owner.identity and await history.is_there(client, "", owner):
                # This resource is made again while the stack has releases: what only Helm has written came with them.
                there = [each for each in there if _writers(each) - {_HELM}]
        return {**inputs, _BEFORE: sorted(each["metadata"]["name"] for each in there)}

    async def look(self, op: Operation, outputs: Properties, inputs: Properties) -> Properties:
        return outputs

    async def remove(self, op: Operation, outputs: Properties) -> None:
        """See :meth:`InClusterResource.remove`; a kind that others need stays, with a warning."""
        group, before = str(known(outputs, "group")), set(outputs.get(_BEFORE) or ())
        client = await self.client(outputs, WORK_PATIENCE)
        ours = [each for each in await _definitions_of(client, group) if each["metadata"]["name"] not in before]
        if ours and group == KWOK and (theirs := await others_controller(client)):
            op.report.warn(f"the kinds of {group} stay: {theirs}, which is not this stack's, works with them")
            return
        for each in ours:
            name = each["metadata"]["name"]
            if writers := _writers(each) - {_HELM}:
                op.report.warn(f"{name} stays: {', '.join(sorted(writers))} has written it")
            elif await has_objects(client, each):
                op.report.warn(f"{name} stays: there are objects of it")
            else:
                await objects.remove(client, f"{_DEFINITIONS}/{name}")


def _writers(definition: dict[str, Any]) -> set[str]:
    """The field managers that have written the definition, without its status, which the API server writes."""
    fields = definition["metadata"].get("managedFields") or ()
    return {str(each.get("manager")) for each in fields if not each.get("subresource")}


async def _definitions_of(client: Client, group: str) -> list[dict[str, Any]]:
    return [item async for page in client.pages(_DEFINITIONS) for item in page if item["spec"]["group"] == group]
