"""``kumulus:index:KubernetesObject``: an object of the Kubernetes API, owned by a stack, refused if it is another's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

from kumulus.kube import ApiError, objects
from kumulus.kwok.stages import API_VERSION
from kumulus.model.plain import UNKNOWN
from kumulus.model.quantity import QuantityError
from kumulus.model.quotas import over
from kumulus.nodes import owned_objects
from kumulus.nodes.errors import PartialFailure, ProviderError
from kumulus.nodes.faults import stages
from kumulus.nodes.owned_objects import FIXED, Address, Owned
from kumulus.nodes.ownership import NotOurs
from kumulus.provider.properties import OBJECT, STRINGS, Property
from kumulus.provider.resources.base import CheckResult, InputFailure, Operation, Properties, known, mark_failures
from kumulus.provider.resources.diffing import Kind, PropertyDifference, covers
from kumulus.provider.resources.in_cluster import (
    DRIFT,
    LOOK_PATIENCE,
    PLACE,
    WORK_PATIENCE,
    InClusterResource,
    drifted,
)
from kumulus.provider.values import contains_unknown

if TYPE_CHECKING:
    from kumulus.kube import Client

TOKEN = "kubernetes.io/service-account-token"
"""The type of a Secret into which the cluster writes a service account's token."""
_MANIFEST, _DATA = "manifest", "data"
_ADDRESS = ("apiVersion", "kind", "metadata.name", "metadata.namespace")
_DELETING_S = 60.0
_TOKEN_S = 30.0
_REMEDY = "give yours another name, or remove that one first"


class KubernetesObjectResource(InClusterResource):
    """An object that is the stack's own: what its manifest does not have is left to others."""

    token: ClassVar[str] = "kumulus:index:KubernetesObject"
    inputs: ClassVar = (
        *PLACE,
        Property(
            _MANIFEST,
            OBJECT,
            "The object, as a manifest has it. Another API version, kind, name or namespace, another `roleRef` of a "
            "binding and another `type` of a Secret replace it.",
            required=True,
        ),
    )
    outputs: ClassVar = (
        Property(
            _DATA, STRINGS, f"What the cluster has written into a Secret of the type {TOKEN}, in base64.", secret=True
        ),
        DRIFT,
    )

    def check(self, old_inputs: Properties, inputs: Properties, program: str) -> CheckResult:
        checked = super().check(old_inputs, inputs, program)
        manifest = inputs.get(_MANIFEST)
        if manifest is not None and manifest is not UNKNOWN:
            checked.failures.extend(_failures(manifest))
        return checked

    def diff(self, old_outputs: Properties, inputs: Properties) -> list[PropertyDifference]:
        """See :meth:`Resource.diff`: what the server refuses to change is replaced."""
        fixed = [f"{_MANIFEST}.{path}" for path in (*_ADDRESS, *FIXED)]
        found = super().diff(old_outputs, inputs)
        for index, each in enumerate(found):
            if not each.replaces and any(covers(path, each.path) for path in fixed):
                found[index] = replace(each, kind=cast(Kind, f"{each.kind}-replace"))
        return found

    def title(self, properties: Properties) -> str:
        return str(Address.of(known(properties, _MANIFEST)))

    def id_of(self, inputs: Properties) -> str:
        it = Address.of(known(inputs, _MANIFEST))
        return "/".join(filter(None, (str(known(inputs, "clusterName")), it.kind, it.namespace, it.name)))

    def place_of(self, properties: Properties) -> tuple[object, ...]:
        manifest = properties.get(_MANIFEST)
        return (Address.of(manifest) if isinstance(manifest, Mapping) else None,)

    def failed(self, properties: Properties, error: Exception) -> ProviderError:
        """See :meth:`InClusterResource.failed`; a namespace that somebody has deleted is made again by a refresh."""
        failure = super().failed(properties, error)
        absent = f'namespaces "{Address.of(known(properties, _MANIFEST)).namespace}"'
        if isinstance(error, ApiError) and error.status == 404 and absent in error.message:
            return ProviderError(f"{failure}; make it, or if the stack declares it, `pulumi up --refresh` does")
        return failure

    async def previewed(self, op: Operation, inputs: Properties, old: Properties | None) -> Properties:
        """See :meth:`InClusterResource.previewed`: refuses another owner's object here too, once there is a cluster."""
        outputs = inputs
        if _gets_token(inputs):
            outputs = {**inputs, _DATA: UNKNOWN if old is None else old.get(_DATA)}
        if contains_unknown(inputs):
            return outputs
        wanted = self._wanted(op, inputs, old)
        with self.previewing_name(op, inputs, _REMEDY):
            client = await self.client(inputs, LOOK_PATIENCE)
            there = await owned_objects.look(client, wanted, await owned_objects.path_of(client, wanted))
            is_quota = wanted.address.kind == "ResourceQuota"
            if is_quota and there and (beyond := _in_use_beyond(wanted.manifest, there)):
                op.report.info(f"{beyond} in use; what runs stays, and nothing new is admitted until there is less")
        return outputs

    async def make(self, op: Operation, resource_id: str, inputs: Properties, old: Properties | None) -> Properties:
        wanted = self._wanted(op, inputs, old)
        try:
            with self.needing_cluster(inputs):
                client = await self.client(inputs, WORK_PATIENCE)
                path = await owned_objects.make(client, wanted, op.stop, op.timeout or _DELETING_S)
                await _reread_stages(client, wanted)
                return await self._with_token(client, path, resource_id, inputs)
        except NotOurs as error:
            raise ProviderError(f"{error}; {_REMEDY}") from None

    async def _with_token(self, client: Client, path: str, resource_id: str, inputs: Properties) -> Properties:
        """The outputs, with the token that the cluster writes into a Secret for a service account's token."""
        if not _gets_token(inputs):
            return inputs
        data: dict[str, Any] = {}

        async def written() -> bool:
            data.update((await objects.find(client, path) or {}).get(_DATA) or {})
            return "token" in data

        if not await objects.wait_until(written, bool, _TOKEN_S):
            missing = f"the cluster wrote no token into it within {_TOKEN_S:g} s; is kube-controller-manager up?"
            raise PartialFailure(f"{self.title(inputs)}: {missing}", resource_id, inputs)
        return {**inputs, _DATA: data}

    async def look(self, op: Operation, outputs: Properties, inputs: Properties) -> Properties | None:
        if not inputs.get("kubeconfig"):
            # An import has nothing but an ID.
            raise ProviderError("a KubernetesObject cannot be imported: declare it under another name")
        client, wanted = await self.client(inputs, LOOK_PATIENCE), self._wanted(op, inputs, outputs)
        path = await owned_objects.path_of(client, wanted)
        try:
            there = await owned_objects.look(client, wanted, path)
        except NotOurs:
            return None
        if path is None or there is None or there["metadata"].get("deletionTimestamp"):
            if _gets_token(inputs) and outputs.get(_DATA):
                refused = "kubeconfigs that were handed out are refused, until you hand out the new output"
                op.report.warn(f"{self.title(inputs)} is gone, and its token with it: {refused}")
            return None
        found = {**inputs, _DATA: there.get(_DATA)} if _gets_token(inputs) else inputs
        return drifted(found, await owned_objects.differences(client, wanted, path, there))

    async def remove(self, op: Operation, outputs: Properties) -> None:
        client = await self.client(outputs, WORK_PATIENCE)
        wanted = self._wanted(op, outputs, outputs)
        await owned_objects.remove(client, wanted, op.stop, op.timeout or _DELETING_S)
        await _reread_stages(client, wanted)

    def _wanted(self, op: Operation, properties: Properties, old: Properties | None) -> Owned:
        return Owned(known(properties, _MANIFEST), self.owner(op, properties, old), recorded=old is not None)


async def _reread_stages(client: Client, changed: Owned) -> None:
    """Make sure that KWOK goes by a stage as it is now; whoever uses another kind of object watches it."""
    if changed.manifest["apiVersion"] == API_VERSION and changed.address.kind == "Stage":
        await stages.reread(client)


def _in_use_beyond(quota: Mapping[str, Any], there: Mapping[str, Any]) -> str:
    """What is in use now beyond a quota as it is wanted, as text; empty for nothing."""
    spec = quota.get("spec")
    hard = spec.get("hard") if isinstance(spec, Mapping) else None
    if not isinstance(hard, Mapping):
        return ""
    used = there.get("status", {}).get("used") or {}
    try:
        return ", ".join(over(hard, used))
    except QuantityError:
        # The server refuses it in its own words.
        return ""


def _gets_token(inputs: Properties) -> bool:
    manifest = inputs[_MANIFEST]
    return isinstance(manifest, Mapping) and manifest.get("type") == TOKEN


def _failures(manifest: object) -> list[InputFailure]:
    """What is wrong with a manifest, as far as it is known."""
    if not isinstance(manifest, Mapping):
        return [InputFailure(_MANIFEST, f"{manifest!r} is no object; write one with apiVersion, kind and metadata")]
    metadata = manifest.get("metadata")
    if metadata is not UNKNOWN and not isinstance(metadata, Mapping):
        return [InputFailure(f"{_MANIFEST}.metadata", f"{metadata!r} is no object; write one with a name")]
    within: Mapping[str, Any] = {"name": UNKNOWN} if metadata is UNKNOWN else cast(Mapping[str, Any], metadata)
    texts = {each: manifest.get(each) for each in ("apiVersion", "kind")} | {"metadata.name": within.get("name")}
    if within.get("namespace") is not None:
        texts["metadata.namespace"] = within["namespace"]
    found: list[InputFailure] = []
    for path, value in texts.items():
        if value is UNKNOWN:
            continue
        if not value:
            found.append(InputFailure(f"{_MANIFEST}.{path}", "is required"))
        elif not isinstance(value, str):
            found.append(InputFailure(f"{_MANIFEST}.{path}", f"{value!r} is no text"))
    return found + mark_failures((_MANIFEST, "metadata"), within)
