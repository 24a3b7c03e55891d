"""Nodes and their leases as an API server stores them in etcd: the keys, and the bytes.

An API server stores a node as it answers the request to create it: the object with its defaults, identity and managed
fields, in protobuf, in an envelope. So nothing is made up here: the server itself is asked to create one node in a dry
run (``dryRun=All``), and the others are copies of that one under their own names. So are leases of one that a
kwok-controller has made.

Sources: k8s.io/apiserver pkg/registry/generic/registry/store.go (Create) and pkg/storage/etcd3/store.go (Create), the
keys in k8s.io/kubernetes pkg/kubeapiserver/default_storage_factory_builder.go (``minions``); the field numbers as in
``messages``, those of leases in k8s.io/api/coordination/v1. Every field up to the last one that is changed here is in a
table, so that the order of the bytes is the server's own; what is not changed is passed through unread.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from google.protobuf.message import DecodeError

from kumulus.kube.errors import no_answer
from kumulus.kube.message_tables import classes_of, tables_of
from kumulus.kube.messages import OBSERVED, decoded, opened, sealed

_NODES, _LEASES = b"/registry/minions/", b"/registry/leases/kube-node-lease/"

# Maps are lists of Entry here: an API server writes them in the order of their keys, and protobuf's C library would
# order keys differently where one begins with another.
_STORED = {"NodeSystemInfo": OBSERVED["NodeSystemInfo"]} | tables_of(
    """
    Entry: key 1 string, value 2 string
    Time: seconds 1 int64, nanos 2 int32
    ManagedFieldsEntry: manager 1 string, operation 2 string, apiVersion 3 string, time 4 Time, fieldsType 6 string,
        fieldsV1 7 bytes, subresource 8 string
    OwnerReference: kind 1 string, name 3 string, uid 4 string, apiVersion 5 string
    ObjectMeta: name 1 string, generateName 2 string, namespace 3 string, selfLink 4 string, uid 5 string,
        resourceVersion 6 string, generation 7 int64, creationTimestamp 8 Time, deletionTimestamp 9 bytes,
        deletionGracePeriodSeconds 10 int64, labels 11 *Entry, annotations 12 *Entry,
        ownerReferences 13 *OwnerReference, finalizers 14 *string, managedFields 17 *ManagedFieldsEntry
    NodeAddress: type 1 string, address 2 string
    NodeStatus: capacity 1 *bytes, allocatable 2 *bytes, phase 3 string, conditions 4 *bytes, addresses 5 *NodeAddress,
        daemonEndpoints 6 bytes, nodeInfo 7 NodeSystemInfo
    Node: metadata 1 ObjectMeta, spec 2 bytes, status 3 NodeStatus
    LeaseSpec: holderIdentity 1 string, leaseDurationSeconds 2 int32, acquireTime 3 Time, renewTime 4 Time
    Lease: metadata 1 ObjectMeta, spec 2 LeaseSpec
    """
)
_METADATA = {"name", "labels", "annotations"}
# The parts of the status that are a node's own; all others have to be equal.
_OWN_STATUS = ("addresses", "nodeInfo")


class NotAlike(ValueError):
    """A node is not :func:`alike` to the one that the server was asked for."""


def node_key(name: str) -> bytes:
    """The key under which an API server keeps the node of that name."""
    return _NODES + name.encode()


def lease_key(node: str) -> bytes:
    """The key under which an API server keeps the lease of a node."""
    return _LEASES + node.encode()


def alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two nodes to be posted differ only as two nodes of a pool do: in names and numbers."""
    metadata, other_metadata = one["metadata"], other["metadata"]
    status, other_status = one["status"], other["status"]
    return (
        one.keys() == other.keys()
        and metadata.keys() == other_metadata.keys() == _METADATA
        and metadata["labels"].keys() == other_metadata["labels"].keys()
        and metadata["annotations"].keys() == other_metadata["annotations"].keys()
        and one["spec"] == other["spec"]
        and status.keys() == other_status.keys()
        and all(status[key] == other_status[key] for key in status if key not in _OWN_STATUS)
        and _types(status["addresses"]) == _types(other_status["addresses"])
        and status["nodeInfo"].keys() == other_status["nodeInfo"].keys()
    )


def _types(addresses: Sequence[Mapping[str, str]]) -> list[str]:
    return [each["type"] for each in addresses]


class StoredNodes:
    """Nodes like one that an API server was asked for, as it would store them.

    Args:
        answer: its answer in protobuf to the dry run of creating the node.
        manifest: that node as it was posted, a plain v1 Node.
    """

    def __init__(self, answer: bytes, manifest: Mapping[str, Any]) -> None:
        self._envelope, self._node = _opened(answer, "Node")
        self._manifest = manifest

    def of(self, manifest: Mapping[str, Any], uid: str, now: int) -> bytes:
        """The bytes of a node.

        Args:
            manifest: the node as it would be posted.
            now: when it is created, in seconds since 1970.

        Raises:
            NotAlike: it has to be posted.
        """
        model = self._manifest
        if not alike(manifest, model):
            raise NotAlike(str(manifest["metadata"]["name"]))
        node = _classes()["Node"]()
        node.CopyFrom(self._node)
        metadata, status = node.metadata, node.status
        metadata.name, metadata.uid = manifest["metadata"]["name"], uid
        metadata.creationTimestamp.seconds = now
        for entry in metadata.managedFields:
            entry.time.seconds = now
        _set(metadata.labels, manifest["metadata"]["labels"], model["metadata"]["labels"])
        _set(metadata.annotations, manifest["metadata"]["annotations"], model["metadata"]["annotations"])
        for address, wanted in zip(status.addresses, manifest["status"]["addresses"], strict=True):
            address.address = wanted["address"]
        for field, value in manifest["status"]["nodeInfo"].items():
            if value != model["status"]["nodeInfo"][field]:
                setattr(status.nodeInfo, field, value)
        return _sealed(self._envelope, node)


def _set(entries: Any, wanted: Mapping[str, str], there: Mapping[str, str]) -> None:
    """Change a map's entries from what the model has to what is wanted; those that neither has are the server's."""
    for entry in entries:
        key = entry.key
        if key in wanted and wanted[key] != there[key]:
            entry.value = wanted[key]


def same(one: bytes, other: bytes) -> bool:
    """Whether two nodes are the same to an API server, except for their UIDs and times.

    Args:
        one, other: nodes as they are stored or answered.
    """
    return _timeless(one) == _timeless(other)


def _timeless(raw: bytes) -> bytes:
    envelope, node = _opened(raw, "Node")
    node.metadata.ClearField("uid")
    node.metadata.ClearField("creationTimestamp")
    for entry in node.metadata.managedFields:
        entry.ClearField("time")
    return _sealed(envelope, node)


class StoredLeases:
    """Leases like an existing one, as its holder would have made them for other nodes.

    Args:
        answer: that lease as the API server gives it, in protobuf.
    """

    def __init__(self, answer: bytes) -> None:
        self._envelope, self._lease = _opened(answer, "Lease")
        # No version is stored with an object: it is the revision at which it is stored.
        self._lease.metadata.resourceVersion = ""

    @property
    def holder(self) -> str:
        """Their holder; empty for none."""
        return str(self._lease.spec.holderIdentity)

    @property
    def is_new(self) -> bool:
        """Whether the lease is as it was created, and owned by its node: only then are others like it as new ones."""
        owners = self._lease.metadata.ownerReferences
        return len(owners) == 1 and bool(owners[0].uid) and len(self._lease.metadata.managedFields) == 1

    def of(self, node: str, node_uid: str, uid: str, now: float) -> bytes:
        """The bytes of a node's lease.

        Args:
            node_uid: its UID, by which the lease is deleted with the node.
            now: when it is created and renewed, in seconds since 1970.
        """
        lease = _classes()["Lease"]()
        lease.CopyFrom(self._lease)
        metadata, seconds = lease.metadata, int(now)
        metadata.name, metadata.uid = node, uid
        metadata.creationTimestamp.seconds = seconds
        (owner,) = metadata.ownerReferences
        # The managed fields name the owner by its UID, and all UIDs have the same length.
        before, after = owner.uid.encode(), node_uid.encode()
        owner.name, owner.uid = node, node_uid
        for entry in metadata.managedFields:
            entry.time.seconds = seconds
            entry.fieldsV1 = entry.fieldsV1.replace(before, after)
        lease.spec.renewTime.seconds = seconds
        # Microseconds, as Kubernetes keeps them.
        lease.spec.renewTime.nanos = int((now - seconds) * 1e6) * 1000
        return _sealed(self._envelope, lease)


def _opened(raw: bytes, kind: str) -> tuple[Any, Any]:
    """The envelope of an answer, and the object in it."""
    try:
        envelope = opened(raw)
    except DecodeError:
        raise no_answer("(protobuf)") from None
    return envelope, decoded(_classes()[kind], envelope.raw)


def _sealed(envelope: Any, message: Any) -> bytes:
    """An object as it is stored, in an envelope like this one."""
    found = type(envelope)()
    found.CopyFrom(envelope)
    found.raw = message.SerializeToString()
    return sealed(found)


@cache
def _classes() -> Mapping[str, Any]:
    return classes_of(_STORED)
