"""Nodes and leases as an API server stores them; tests/integration/test_through_storage.py compares with real ones."""

from copy import deepcopy
from typing import Any

import pytest

from kumulus.kube import ApiError
from kumulus.kube.message_tables import classes_of, tables_of
from kumulus.kube.messages import MAGIC, message_classes, opened, sealed
from kumulus.kube.protobuf import encode_node
from kumulus.kube.stored import NotAlike, StoredLeases, StoredNodes, alike, lease_key, node_key, same


def node(name: str, **changes: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, "zone": "a"},
            "annotations": {"path": f"/{name}"},
        },
        "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]},
        "status": {
            "capacity": {"cpu": "8"},
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": name}],
            "nodeInfo": {"machineID": name, "kubeProxyVersion": ""},
        },
    }
    for path, value in changes.items():
        place, _, key = path.rpartition("__")
        target = made
        for part in place.split("__"):
            target = target[part] if part else target
        target[key] = value
    return made


def read(raw: bytes) -> Any:
    classes = message_classes()
    return classes["Node"].FromString(classes["Unknown"].FromString(raw[len(MAGIC) :]).raw)


def test_a_node_has_what_is_its_own_and_the_rest_of_the_one_that_was_asked_for() -> None:
    first = node("a-0")
    answer = encode_node(first)
    made = StoredNodes(answer, first).of(
        node("a-7", metadata__labels={"kubernetes.io/hostname": "x", "zone": "a"}), "u", 5
    )
    found = read(made)
    assert (found.metadata.name, found.metadata.uid, found.metadata.creationTimestamp.seconds) == ("a-7", "u", 5)
    assert dict(found.metadata.labels) == {"kubernetes.io/hostname": "x", "zone": "a"}
    assert dict(found.metadata.annotations) == {"path": "/a-7"}
    assert found.status.nodeInfo.machineID == "a-7"
    assert found.status.capacity["cpu"].string == "8"
    assert found.spec.taints[0].key == "k"
    assert b"a-0" not in made
    # And the one asked for is as it was.
    assert same(StoredNodes(answer, first).of(first, "", 0), answer)


def test_what_the_server_added_is_kept() -> None:
    first = node("a-0")
    # A field of a later version: number 99, in the node's status.
    raw = encode_node(node("a-0", status__phase="Running"))
    made = StoredNodes(raw, first).of(node("a-1"), "u", 5)
    assert b"Running" in made


@pytest.mark.parametrize(
    "changes",
    [
        {"metadata__labels": {"kubernetes.io/hostname": "a-7"}},
        {"metadata__annotations": {"path": "/a-7", "more": ""}},
        {"metadata__finalizers": ["f"]},
        {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}], "unschedulable": True}},
        {"status__capacity": {"cpu": "9"}},
        {"status__conditions": []},
        {"status__addresses": [{"type": "Hostname", "address": "a-7"}]},
        {"status__nodeInfo": {"machineID": "a-7"}},
        {"more": 1},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_node_that_differs_in_more_is_not_made(changes: dict[str, Any]) -> None:
    first, other = node("a-0"), node("a-7", **changes)
    assert alike(first, node("a-7"))
    assert not alike(first, other)
    before = deepcopy(other)
    with pytest.raises(NotAlike, match="a-7"):
        StoredNodes(encode_node(first), first).of(other, "u", 5)
    assert other == before


def test_two_nodes_are_the_same_but_for_uid_and_times() -> None:
    first = node("a-0")
    nodes = StoredNodes(encode_node(first), first)
    assert same(nodes.of(node("a-1"), "u", 5), nodes.of(node("a-1"), "v", 6))
    assert not same(nodes.of(node("a-1"), "u", 5), nodes.of(node("a-2"), "u", 5))


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


def lease(holder: str = "vm_1", **metadata: Any) -> bytes:
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


def read_lease(raw: bytes) -> Any:
    return MADE["Lease"].FromString(opened(raw).raw)


def test_a_lease_has_what_is_its_own_and_the_rest_of_the_one_that_was_made() -> None:
    found = read_lease(StoredLeases(lease()).of("n-7", OTHER, "v", 1234.000005))
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
    leases = StoredLeases(lease())
    first = leases.of("n-7", OTHER, "v", 1234.0)
    assert leases.of("n-8", UID, "w", 99.0) != first
    assert leases.of("n-7", OTHER, "v", 1234.0) == first


def test_only_a_lease_as_it_was_made_is_one_that_others_are_like() -> None:
    assert StoredLeases(lease()).is_new
    assert not StoredLeases(lease(ownerReferences=[])).is_new
    changed = [{"manager": "kwok"}, {"manager": "kubectl"}]
    assert not StoredLeases(lease(managedFields=changed)).is_new
    assert StoredLeases(lease()).holder == "vm_1"


@pytest.mark.parametrize("answer", [b"", b"{}", b"k8s\x00\xff\xff", b"<html>"])
def test_what_is_no_answer_of_an_api_server_is_refused(answer: bytes) -> None:
    for stored in (lambda: StoredNodes(answer, node("a-0")), lambda: StoredLeases(answer)):
        with pytest.raises(ApiError, match="no answer of an API server"):
            stored()


def test_keys_are_those_of_the_api_server() -> None:
    assert node_key("a-0") == b"/registry/minions/a-0"
    assert lease_key("a-0") == b"/registry/leases/kube-node-lease/a-0"
