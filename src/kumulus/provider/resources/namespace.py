"""``kumulus:index:Namespace``: a namespace that is a stack's own, and is refused where it is somebody else's."""

from __future__ import annotations

from typing import ClassVar

from kumulus.cluster import namespaces
from kumulus.cluster.errors import ProviderError
from kumulus.cluster.ownership import NotOurs
from kumulus.kube import ApiError, KubeconfigError, Unreachable
from kumulus.model.checks import annotation_problems, label_problems
from kumulus.model.identity import Owner
from kumulus.model.names import dns_label_fault
from kumulus.provider.connections import WrongCluster
from kumulus.provider.properties import STRING, STRINGS, Property
from kumulus.provider.resources.base import Checked, Failure, Found, Operation, Properties, known
from kumulus.provider.resources.in_cluster import DRIFT, LOOK_PATIENCE, PLACE, WORK_PATIENCE, InCluster
from kumulus.provider.values import contains_unknown

_SECONDS_TO_GO = 120.0
_REMEDY = "write another `namespace:` for the tenant, or remove that one first"


class Namespace(InCluster):
    """A namespace that is the stack's own: deleted with everything in it when the stack goes."""

    token: ClassVar[str] = "kumulus:index:Namespace"
    inputs: ClassVar = (
        *PLACE,
        Property("name", STRING, "The namespace's name.", required=True, replaces=True),
        Property(
            "stack",
            STRING,
            "What the stack whose it is is called: `<organization>/<project>/<stack>`.",
            required=True,
        ),
        Property("labels", STRINGS, "Labels it is to have; others stay."),
        Property("annotations", STRINGS, "Annotations it is to have; others stay."),
    )
    outputs: ClassVar = (DRIFT,)

    def check(self, old_inputs: Properties, inputs: Properties, program: str) -> Checked:
        """See :meth:`Resource.check`."""
        failures = self.input_failures(inputs)
        name = inputs.get("name")
        if isinstance(name, str) and (fault := dns_label_fault(name)):
            failures.append(Failure("name", f"{name!r} {fault.message}; {fault.remedy}"))
        for key, problems in (("labels", label_problems), ("annotations", annotation_problems)):
            given = inputs.get(key)
            if given is not None and not contains_unknown(given):
                failures += [Failure(p.path, f"{p.message}; {p.remedy}") for p in problems((key,), given, True)]
        return Checked({key: inputs[key] for key in self.keys() if inputs.get(key) is not None}, failures)

    async def create(self, op: Operation, inputs: Properties) -> tuple[str, Properties]:
        """See :meth:`Resource.create`; a preview refuses somebody else's namespace too, once there is a cluster."""
        if op.preview:
            if not contains_unknown(inputs):
                await self._preview(op, inputs)
            return "", inputs
        await self._make(inputs, {}, "")
        return f"{known(inputs, 'clusterName')}/{known(inputs, 'name')}", inputs

    async def read(self, op: Operation, resource_id: str, outputs: Properties, inputs: Properties) -> Found | None:
        """See :meth:`Resource.read`."""
        if not inputs.get("kubeconfig"):
            raise ProviderError("a Namespace cannot be imported: declare it under another name")
        wanted = _wanted(inputs)
        try:
            client = await self.client(inputs, LOOK_PATIENCE)
            there = await namespaces.look(client, wanted, str(outputs.get("stack") or wanted.owner.stack))
        except (KubeconfigError, WrongCluster, NotOurs):
            return None
        except (ApiError, Unreachable) as error:
            op.report.warn(f"namespace {wanted.name} was not looked at: {error}")
            return Found(resource_id, outputs, inputs)
        if there is None or there.get("deletionTimestamp"):
            return None
        drift = namespaces.differences(there, wanted)
        return Found(resource_id, {**inputs, **({"drift": drift} if drift else {})}, inputs)

    async def update(self, op: Operation, resource_id: str, old_outputs: Properties, inputs: Properties) -> Properties:
        """See :meth:`Resource.update`."""
        recorded = str(old_outputs.get("stack") or "")
        if not op.preview:
            before = {key: _texts(old_outputs, key) for key in ("labels", "annotations")}
            await self._make(inputs, before, recorded)
        elif not contains_unknown(inputs):
            await self._preview(op, inputs, recorded)
        return inputs

    async def delete(self, op: Operation, resource_id: str, outputs: Properties) -> None:
        """See :meth:`Resource.delete`: with everything in it; that of a cluster that is gone is gone with it."""
        wanted = _wanted(outputs)
        try:
            client = await self.client(outputs, WORK_PATIENCE)
            op.report.status(f"waiting until everything in {wanted.name} is gone")
            seconds = op.timeout or _SECONDS_TO_GO
            left = await namespaces.remove(client, wanted, wanted.owner.stack, op.stop, seconds)
        except (KubeconfigError, WrongCluster):
            return
        except NotOurs as error:
            op.report.warn(f"{error}; it is left alone")
            return
        except (ApiError, Unreachable) as error:
            raise ProviderError(f"namespace {wanted.name}: {error}") from None
        if left:
            raise ProviderError(f"namespace {wanted.name} is being deleted: {left}; the next run goes on")

    async def _make(self, inputs: Properties, before: dict[str, dict[str, str]], recorded: str) -> None:
        wanted = _wanted(inputs)
        try:
            client = await self.client(inputs, WORK_PATIENCE)
            await namespaces.make(client, wanted, before, recorded)
        except NotOurs as error:
            raise ProviderError(f"{error}; {_REMEDY}") from None
        except (KubeconfigError, WrongCluster, ApiError, Unreachable) as error:
            raise ProviderError(f"namespace {wanted.name}: {error}") from None

    async def _preview(self, op: Operation, inputs: Properties, recorded: str = "") -> None:
        wanted = _wanted(inputs)
        try:
            client = await self.client(inputs, LOOK_PATIENCE)
            await namespaces.look(client, wanted, recorded)
        except NotOurs as error:
            raise ProviderError(f"{error}; {_REMEDY}") from None
        except (KubeconfigError, WrongCluster, ApiError, Unreachable) as error:
            op.report.warn(f"namespace {wanted.name}: whether its name is free is not known: {error}")


def _wanted(properties: Properties) -> namespaces.Namespace:
    return namespaces.Namespace(
        name=str(known(properties, "name")),
        owner=Owner(str(properties.get("stackId") or ""), str(known(properties, "stack"))),
        labels=_texts(properties, "labels"),
        annotations=_texts(properties, "annotations"),
    )


def _texts(properties: Properties, key: str) -> dict[str, str]:
    found = properties.get(key)
    return {str(name): str(value) for name, value in found.items()} if isinstance(found, dict) else {}
