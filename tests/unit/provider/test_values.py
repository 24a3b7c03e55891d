"""Values on Pulumi's wire: unknowns, secrets, numbers and nulls, there and back."""

from typing import Any

import pytest
from google.protobuf import json_format, struct_pb2
from hypothesis import given
from hypothesis import strategies as st
from pulumi.runtime import rpc

from kumulus.model.plain import UNKNOWN
from kumulus.provider.resources.diffing import PropertyDifference, differences, join
from kumulus.provider.values import contains_unknown, from_struct, to_struct
from tests.unit.provider.test_rpc import secret

SIGNATURE = rpc._special_sig_key
# sdk/go/common/resource/plugin/rpc.go: one sentinel for each kind of value that a preview cannot know.
SENTINELS = {
    "bool": "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
    "number": "3eeb2bf0-c639-47a8-9e75-3b44932eb421",
    "string": rpc.UNKNOWN,
    "array": "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",
    "asset": "030794c1-ac77-496b-92df-f27374a8bd58",
    "archive": "e48ece36-62e2-4504-bad9-02848725956a",
    "object": "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",
}
plain = st.recursive(
    st.booleans() | st.integers(-(2**53), 2**53) | st.text() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def wire(values: dict[str, Any]) -> struct_pb2.Struct:
    return json_format.ParseDict(values, struct_pb2.Struct())


@pytest.mark.parametrize("kind", SENTINELS)
def test_every_sentinel_of_an_unknown_is_the_unknown(kind: str) -> None:
    assert from_struct(wire({"a": SENTINELS[kind]}))["a"] is UNKNOWN


def test_an_unknown_goes_back_as_the_sentinel_pulumi_reads() -> None:
    assert json_format.MessageToDict(to_struct({"a": UNKNOWN, "b": [UNKNOWN]})) == {
        "a": rpc.UNKNOWN,
        "b": [rpc.UNKNOWN],
    }


def test_secrets_are_unwrapped_wherever_they_stand() -> None:
    values = {"a": secret("x"), "b": {"c": secret({"d": 1})}, "e": [secret(secret(True))], "f": secret(rpc.UNKNOWN)}
    assert from_struct(wire(values)) == {"a": "x", "b": {"c": {"d": 1}}, "e": [True], "f": UNKNOWN}
    only_looks_like_one = {"a": {SIGNATURE: "something else", "value": "x"}}
    assert from_struct(wire(only_looks_like_one)) == only_looks_like_one


def test_whole_numbers_are_ints_and_others_floats() -> None:
    found = from_struct(wire({"a": 3, "b": 3.0, "c": 2.5, "d": -1, "e": True}))
    assert [found[key] for key in "abcde"] == [3, 3, 2.5, -1, True]
    assert [type(found[key]) for key in "abcde"] == [int, int, float, int, bool]
    assert to_struct({"yes": True}).fields["yes"].WhichOneof("kind") == "bool_value"


def test_none_is_left_out_of_mappings_but_keeps_its_place_in_lists() -> None:
    struct = to_struct({"a": None, "b": {"c": None}, "d": ["x", None, "y"]})
    assert from_struct(struct) == {"b": {}, "d": ["x", None, "y"]}
    assert from_struct(wire({"a": None})) == {"a": None}


def test_a_value_without_a_wire_form_is_refused_by_its_type() -> None:
    with pytest.raises(TypeError, match="set has no wire form"):
        to_struct({"a": {1, 2}})


def test_unknowns_are_found_at_any_depth() -> None:
    assert contains_unknown({"a": [{"b": UNKNOWN}]})
    assert not contains_unknown({"a": [{"b": "known"}], "c": None, "d": 0, "e": ""})


@given(st.dictionaries(st.text(), plain, max_size=4))
def test_what_goes_out_comes_back_as_it_was(values: dict[str, Any]) -> None:
    assert from_struct(struct_pb2.Struct.FromString(to_struct(values).SerializeToString())) == values


@pytest.mark.parametrize(
    ("path", "key", "joined"),
    [
        ("labels", "team", "labels.team"),
        ("labels", "app_2", "labels.app_2"),
        ("", "replicas", "replicas"),
        ("capacity", "nvidia.com/gpu", 'capacity["nvidia.com/gpu"]'),
        ("capacity", "ephemeral-storage", 'capacity["ephemeral-storage"]'),
        ("labels", "1st", 'labels["1st"]'),
        ("labels", "", 'labels[""]'),
        ("annotations", 'say "hi"', 'annotations["say \\"hi\\""]'),
        ("annotations", "a\\b", 'annotations["a\\\\b"]'),
        ("labels", "team\n", 'labels["team\n"]'),
    ],
)
def test_keys_are_quoted_where_pulumi_needs_it(path: str, key: str, joined: str) -> None:
    assert join(path, key) == joined


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        (None, "x", "add"),
        ("x", None, "delete"),
        ("x", "y", "update"),
        (1, UNKNOWN, "update"),
        # Lists are taken whole, as their order has a meaning.
        ([1, 2], [2, 1], "update"),
    ],
)
def test_each_kind_of_difference(old: Any, new: Any, kind: Any) -> None:
    assert differences("a", old, new) == [PropertyDifference("a", kind)]
    forced = differences("a", old, new, replace=True)
    replacing: Any = f"{kind}-replace"
    assert forced == [PropertyDifference("a", replacing)]
    assert [d.replaces for d in (*forced, *differences("a", old, new))] == [True, False]


def test_maps_are_compared_key_by_key() -> None:
    old = {"cpu": "96", "nvidia.com/gpu": "8", "memory": "1Ti"}
    new = {"cpu": "96", "nvidia.com/gpu": "4", "pods": "110"}
    assert differences("capacity", old, new) == [
        PropertyDifference("capacity.memory", "delete"),
        PropertyDifference('capacity["nvidia.com/gpu"]', "update"),
        PropertyDifference("capacity.pods", "add"),
    ]


@given(st.recursive(st.none() | st.integers() | st.text(), lambda x: st.dictionaries(st.text(), x) | st.lists(x)))
def test_a_value_does_not_differ_from_itself(value: Any) -> None:
    assert differences("a", value, value) == []


def test_lists_are_descended_into_where_that_is_asked_for() -> None:
    old, new = {"n": [{"a": 1}, {"b": 1}]}, {"n": [{"a": 2}, {"b": 1}, {"c": 1}]}

    def kinds(found: list[PropertyDifference]) -> dict[str, str]:
        return {each.path: each.kind for each in found}

    assert kinds(differences("o", old, new)) == {"o.n": "update"}
    found = differences("o", old, new, replace=True, deep=True)
    assert kinds(found) == {"o.n[0].a": "update-replace", "o.n[2]": "add-replace"}
    assert kinds(differences("o", new, old, deep=True)) == {"o.n[0].a": "update", "o.n[2]": "delete"}
