"""The table of stored messages has whatever a capture keeps, and says which form each field has."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from kumulus.extras.capture.encoded import ALWAYS, INLINE, Unreadable, page
from kumulus.extras.capture.fields import OBJECTS, POD_SPEC
from kumulus.extras.capture.groups import NODE
from kumulus.extras.capture.kinds import KINDS
from kumulus.extras.capture.messages import STORED
from kumulus.extras.schedulers.forms import BARE, Each, Form, Leaf, Selecting
from kumulus.extras.schedulers.native.objects import POD_GROUP
from kumulus.kube.message_tables import classes_of
from kumulus.kube.messages import MAGIC, enveloped

BUILT_IN = [kind.name for kind in KINDS if kind.group.partition(".")[2] in ("", "k8s.io") and kind.name in OBJECTS]
assert isinstance(POD_SPEC, Mapping)
FORMS: dict[str, Form] = {
    **{kind: OBJECTS[kind] for kind in BUILT_IN},
    # Beside what is stored, a capture says of which pod a claim is.
    "ResourceClaim": {key: form for key, form in OBJECTS["ResourceClaim"].items() if key not in ("pod", "podGroup")},
    "Node": NODE,
    "PodGroup": {"metadata": BARE, "spec": POD_GROUP},
    "Pod": {"spec": {**POD_SPEC, "nodeName": Leaf.NAME}},
}
CLASSES = classes_of(STORED)
POD = {
    "metadata": {"name": "web-0", "namespace": "shop", "labels": {"app": "web"}},
    "spec": {
        "nodeName": "n-1",
        "containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}],
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
    },
}


def missing(message: str, form: Form, place: str) -> list[str]:
    """Fields of a form that a message does not have."""
    if isinstance(form, list):
        return missing(message, form[0], place)
    if isinstance(form, Selecting):
        return missing(message, form.fields, place)
    if isinstance(form, Each):
        return missing(message, form.of, place)
    if isinstance(form, Leaf):
        return [] if message in ("string", "int32", "int64", "bool", "Quantity", "IntOrString") else [place]
    assert isinstance(form, dict)
    fields = dict(STORED[message])
    for name, (_, kind) in STORED[message].items():
        if f"{message}.{name}" in INLINE:
            fields.update(STORED[kind])
    found = []
    for name, inner in form.items():
        if name not in fields:
            found.append(f"{place}.{name}")
        else:
            found += missing(fields[name][1].lstrip("*{}"), inner, f"{place}.{name}")
    return found


@pytest.mark.parametrize("kind", FORMS)
def test_every_field_that_a_capture_keeps_is_in_the_table(kind: str) -> None:
    assert missing(kind, FORMS[kind], kind) == []


def test_fields_that_json_always_has_are_in_the_table() -> None:
    for each in (*ALWAYS, *INLINE):
        message, _, field = each.partition(".")
        assert field in STORED[message], each


def test_no_number_stands_for_two_fields() -> None:
    for message, fields in STORED.items():
        assert len({number for number, _ in fields.values()}) == len(fields), message


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
