"""Kubernetes' protobuf: messages with just the fields that observers look at, decoded by protobuf's C library.

An API server keeps the protobuf form of an event for all who watch in it (the scheduler, the controllers), so one more
such watcher costs it next to nothing, and the decoding here takes a fraction of JSON's. Fields that are not in the
tables are skipped. Sources of the numbers, which Kubernetes never changes: ``generated.proto`` of k8s.io/api/core/v1,
k8s.io/api/resource/v1 and of k8s.io/apimachinery's pkg/apis/meta/v1, pkg/runtime and pkg/api/resource.
Checked against Kubernetes 1.35 to 1.37.
"""

import struct
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from google.protobuf.message import DecodeError

from kumulus.kube.codecs import PROTOBUF, Listed
from kumulus.kube.errors import no_answer
from kumulus.kube.message_tables import classes_of, tables_of

MAGIC = b"k8s\x00"
"""The prefix of every protobuf body of an API server, and of what it stores: see :func:`opened`."""

_LENGTH = struct.Struct(">I")

OBSERVED = tables_of(
    """
    TypeMeta: apiVersion 1 string, kind 2 string
    Unknown: typeMeta 1 TypeMeta, raw 2 bytes, contentEncoding 3 string
    RawExtension: raw 1 bytes
    WatchEvent: type 1 string, object 2 RawExtension
    Status: message 3 string, reason 4 string, code 6 int32
    ListMeta: resourceVersion 2 string, continue 3 string
    Time: seconds 1 int64
    Quantity: string 1 string
    OwnerReference: kind 1 string, name 3 string
    ObjectMeta: name 1 string, namespace 3 string, uid 5 string, resourceVersion 6 string, creationTimestamp 8 Time,
        deletionTimestamp 9 Time, labels 11 {}string, annotations 12 {}string, ownerReferences 13 *OwnerReference
    Taint: key 1 string, value 2 string, effect 3 string, timeAdded 4 Time
    NodeSpec: providerID 3 string, unschedulable 4 bool, taints 5 *Taint
    Condition: type 1 string, status 2 string, lastTransitionTime 4 Time, reason 5 string, message 6 string
    NodeSystemInfo: machineID 1 string, systemUUID 2 string, bootID 3 string, kernelVersion 4 string, osImage 5 string,
        containerRuntimeVersion 6 string, kubeletVersion 7 string, kubeProxyVersion 8 string, operatingSystem 9 string,
        architecture 10 string
    NodeStatus: capacity 1 {}Quantity, allocatable 2 {}Quantity, conditions 4 *Condition, nodeInfo 7 NodeSystemInfo,
        declaredFeatures 14 *string
    Node: metadata 1 ObjectMeta, spec 2 NodeSpec, status 3 NodeStatus
    ResourceRequirements: limits 1 {}Quantity, requests 2 {}Quantity
    Container: name 1 string, resources 8 ResourceRequirements, restartPolicy 24 string
    NodeSelectorRequirement: key 1 string, operator 2 string, values 3 *string
    NodeSelectorTerm: matchExpressions 1 *NodeSelectorRequirement, matchFields 2 *NodeSelectorRequirement
    NodeSelector: nodeSelectorTerms 1 *NodeSelectorTerm
    NodeAffinity: requiredDuringSchedulingIgnoredDuringExecution 1 NodeSelector
    PodAffinityTerm: topologyKey 3 string
    PodAffinity: requiredDuringSchedulingIgnoredDuringExecution 1 *PodAffinityTerm
    Affinity: nodeAffinity 1 NodeAffinity, podAffinity 2 PodAffinity, podAntiAffinity 3 PodAffinity
    Toleration: key 1 string, operator 2 string, value 3 string, effect 4 string
    TopologySpreadConstraint: topologyKey 2 string, whenUnsatisfiable 3 string
    PodResourceClaim: name 1 string, resourceClaimTemplateName 4 string
    PodSchedulingGroup: podGroupName 1 string
    PodSpec: containers 2 *Container, nodeSelector 7 {}string, nodeName 10 string, affinity 18 Affinity,
        schedulerName 19 string, initContainers 20 *Container, tolerations 22 *Toleration, priority 25 int32,
        overhead 32 {}Quantity, topologySpreadConstraints 33 *TopologySpreadConstraint,
        resourceClaims 39 *PodResourceClaim, resources 40 ResourceRequirements, schedulingGroup 43 PodSchedulingGroup
    PodStatus: phase 1 string, conditions 2 *Condition, reason 4 string, startTime 7 Time
    Pod: metadata 1 ObjectMeta, spec 2 PodSpec, status 3 PodStatus
    ResourcePool: name 1 string
    Device: name 1 string
    ResourceSliceSpec: driver 1 string, pool 2 ResourcePool, nodeName 3 string, devices 6 *Device
    ResourceSlice: metadata 1 ObjectMeta, spec 2 ResourceSliceSpec
    DeviceRequestAllocationResult: driver 2 string, pool 3 string, device 4 string, adminAccess 5 bool,
        consumedCapacity 10 {}Quantity
    DeviceAllocationResult: results 1 *DeviceRequestAllocationResult
    AllocationResult: devices 1 DeviceAllocationResult
    ResourceClaimConsumerReference: uid 5 string
    ResourceClaimStatus: allocation 1 AllocationResult, reservedFor 2 *ResourceClaimConsumerReference
    ResourceClaim: metadata 1 ObjectMeta, status 3 ResourceClaimStatus
    NodeList: metadata 1 ListMeta, items 2 *Node
    PodList: metadata 1 ListMeta, items 2 *Pod
    ResourceSliceList: metadata 1 ListMeta, items 2 *ResourceSlice
    ResourceClaimList: metadata 1 ListMeta, items 2 *ResourceClaim
    """
)


@cache
def message_classes() -> Mapping[str, Any]:
    """The message classes for reading, by Kubernetes' names of their types, such as ``Node``."""
    return classes_of(OBSERVED)


def opened(raw: bytes) -> Any:
    """The envelope in which an API server answers and stores objects: `typeMeta`, the object's bytes as `raw`.

    Source: k8s.io/apimachinery pkg/runtime/serializer/protobuf (``Unknown``). Its other fields are kept for
    :func:`sealed`.

    Raises:
        DecodeError: it is not such an envelope.
    """
    if not raw.startswith(MAGIC):
        raise DecodeError
    return message_classes()["Unknown"].FromString(raw[len(MAGIC) :])


def enveloped(api_version: str, kind: str, content: bytes) -> bytes:
    """An object's bytes in an envelope of its own."""
    type_meta = {"apiVersion": api_version, "kind": kind}
    return sealed(message_classes()["Unknown"](typeMeta=type_meta, raw=content))


def sealed(envelope: Any) -> bytes:
    """The bytes of an envelope, as an API server takes and stores them."""
    return MAGIC + bytes(envelope.SerializeToString())


class MessageCodec:
    """Objects of one kind as protobuf messages; see :class:`kumulus.kube.codecs.Codec`.

    Args:
        kind: ``Node``, ``Pod``, ``ResourceSlice`` or ``ResourceClaim``.
    """

    list_type = watch_type = PROTOBUF

    def __init__(self, kind: str) -> None:
        classes = message_classes()
        self._item, self._list = classes[kind], classes[f"{kind}List"]
        self._event, self._status = classes["WatchEvent"], classes["Status"]

    def listed(self, raw: bytes) -> Listed[Any]:
        """See :meth:`Codec.listed`."""
        page = answered(self._list, raw)
        # Kubernetes' `continue`, which Python cannot have as the name of an attribute.
        return Listed(list(page.items), page.metadata.resourceVersion, page.metadata.token)

    def frames(self, buffer: bytearray) -> Iterator[bytes]:
        """See :meth:`Codec.frames`: each is preceded by its length, four bytes, big-endian."""
        at = 0
        while len(buffer) - at >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(buffer, at)
            end = at + _LENGTH.size + length
            if len(buffer) < end:
                break
            yield bytes(buffer[at + _LENGTH.size : end])
            at = end
        del buffer[:at]

    def event(self, frame: bytes) -> tuple[str, Any]:
        """See :meth:`Codec.event`."""
        event = decoded(self._event, frame)
        if event.type == "ERROR":
            status = answered(self._status, event.object.raw)
            return event.type, {"code": status.code, "reason": status.reason, "message": status.message}
        return event.type, answered(self._item, event.object.raw)

    def key(self, item: Any) -> str:
        """See :meth:`Codec.key`."""
        metadata = item.metadata
        return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else str(metadata.name)

    def version(self, item: Any) -> str:
        """See :meth:`Codec.version`."""
        return str(item.metadata.resourceVersion)


def decoded(kind: Any, raw: bytes) -> Any:
    """A message of a class from its bytes; raises ApiError if they are not one."""
    try:
        return kind.FromString(raw)
    except DecodeError:
        raise no_answer("(protobuf)") from None


def answered(kind: Any, raw: bytes) -> Any:
    """A message of a class from an answer, in its envelope; raises ApiError if it is not one."""
    try:
        return kind.FromString(opened(raw).raw)
    except DecodeError:
        raise no_answer("(protobuf)") from None
