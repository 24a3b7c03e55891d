"""The protobuf encoding, as far as it can be told without a server; tests/integration/test_protobuf.py has one."""

from __future__ import annotations

from typing import Any

import pytest

from kumulus.kube.protobuf import NodeBatch, NoEncoding, decode_status, encode_node


def node(name: str, **status: Any) -> dict[str, Any]:
    labels = {"kubernetes.io/hostname": name, "zone": "a"}
    addresses = [{"type": "Hostname", "address": name}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": {"cpu": "8"}, "addresses": addresses, **status},
    }


def test_a_field_without_a_number_is_refused_and_not_lost() -> None:
    with pytest.raises(NoEncoding, match="'images'"):
        encode_node(node("a-0", images=[]))


def test_a_batch_says_of_each_node_what_is_its_own() -> None:
    batch = NodeBatch(node("a-0"), node("a-1"))
    body = batch.encode(node("a-7"))
    assert body.count(b"a-7") == 3
    assert b"a-0" not in body[body.index(b"a-7") :]
    assert body.count(b"zone") == body.count(b"cpu") == 1
    # The shared host name comes first, so that the node's own wins.
    assert body.rindex(b"a-7") > body.index(b"a-0")


@pytest.mark.parametrize(
    "odd",
    [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a-7", "labels": {"zone": "a"}}, "status": {}},
        node("a-7", conditions=[{"type": "Ready", "status": "False"}]),
    ],
)
def test_a_node_that_lacks_what_is_shared_or_has_another_list_is_encoded_whole(odd: dict[str, Any]) -> None:
    shared = {"conditions": [{"type": "Ready", "status": "True"}]}
    batch = NodeBatch(node("a-0", **shared), node("a-1", **shared))
    assert batch.encode(odd) == encode_node(odd)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"k8s\x00",
        b"k8s\x00\xff\xff",
        b"k8s\x00\x0a\x05abc",
        pytest.param(encode_node(node("a-0")), id="node"),
    ],
)
def test_what_is_no_status_is_not_read_as_one(body: bytes) -> None:
    assert decode_status(body) is None
