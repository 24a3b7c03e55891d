"""Leases as an API server stores them; tests/integration/test_through_storage.py compares them with a real one's."""

from typing import Any

import pytest

from kumulus.kube import ApiError
from kumulus.kube.message_tables import classes_of, tables_of
from kumulus.kube.messages import opened, sealed
from kumulus.kube.stored import StoredLeases, lease_key

UID, OTHER = "11111111-aaaa-4aaa-8aaa-111111111111", "22222222-bbbb-4bbb-8bbb-222222222222"
# With a field that the product does not name: what it does not change, it has to keep.
TABLES = tables_of(
    """
    Time: seconds 1 int64, nanos 2 int32
    Owner: kind 1 string, name 3 string, uid 4 string, apiVersion 5 string
    Managed: manager 1 string, time 4 Time, fieldsV1 7 bytes
    Metadata: name 1 string, namespace 3 string, uid 5 string, resourceVersion 6 string, creationTimestamp 8 Time,
        ownerReferences 13 *Owner, managedFields 17 *Managed
    Spec: holderIdentity 1 string, leaseDurationSeconds 2 int32, renewTime 4 Time, strategy 6 string
    Lease: metadata 1 Metadata, spec 2 Spec
    TypeMeta: apiVersion 1 string, kind 2 string
    Unknown: typeMeta 1 TypeMeta, raw 2 bytes
    """
)
MADE = classes_of(TABLES)


def answer(holder: str = "vm_1", **metadata: Any) -> bytes:
    found = MADE["Lease"](
        metadata={
            "name": "n-0",
            "namespace": "kube-node-lease",
            "uid": "u",
            "resourceVersion": "17",
            "creationTimestamp": {"seconds": 5},
            "ownerReferences": [{"kind": "Node", "name": "n-0", "uid": UID, "apiVersion": "v1"}],
            "managedFields": [{"manager": "kwok", "time": {"seconds": 5}, "fieldsV1": f'{{"k:{UID}":1}}'.encode()}],
            **metadata,
        },
        spec={"holderIdentity": holder, "leaseDurationSeconds": 200, "renewTime": {"seconds": 5}, "strategy": "s"},
    )
    meta = MADE["TypeMeta"](apiVersion="coordination.k8s.io/v1", kind="Lease")
    return sealed(MADE["Unknown"](typeMeta=meta, raw=found.SerializeToString()))


def read(raw: bytes) -> Any:
    return MADE["Lease"].FromString(opened(raw).raw)


def test_a_lease_has_what_is_its_own_and_the_rest_of_the_one_that_was_made() -> None:
    found = read(StoredLeases(answer()).of("n-7", OTHER, "v", 1234.000005))
    metadata, spec = found.metadata, found.spec
    assert (metadata.name, metadata.namespace, metadata.uid) == ("n-7", "kube-node-lease", "v")
    assert metadata.resourceVersion == ""
    assert metadata.creationTimestamp.seconds == 1234
    (owner,), (managed,) = metadata.ownerReferences, metadata.managedFields
    assert (owner.kind, owner.name, owner.uid, owner.apiVersion) == ("Node", "n-7", OTHER, "v1")
    assert (managed.manager, managed.time.seconds) == ("kwok", 1234)
    assert managed.fieldsV1.decode() == f'{{"k:{OTHER}":1}}'
    assert (spec.holderIdentity, spec.leaseDurationSeconds, spec.strategy) == ("vm_1", 200, "s")
    assert (spec.renewTime.seconds, spec.renewTime.nanos) == (1234, 5000)


def test_one_lease_leaves_no_trace_in_the_next() -> None:
    leases = StoredLeases(answer())
    first = leases.of("n-7", OTHER, "v", 1234.0)
    assert leases.of("n-8", UID, "w", 99.0) != first
    assert leases.of("n-7", OTHER, "v", 1234.0) == first


def test_only_a_lease_as_it_was_made_is_one_that_others_are_like() -> None:
    assert StoredLeases(answer()).is_new
    assert not StoredLeases(answer(ownerReferences=[])).is_new
    changed = [{"manager": "kwok"}, {"manager": "kubectl"}]
    assert not StoredLeases(answer(managedFields=changed)).is_new
    assert StoredLeases(answer()).holder == "vm_1"


@pytest.mark.parametrize("raw", [b"", b"{}", b"k8s\x00\xff\xff", b"<html>"])
def test_what_is_no_answer_of_an_api_server_is_refused(raw: bytes) -> None:
    with pytest.raises(ApiError, match="no answer of an API server"):
        StoredLeases(raw)


def test_keys_are_those_of_the_api_server() -> None:
    assert lease_key("a-0") == b"/registry/leases/kube-node-lease/a-0"
