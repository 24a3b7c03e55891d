"""``kumulus:index:Definitions``: what remains of a chart's kinds when its release is gone.

Helm makes the CustomResourceDefinitions of a chart and never removes them. This stands before the release: it notes
which of an API group were there first, and removes the others when the release is gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from kumulus.cluster.errors import ProviderError
from kumulus.kube import ApiError, KubeconfigError, Unreachable, objects
from kumulus.model.unknown import UNKNOWN
from kumulus.provider.connections import WrongCluster
from kumulus.provider.properties import STRING, Property, listing
from kumulus.provider.resources.base import Checked, Failure, Found, Operation, Properties, known
from kumulus.provider.resources.in_cluster import PLACE, WORK_PATIENCE, InCluster, when_down

if TYPE_CHECKING:
    from kumulus.kube import Client

_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_BEFORE = "before"


class Definitions(InCluster):
    """The kinds of an API group that a chart brings, which Helm would leave behind."""

    token: ClassVar[str] = "kumulus:index:Definitions"
    inputs: ClassVar = (*PLACE, Property("group", STRING, "The kinds' API group.", required=True, replaces=True))
    outputs: ClassVar = (Property(_BEFORE, listing(STRING), "Names of those that were there first, which stay."),)

    def check(self, old_inputs: Properties, inputs: Properties, program: str) -> Checked:
        """See :meth:`Resource.check`."""
        failures = self.input_failures(inputs)
        group = inputs.get("group")
        if group is not None and group is not UNKNOWN and not isinstance(group, str):
            failures.append(Failure("group", f"{group!r} is not a string"))
        return Checked({key: inputs[key] for key in self.keys() if key in inputs}, failures)

    async def create(self, op: Operation, inputs: Properties) -> tuple[str, Properties]:
        """See :meth:`Resource.create`."""
        if op.preview:
            return "", {**inputs, _BEFORE: UNKNOWN}
        group = str(known(inputs, "group"))
        try:
            there = await _of(await self.client(inputs, WORK_PATIENCE), group)
        except (KubeconfigError, WrongCluster, ApiError, Unreachable) as error:
            raise ProviderError(f"kinds of {group}: {error}; {when_down(inputs)}") from None
        return group, {**inputs, _BEFORE: sorted(each["metadata"]["name"] for each in there)}

    async def read(self, op: Operation, resource_id: str, outputs: Properties, inputs: Properties) -> Found | None:
        """See :meth:`Resource.read`: what was there before does not change."""
        return Found(resource_id, outputs, inputs)

    async def update(self, op: Operation, resource_id: str, old_outputs: Properties, inputs: Properties) -> Properties:
        """See :meth:`Resource.update`: another way to the same cluster."""
        return {**inputs, _BEFORE: old_outputs.get(_BEFORE)}

    async def delete(self, op: Operation, resource_id: str, outputs: Properties) -> None:
        """See :meth:`Resource.delete`; a kind of which there are objects stays, with a warning."""
        group, before = str(known(outputs, "group")), set(outputs.get(_BEFORE) or ())
        try:
            client = await self.client(outputs, WORK_PATIENCE)
            for each in await _of(client, group):
                if each["metadata"]["name"] in before:
                    continue
                if left := await _objects(client, each["spec"]):
                    op.report.warn(f"{each['metadata']['name']} stays: there are objects of it, {left[0]} among them")
                else:
                    await objects.remove(client, f"{_DEFINITIONS}/{each['metadata']['name']}")
        except (KubeconfigError, WrongCluster):
            return
        except (ApiError, Unreachable) as error:
            raise ProviderError(f"kinds of {group}: {error}; {when_down(outputs)}") from None


async def _of(client: Client, group: str) -> list[dict[str, Any]]:
    return [item async for page in client.pages(_DEFINITIONS) for item in page if item["spec"]["group"] == group]


async def _objects(client: Client, spec: dict[str, Any]) -> list[str]:
    """Names of objects of a kind; none of one that is not served."""
    served = [version["name"] for version in spec["versions"] if version.get("served")]
    if not served:
        return []
    try:
        return await objects.names(client, f"/apis/{spec['group']}/{served[0]}/{spec['names']['plural']}")
    except ApiError as error:
        if error.status == 404:
            return []
        raise
