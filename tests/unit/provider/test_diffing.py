"""Differences of property values, named by Pulumi's property paths."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kumulus.model.unknown import UNKNOWN
from kumulus.provider.resources.diffing import Difference, differences, join


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
    ("old", "new", "kind"), [(None, "x", "add"), ("x", None, "delete"), ("x", "y", "update"), (1, UNKNOWN, "update")]
)
def test_each_kind_of_difference(old: Any, new: Any, kind: Any) -> None:
    assert differences("a", old, new) == [Difference("a", kind)]
    forced = differences("a", old, new, replace=True)
    replacing: Any = f"{kind}-replace"
    assert forced == [Difference("a", replacing)]
    assert [d.replaces for d in forced] == [True]
    assert [d.replaces for d in differences("a", old, new)] == [False]


def test_maps_are_compared_key_by_key() -> None:
    old = {"cpu": "96", "nvidia.com/gpu": "8", "memory": "1Ti"}
    new = {"cpu": "96", "nvidia.com/gpu": "4", "pods": "110"}
    assert differences("capacity", old, new) == [
        Difference("capacity.memory", "delete"),
        Difference('capacity["nvidia.com/gpu"]', "update"),
        Difference("capacity.pods", "add"),
    ]


def test_lists_are_taken_whole_as_their_order_has_a_meaning() -> None:
    assert differences("taints", [{"key": "a"}], [{"key": "b"}]) == [Difference("taints", "update")]
    assert differences("taints", [1, 2], [2, 1]) == [Difference("taints", "update")]


def test_an_unknown_inside_a_map_is_a_difference_there_only() -> None:
    found = differences("options", {"a": "1", "b": "2"}, {"a": UNKNOWN, "b": "2"}, replace=True)
    assert found == [Difference("options.a", "update-replace")]


@given(st.recursive(st.none() | st.integers() | st.text(), lambda x: st.dictionaries(st.text(), x) | st.lists(x)))
def test_a_value_does_not_differ_from_itself(value: Any) -> None:
    assert differences("a", value, value) == []


def test_lists_are_descended_into_where_that_is_asked_for() -> None:
    old, new = {"n": [{"a": 1}, {"b": 1}]}, {"n": [{"a": 2}, {"b": 1}, {"c": 1}]}

    def kinds(found: list[Difference]) -> dict[str, str]:
        return {each.path: each.kind for each in found}

    assert kinds(differences("o", old, new)) == {"o.n": "update"}
    found = differences("o", old, new, replace=True, deep=True)
    assert kinds(found) == {"o.n[0].a": "update-replace", "o.n[2]": "add-replace"}
    assert kinds(differences("o", new, old, deep=True)) == {"o.n[0].a": "update", "o.n[2]": "delete"}
