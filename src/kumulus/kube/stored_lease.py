"""Leases of nodes as an API server stores them in etcd, each like one that a kwok-controller has made.

The key is that of k8s.io/kubernetes pkg/kubeapiserver/default_storage_factory_builder.go, the field numbers those of
k8s.io/api/coordination/v1 and k8s.io/apimachinery's pkg/apis/meta/v1. As in ``stored``, every field up to the last one
that is changed is in a table, so that the order of the bytes is the server's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from google.protobuf.message import DecodeError

from kumulus.kube.errors import no_answer
from kumulus.kube.message_tables import Tables, classes_of
from kumulus.kube.messages import decoded, opened
from kumulus.kube.stored import METADATA, closed

_KEYS = b"/registry/leases/kube-node-lease/"
_STORED: Tables = {
    **METADATA,
    "LeaseSpec": {
        "holderIdentity": (1, "string"),
        "leaseDurationSeconds": (2, "int32"),
        "acquireTime": (3, "Time"),
        "renewTime": (4, "Time"),
    },
    "Lease": {"metadata": (1, "ObjectMeta"), "spec": (2, "LeaseSpec")},
}


def lease_key(node: str) -> bytes:
    """The key under which an API server keeps the lease of a node."""
    return _KEYS + node.encode()


class StoredLeases:
    """Leases like an existing one, as its holder would have made them for other nodes.

    Args:
        answer: that lease as the API server gives it, in protobuf.

    Raises:
        ApiError: that is not an answer of an API server.
    """

    def __init__(self, answer: bytes) -> None:
        try:
            self._envelope = opened(answer)
            self._lease = decoded(_classes()["Lease"], self._envelope.raw)
        except DecodeError:
            raise no_answer("(protobuf)") from None
        # A stored object has none: it is the revision at which the object is stored.
        self._lease.metadata.resourceVersion = ""

    @property
    def holder(self) -> str:
        """Their holder; empty for none."""
        return str(self._lease.spec.holderIdentity)

    @property
    def is_new(self) -> bool:
        """Whether the lease is as it was created, and owned by its node: others like it are as new ones would be."""
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
        return closed(self._envelope, lease)


@cache
def _classes() -> Mapping[str, Any]:
    return classes_of(_STORED)
