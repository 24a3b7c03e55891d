"""The protobuf encoding, as far as it can be told without a server; tests/integration/test_protobuf.py has one."""

import struct
from typing import Any

import pytest

from kumulus.kube import ApiError
from kumulus.kube.bodies import refusal
from kumulus.kube.messages import MessageCodec, message_classes
from kumulus.kube.protobuf import NodeBatch, NoEncoding, encode_node
from tests.support.messages import node_message

CLASSES = message_classes()


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
    assert "reason" not in refusal(body)


def enveloped(message: Any) -> bytes:
    return b"k8s\x00" + bytes(CLASSES["Unknown"](raw=message.SerializeToString()).SerializeToString())


def frame(kind: str, message: Any) -> bytes:
    event = CLASSES["WatchEvent"](type=kind, object={"raw": enveloped(message)}).SerializeToString()
    return struct.pack(">I", len(event)) + bytes(event)


def test_a_page_has_its_items_its_version_and_the_way_to_the_next() -> None:
    page = CLASSES["NodeList"](items=[node_message("a"), node_message("b")])
    page.metadata.resourceVersion, page.metadata.token = "12", "more"
    found = MessageCodec("Node").listed(enveloped(page))
    assert ([item.metadata.name for item in found.items], found.version, found.token) == (["a", "b"], "12", "more")


def test_events_that_come_in_pieces_are_put_together() -> None:
    codec, buffer, seen = MessageCodec("Node"), bytearray(), []
    stream = frame("ADDED", node_message("a")) + frame("DELETED", node_message("b"))
    for at in range(0, len(stream), 7):
        buffer += stream[at : at + 7]
        seen += [codec.event(each) for each in codec.frames(buffer)]
    assert [(kind, codec.key(item)) for kind, item in seen] == [("ADDED", "a"), ("DELETED", "b")]
    assert not buffer


def test_an_error_is_a_status() -> None:
    codec = MessageCodec("Pod")
    status = CLASSES["Status"](code=410, reason="Expired", message="too old")
    (event,) = codec.frames(bytearray(frame("ERROR", status)))
    assert codec.event(event) == ("ERROR", {"code": 410, "reason": "Expired", "message": "too old"})


def test_fields_without_an_entry_are_passed_over() -> None:
    raw = node_message("a").SerializeToString() + b"\xfa\x07\x03xyz"  # field 127
    assert CLASSES["Node"].FromString(raw).metadata.name == "a"


@pytest.mark.parametrize("raw", [b"", b"<html>", b"k8s\x00\xff\xff", b'{"kind":"NodeList"}'])
def test_what_is_no_protobuf_is_told_and_not_a_crash(raw: bytes) -> None:
    with pytest.raises(ApiError, match="no answer of an API server"):
        MessageCodec("Node").listed(raw)


def test_an_event_that_is_cut_is_told_and_not_a_crash() -> None:
    with pytest.raises(ApiError, match="no answer of an API server"):
        MessageCodec("Node").event(frame("ADDED", node_message("a"))[4:-3])
