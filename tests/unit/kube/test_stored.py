"""Nodes as an API server stores them; tests/integration/test_through_storage.py compares them with a real one's."""

from copy import deepcopy
from typing import Any

import pytest

from kumulus.kube import ApiError
from kumulus.kube.messages import MAGIC, message_classes
from kumulus.kube.protobuf import encode_node
from kumulus.kube.stored import NotAlike, StoredNodes, alike, node_key, same


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


@pytest.mark.parametrize("answer", [b"", b"{}", b"k8s\x00\xff\xff", b"<html>"])
def test_what_is_no_answer_of_an_api_server_is_told(answer: bytes) -> None:
    with pytest.raises(ApiError, match="no answer of an API server"):
        StoredNodes(answer, node("a-0"))


def test_keys_are_those_of_the_api_server() -> None:
    assert node_key("a-0") == b"/registry/minions/a-0"
