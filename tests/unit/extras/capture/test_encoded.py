"""A page of a list is the same in protobuf and in JSON, and what is no page is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kumulus.extras.capture.encoded import Unreadable, page
from kumulus.extras.capture.messages import STORED
from kumulus.kube.message_tables import classes_of
from kumulus.kube.messages import MAGIC, enveloped

CLASSES = classes_of(STORED)
POD = {
    "metadata": {"name": "web-0", "namespace": "shop", "labels": {"app": "web"}},
    "spec": {
        "nodeName": "n-1",
        "containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}],
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
    },
}


def pod() -> bytes:
    made = CLASSES["Pod"](metadata=POD["metadata"])
    made.spec.nodeName = "n-1"
    container = made.spec.containers.add(name="main")
    container.resources.requests["cpu"].string = "1"
    made.spec.tolerations.add(key="gpu", operator="Exists")
    return bytes(made.SerializeToString())


def answered(items: list[bytes], token: str) -> bytes:
    listed = CLASSES["List"](metadata={"token": token}, items=items)
    return enveloped("v1", "PodList", listed.SerializeToString())


def test_a_page_is_the_same_in_both() -> None:
    plain: dict[str, Any] = {"items": [POD], "metadata": {"continue": "next"}}
    found = page("Pod", "v1", answered([pod()], "next"))
    assert found == page("Pod", "v1", json.dumps(plain).encode())
    assert found == ([POD], "next")


def test_the_last_page_says_that_nothing_follows_and_may_be_empty() -> None:
    assert page("Pod", "v1", answered([], "")) == ([], "")
    assert page("Pod", "v1", b'{"items": null, "metadata": {}}') == ([], "")


def test_a_device_is_read_as_its_version_has_it() -> None:
    """v1beta1 has what is said of a device in a message of its own."""
    older = CLASSES["V1beta1ResourceSlice"](metadata={"name": "s"})
    older.spec.devices.add(name="gpu-0").basic.SetInParent()
    ((found,), _) = page("ResourceSlice", "resource.k8s.io/v1beta1", answered([older.SerializeToString()], ""))
    assert "basic" in found["spec"]["devices"][0]


@pytest.mark.parametrize(
    "raw",
    [b"", b"<html>", b"[]", MAGIC + b"\xff\xff", answered([b"\xff"], ""), b'{"items": 3}'],
    ids=["empty", "a web page", "a list", "cut off", "a bad item", "a number"],
)
def test_what_is_no_page_is_refused(raw: bytes) -> None:
    with pytest.raises(Unreadable):
        page("Pod", "v1", raw)
