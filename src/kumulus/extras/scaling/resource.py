"""``kumulus:index:Autoscaler``: an autoscaler inside a cluster whose nodes run containers.

With the runtime kwok, the autoscaler is a process next to the control plane, not a resource of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from kumulus.extras.scaling import deploying, registry
from kumulus.model.words import listed
from kumulus.nodes.errors import PartialFailure, ProviderError
from kumulus.nodes.ownership import NotOurs
from kumulus.provider.connections import SILENT, UNASKED
from kumulus.provider.properties import OBJECT, Property
from kumulus.provider.resources.base import Operation, Properties, known
from kumulus.provider.resources.in_cluster import (
    DRIFT,
    LOOK_PATIENCE,
    PLACE,
    WORK_PATIENCE,
    InClusterResource,
    drifted,
    with_remedy,
)
from kumulus.provider.values import contains_unknown
from kumulus.toolchain import ToolMissing

if TYPE_CHECKING:
    from kumulus.extras.scaling.descriptor import AutoscalerDescriptor as Known
    from kumulus.extras.scaling.descriptor import Manifest

_REMEDY = "leave autoscaler: out of the stack, or remove that one first"


class AutoscalerResource(InClusterResource):
    """An autoscaler inside a cluster: its Deployment, its rights, its kinds, its pools."""

    token: ClassVar[str] = "kumulus:index:Autoscaler"
    inputs: ClassVar = (
        *PLACE,
        Property("autoscaler", OBJECT, "What the stack asks of it, with the machines that it may make.", required=True),
    )
    outputs: ClassVar = (DRIFT,)

    def title(self, properties: Properties) -> str:
        return f"autoscaler {_name(properties)}".rstrip()

    def id_of(self, inputs: Properties) -> str:
        return f"{known(inputs, 'clusterName')}/autoscaler"

    def place_of(self, properties: Properties) -> tuple[object, ...]:
        """See :meth:`InClusterResource.place_of`: which autoscaler it is."""
        return (_name(properties),)

    def failed(self, properties: Properties, error: Exception) -> ProviderError:
        return with_remedy(super().failed(properties, error), properties)

    async def previewed(self, op: Operation, inputs: Properties, old: Properties | None) -> Properties:
        """See :meth:`InClusterResource.previewed`: refuses another owner's autoscaler here too, given a cluster."""
        if contains_unknown(inputs):
            return inputs
        autoscaler, wanted = self._wanted(inputs)
        try:
            client = await self.client(inputs, LOOK_PATIENCE)
            seen = await deploying.look(client, autoscaler, wanted, self.owner(op, inputs, old))
        except NotOurs as error:
            raise ProviderError(f"{self.title(inputs)}: {error}; {_REMEDY}") from None
        except UNASKED as error:
            op.report.warn(f"{self.title(inputs)}: whether there is another is not known: {error}")
            return inputs
        if old is None:
            op.report.info(f"{autoscaler.name} is deployed; the nodes that it makes are not the stack's")
        elif "Deployment" in " ".join(seen.altered):
            op.report.info(f"{autoscaler.name} is restarted; its nodes stay")
        elif seen.altered or seen.missing:
            op.report.info(f"changed: {listed([*seen.altered, *seen.missing])}")
        return inputs

    async def make(self, op: Operation, resource_id: str, inputs: Properties, old: Properties | None) -> Properties:
        """See :meth:`InClusterResource.make`: deploys the autoscaler and waits for it."""
        title = self.title(inputs)
        with self.needing_cluster(inputs):
            client = await self.client(inputs, WORK_PATIENCE)
        autoscaler, wanted = self._wanted(inputs)
        try:
            await deploying.deploy(client, autoscaler, wanted, self.owner(op, inputs, old), op.stop, op.report.status)
        except NotOurs as error:
            raise ProviderError(f"{title}: {error}; {_REMEDY}") from None
        except (ProviderError, *SILENT) as error:
            # Parts of it may exist, and a destroy has to find them.
            outputs = drifted(inputs, {"deployment": "was not seen to work"})
            raise PartialFailure(f"{title}: {error}", resource_id, outputs) from None
        return inputs

    async def look(self, op: Operation, outputs: Properties, inputs: Properties) -> Properties | None:
        client = await self.client(inputs, LOOK_PATIENCE)
        autoscaler, wanted = self._wanted(inputs)
        try:
            seen = await deploying.look(client, autoscaler, wanted, self.owner(op, inputs, outputs))
        except NotOurs:
            return None
        if not seen.there:
            return None
        drift = {"missing": listed(seen.missing), "altered": listed(seen.altered)}
        return drifted(inputs, {key: what for key, what in drift.items() if what})

    async def remove(self, op: Operation, outputs: Properties) -> None:
        """See :meth:`InClusterResource.remove`: also removes the nodes that the autoscaler made, and its kinds."""
        asked = known(outputs, "autoscaler")
        assert isinstance(asked, dict)
        client = await self.client(outputs, WORK_PATIENCE)
        autoscaler = registry.get(str(asked["name"]))
        await deploying.remove(client, autoscaler, self.owner(op, outputs), op.stop, op.report.status)

    def _wanted(self, inputs: Properties) -> tuple[Known, list[Manifest]]:
        asked = known(inputs, "autoscaler")
        assert isinstance(asked, dict)
        autoscaler = registry.get(str(asked["name"]))
        if autoscaler.deployment is None:
            raise ProviderError(f"{autoscaler.name} runs alongside a cluster of the runtime kwok only")
        try:
            return autoscaler, autoscaler.deployment(asked)
        except (ToolMissing, ValueError) as error:
            raise ProviderError(f"{self.title(inputs)}: {error}") from None


def _name(properties: Properties) -> str:
    asked = properties.get("autoscaler")
    return str(asked.get("name")) if isinstance(asked, dict) else ""
