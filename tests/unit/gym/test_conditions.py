"""Conditions of problems: which objects match, how many there have to be, and how near that is."""

from typing import Any, cast

import pytest

from kumulus.gym.conditions import Objects, ProblemCondition, matches
from kumulus.kube import ApiError
from kumulus.testing.cluster import Api

LISTS: dict[tuple[str, str], list[dict[str, Any]]] = {
    ("/api/v1/namespaces/shop/pods", "app=web"): [
        {"metadata": {"name": "a"}, "spec": {"nodeName": "n1"}, "status": {"phase": "Running"}},
        {"metadata": {"name": "b"}, "spec": {"nodeName": "n1"}, "status": {"phase": "Running"}},
        {"metadata": {"name": "c"}, "spec": {}, "status": {"phase": "Pending"}},
        {"metadata": {"name": "d", "deletionTimestamp": "now"}, "spec": {"nodeName": "n2"}},
    ],
    ("/api/v1/nodes", "zone=z"): [{"metadata": {"name": "n1"}}],
}  # fmt: skip


class Server:
    """Answers as an API server with two kinds."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def get(self, path: str, params: dict[str, str] | None = None) -> Any:
        self.asked.append(path)
        if path == "/api/v1":
            kinds = (("pods", "Pod", True), ("pods/status", "Pod", True), ("nodes", "Node", False))
            return {"resources": [{"name": name, "kind": kind, "namespaced": within} for name, kind, within in kinds]}
        key = (path, (params or {}).get("labelSelector", ""))
        if key not in LISTS:
            raise ApiError(404, "NotFound", "none", "GET", path)
        return {"items": LISTS[key]}


@pytest.mark.parametrize(
    ("condition", "holds", "count", "progress"),
    [
        ({}, True, 3, 1),
        ({"equals": 4}, False, 3, 0.75),
        ({"atLeast": 4}, False, 3, 0.75),
        ({"atMost": 2}, False, 3, 2 / 3),
        ({"atMost": 0}, False, 3, 0),
        ({"atMost": 0, "name": "x"}, True, 0, 1),
        ({"atLeast": 2, "atMost": 3}, True, 3, 1),
        ({"match": {"status": {"phase": "Running"}}, "equals": 2}, True, 2, 1),
        ({"match": {"spec": {"nodeName": None}}, "equals": 1}, True, 1, 1),
        ({"onNodes": "zone=z", "equals": 2}, True, 2, 1),
        ({"distinct": "spec.nodeName", "equals": 1}, True, 1, 1),
        ({"kind": "Gone"}, False, 0, 0),
        ({"apiVersion": "example.com/v1"}, False, 0, 0),
    ],
)
def test_objects_that_match_are_counted(condition: dict[str, Any], holds: bool, count: int, progress: float) -> None:
    wanted = ProblemCondition(**{"kind": "Pod", "labels": "app=web", **condition})
    verdict = Objects(cast(Api, Server()), {}).verdict([wanted], "shop")
    (found,) = verdict.outcomes
    assert (found.holds, found.count) == (holds, count)
    assert found.progress == pytest.approx(progress)
    assert verdict.solved is holds


def test_progress_is_the_mean_and_each_list_is_read_once() -> None:
    server = Server()
    wanted = [
        ProblemCondition(kind="Pod", labels="app=web", equals=number, about=f"{number} pods") for number in (3, 6)
    ]
    verdict = Objects(cast(Api, server), {}).verdict(wanted, "shop")
    assert (verdict.progress, verdict.solved) == (0.75, False)
    assert str(verdict) == "holds: 3 pods (found 3)\nmissed: 6 pods (found 3)"
    assert server.asked == ["/api/v1", "/api/v1/namespaces/shop/pods"]


def test_a_condition_says_itself_in_words() -> None:
    assert str(ProblemCondition(kind="Pod", labels="app=web", atMost=2)) == "Pod app=web atMost 2"
    assert str(ProblemCondition(kind="Node")) == "Node atLeast 1"


@pytest.mark.parametrize(
    ("value", "pattern", "same"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, True),
        ({"a": 1}, {"a": 1, "b": None}, True),
        ({"a": 1}, {"a": 2}, False),
        ([{"a": 1}, {"b": 2}], [{"b": 2}], True),
        ([{"a": 1}], [{"a": 1}, {"b": 2}], False),
        (None, [{}], False),
        (None, {"a": None}, False),
        ("1", 1, False),
    ],
)
def test_a_part_of_an_object_matches(value: object, pattern: object, same: bool) -> None:
    assert matches(value, pattern) is same
