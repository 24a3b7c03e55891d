"""Decodes an object as an API server stores it, and a page of objects as it answers, into JSON values."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from google.protobuf.message import DecodeError

from kumulus.extras.capture.messages import STORED
from kumulus.kube.message_tables import classes_of
from kumulus.kube.messages import MAGIC, opened

INLINE = frozenset(("PersistentVolumeSpec.persistentVolumeSource", "Volume.volumeSource"))
"""Fields that JSON replaces by their own fields."""
_ALWAYS = """
    CELDeviceSelector.expression CSIDriverSpec.attachRequired CSIDriverSpec.storageCapacity CSINodeDriver.name
    CSINodeDriver.nodeID CSINodeDriver.topologyKeys CSIPersistentVolumeSource.driver
    CSIStorageCapacity.storageClassName CompositeGangSchedulingPolicy.minGroupCount
    CompositePodGroupSpec.parentCompositePodGroupName CompositePodGroupSpec.preemptionPolicy
    CompositePodGroupTemplate.name CompositePodGroupTemplate.preemptionPolicy Container.name
    Container.restartPolicy ContainerClaim.name ContainerPort.containerPort CounterSet.name Device.allNodes
    Device.allowMultipleAllocations Device.bindsToNode Device.name Device.nodeName DeviceAttribute.bool
    DeviceAttribute.int DeviceAttribute.string DeviceAttribute.version DeviceClassSpec.extendedResourceName
    DeviceConstraint.distinctAttribute DeviceConstraint.matchAttribute DeviceCounterConsumption.counterSet
    DeviceRequest.name DeviceRequestAllocationResult.adminAccess DeviceRequestAllocationResult.device
    DeviceRequestAllocationResult.driver DeviceRequestAllocationResult.pool DeviceRequestAllocationResult.request
    DeviceSubRequest.deviceClassName DeviceSubRequest.name DeviceTaint.effect DeviceTaint.key
    ExactDeviceRequest.adminAccess ExactDeviceRequest.deviceClassName GangSchedulingPolicy.minCount
    LabelSelectorRequirement.key LabelSelectorRequirement.operator LimitRangeItem.type NodeCondition.status
    NodeCondition.type NodeSelectorRequirement.key NodeSelectorRequirement.operator NodeSystemInfo.architecture
    NodeSystemInfo.operatingSystem OwnerReference.controller OwnerReference.kind OwnerReference.name
    PersistentVolumeClaimSpec.storageClassName PersistentVolumeClaimSpec.volumeMode
    PersistentVolumeClaimVolumeSource.claimName PersistentVolumeSpec.volumeMode PodAffinityTerm.topologyKey
    PodDisruptionBudgetSpec.unhealthyPodEvictionPolicy PodGroupSpec.parentCompositePodGroupName
    PodGroupResourceClaim.name PodGroupResourceClaim.resourceClaimName
    PodGroupResourceClaim.resourceClaimTemplateName PodGroupSpec.preemptionPolicy PodGroupTemplate.name
    PodGroupTemplate.preemptionPolicy PodResourceClaim.name PodResourceClaim.resourceClaimName
    PodResourceClaim.resourceClaimTemplateName PodSchedulingGate.name PodSchedulingGroup.podGroupName
    PodSpec.preemptionPolicy PodSpec.priority PodSpec.runtimeClassName PreferredSchedulingTerm.weight
    PriorityClass.preemptionPolicy PriorityClass.value ResourcePool.generation ResourcePool.name
    ResourcePool.resourceSliceCount ResourceSliceSpec.allNodes ResourceSliceSpec.driver ResourceSliceSpec.nodeName
    ResourceSliceSpec.perDeviceNodeSelection RuntimeClass.handler ScopedResourceSelectorRequirement.operator
    ScopedResourceSelectorRequirement.scopeName StorageClass.provisioner StorageClass.reclaimPolicy
    StorageClass.volumeBindingMode Taint.effect Taint.key Toleration.tolerationSeconds TopologyConstraint.key
    TopologySelectorLabelRequirement.key TopologySelectorLabelRequirement.values TopologySpreadConstraint.maxSkew
    TopologySpreadConstraint.minDomains TopologySpreadConstraint.nodeAffinityPolicy
    TopologySpreadConstraint.nodeTaintsPolicy TopologySpreadConstraint.topologyKey
    TopologySpreadConstraint.whenUnsatisfiable V1beta1BasicDevice.allNodes V1beta1BasicDevice.allowMultipleAllocations
    V1beta1BasicDevice.bindsToNode V1beta1BasicDevice.nodeName V1beta1Device.name V1beta1DeviceRequest.adminAccess
    V1beta1DeviceRequest.name V1beta1DeviceSubRequest.deviceClassName V1beta1DeviceSubRequest.name
    V1beta1ResourceSliceSpec.driver V1beta1ResourceSliceSpec.perDeviceNodeSelection Volume.name
    VolumeNodeResources.count WeightedPodAffinityTerm.weight WorkloadReference.templateName
    WorkloadReference.workloadName
"""
ALWAYS = frozenset(_ALWAYS.split())
"""Fields that JSON includes even when they are zero or empty, by `omitempty` and pointers in ``types.go``. JSON omits
the others when they are zero, though the stored message has them."""

_ENCRYPTED = b"k8s:enc:"
_OLDER = "resource.k8s.io/v1beta1"


class Encrypted(Exception):
    """The object was encrypted before it was stored; says by which provider."""


class Unreadable(Exception):
    """The bytes have none of the forms in which API servers store objects."""


def as_json(kind: str, raw: bytes) -> dict[str, Any]:
    """An object from its stored bytes, with `apiVersion` and `kind`; the kind of custom resources is not checked.

    Raises:
        Encrypted: only its API server can read it.
        Unreadable: the bytes are no such object.
    """
    if raw.startswith(_ENCRYPTED):
        provider = raw[len(_ENCRYPTED) : len(_ENCRYPTED) + 16].split(b":")[0]
        raise Encrypted(provider.decode("ascii", "replace"))
    try:
        return _of_protobuf(kind, raw) if raw.startswith(MAGIC) else _of_json(raw)
    except (DecodeError, ValueError, RecursionError):
        raise Unreadable from None


def page(kind: str, version: str, raw: bytes) -> tuple[list[dict[str, Any]], str]:
    """The objects of a page of a list, and the token of the next page; from protobuf or JSON, as the server answered.

    Raises:
        Unreadable: the answer is no such list.
    """
    try:
        if not raw.startswith(MAGIC):
            found = _of_json(raw)
            return list(found.get("items") or ()), str((found.get("metadata") or {}).get("continue") or "")
        classes = _classes()
        listed = classes["List"].FromString(opened(raw).raw)
        message = classes[_name(kind, version)]
        # `token` is what Kubernetes calls `continue`.
        return [_plain(message.FromString(each)) for each in listed.items], str(listed.metadata.token)
    except (DecodeError, ValueError, KeyError, AttributeError, TypeError, RecursionError):
        raise Unreadable from None


def _of_json(raw: bytes) -> dict[str, Any]:
    found = json.loads(raw)
    if not isinstance(found, dict):
        raise Unreadable
    return found


def _of_protobuf(kind: str, raw: bytes) -> dict[str, Any]:
    classes = _classes()
    envelope = opened(raw)
    version = envelope.typeMeta.apiVersion
    if envelope.typeMeta.kind != kind or envelope.contentEncoding:
        raise Unreadable
    if (name := _name(kind, version)) not in classes:
        raise Unreadable
    return {"apiVersion": version, "kind": kind, **_plain(classes[name].FromString(envelope.raw))}


def _name(kind: str, version: str) -> str:
    """The name of a kind's message in an API version."""
    return f"V1beta1{kind}" if version == _OLDER and f"V1beta1{kind}" in _classes() else kind


@cache
def _classes() -> Mapping[str, Any]:
    return classes_of(STORED)


def _plain(message: Any) -> Any:
    name = message.DESCRIPTOR.name
    if name == "Quantity":
        return message.string
    if name == "IntOrString":
        return message.strVal if message.type else message.intVal
    found: dict[str, Any] = {}
    for field, value in message.ListFields():
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            values = field.message_type.fields_by_name["value"]
            found[field.name] = {
                key: value[key] if values.message_type is None else _plain(value[key]) for key in value
            }
        elif field.is_repeated:
            found[field.name] = [each if field.message_type is None else _plain(each) for each in value]
        elif field.message_type is None:
            if value or f"{name}.{field.name}" in ALWAYS:
                found[field.name] = value
        elif f"{name}.{field.name}" in INLINE:
            found.update(_plain(value))
        else:
            found[field.name] = _plain(value)
    return found
