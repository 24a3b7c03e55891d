"""The table of stored messages has whatever a capture keeps, and says which form each field has."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kumulus.extras.capture.encoded import ALWAYS, INLINE
from kumulus.extras.capture.fields import OBJECTS, POD_SPEC
from kumulus.extras.capture.grammar import Each, Form, Leaf, Selecting
from kumulus.extras.capture.groups import NODE
from kumulus.extras.capture.kinds import BY_NAME
from kumulus.extras.capture.messages import STORED

BUILT_IN = [kind for kind in OBJECTS if BY_NAME[kind].group.partition(".")[2] in ("", "k8s.io")]
assert isinstance(POD_SPEC, Mapping)
FORMS: dict[str, Form] = {
    **{kind: OBJECTS[kind] for kind in BUILT_IN},
    "Node": NODE,
    "Pod": {"spec": {**POD_SPEC, "nodeName": Leaf.NAME}},
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
