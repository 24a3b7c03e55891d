"""``kumulus:index:Namespace``: a namespace owned by a stack, refused if somebody else owns it."""

from typing import ClassVar

from kumulus.model.identity import Owner
from kumulus.nodes import namespaces
from kumulus.nodes.errors import ProviderError
from kumulus.nodes.ownership import NotOurs
from kumulus.provider.properties import STRING, STRINGS, Property
from kumulus.provider.resources.base import CheckResult, Operation, Properties, known, mark_failures, name_failures
from kumulus.provider.resources.in_cluster import (
    DRIFT,
    LOOK_PATIENCE,
    PLACE,
    WORK_PATIENCE,
    InClusterResource,
    drifted,
    recorded_owner,
)
from kumulus.provider.values import contains_unknown

_SECONDS_TO_GO = 120.0
_REMEDY = "write another `namespace:` for the tenant, or remove that one first"


class NamespaceResource(InClusterResource):
    """A namespace that is the stack's own: deleted with everything in it when the stack goes."""

    token: ClassVar[str] = "kumulus:index:Namespace"
    inputs: ClassVar = (
        *PLACE,
        Property("name", STRING, "The namespace's name.", required=True, replaces=True),
        Property("stack", STRING, "The name of the owning stack: `<organization>/<project>/<stack>`.", required=True),
        Property("labels", STRINGS, "Labels it is to have; others stay."),
        Property("annotations", STRINGS, "Annotations it is to have; others stay."),
    )
    outputs: ClassVar = (DRIFT,)

    def check(self, old_inputs: Properties, inputs: Properties, program: str) -> CheckResult:
        checked = super().check(old_inputs, inputs, program)
        name = inputs.get("name")
        wrong = name_failures(name) if isinstance(name, str) else []
        return CheckResult(checked.inputs, checked.failures + wrong + mark_failures((), inputs))

    def title(self, properties: Properties) -> str:
        return f"namespace {known(properties, 'name')}"

    async def look(self, op: Operation, outputs: Properties, inputs: Properties) -> Properties | None:
        if not inputs.get("kubeconfig"):
            raise ProviderError("a Namespace cannot be imported: declare it under another name")
        wanted = _wanted(inputs, outputs)
        client = await self.client(inputs, LOOK_PATIENCE)
        try:
            there = await namespaces.look(client, wanted, str(outputs.get("stack") or wanted.owner.stack))
        except NotOurs:
            return None
        if there is None or there.get("deletionTimestamp"):
            return None
        return drifted(inputs, namespaces.differences(there, wanted))

    async def remove(self, op: Operation, outputs: Properties) -> None:
        """See :meth:`InClusterResource.remove`: with everything in it."""
        wanted = _wanted(outputs)
        client = await self.client(outputs, WORK_PATIENCE)
        op.report.status(f"waiting until everything in {wanted.name} is gone")
        if left := await namespaces.remove(client, wanted, wanted.owner.stack, op.stop, op.timeout or _SECONDS_TO_GO):
            raise ProviderError(f"namespace {wanted.name} is being deleted: {left}; the next run goes on")

    async def make(self, op: Operation, resource_id: str, inputs: Properties, old: Properties | None) -> Properties:
        before = {key: _texts(old, key) for key in ("labels", "annotations")} if old else {}
        try:
            with self.needing_cluster(inputs):
                client = await self.client(inputs, WORK_PATIENCE)
                await namespaces.make(client, _wanted(inputs, old), before, _recorded_stack(old))
        except NotOurs as error:
            raise ProviderError(f"{error}; {_REMEDY}") from None
        return inputs

    async def previewed(self, op: Operation, inputs: Properties, old: Properties | None) -> Properties:
        """See :meth:`InClusterResource.previewed`: refuses another owner's namespace here too, given a cluster."""
        if contains_unknown(inputs):
            return inputs
        with self.previewing_name(op, inputs, _REMEDY):
            client = await self.client(inputs, LOOK_PATIENCE)
            await namespaces.look(client, _wanted(inputs, old), _recorded_stack(old))
        return inputs


def _recorded_stack(outputs: Properties | None) -> str:
    """The name of the stack that the namespace is recorded with; empty before it is made."""
    return str((outputs or {}).get("stack") or "")


def _wanted(properties: Properties, old: Properties | None = None) -> namespaces.WantedNamespace:
    identity, stack = str(properties.get("stackId") or ""), str(known(properties, "stack"))
    return namespaces.WantedNamespace(
        name=str(known(properties, "name")),
        owner=Owner(identity, stack, recorded_owner(old) or ""),
        labels=_texts(properties, "labels"),
        annotations=_texts(properties, "annotations"),
    )


def _texts(properties: Properties, key: str) -> dict[str, str]:
    found = properties.get(key)
    return {str(name): str(value) for name, value in found.items()} if isinstance(found, dict) else {}
