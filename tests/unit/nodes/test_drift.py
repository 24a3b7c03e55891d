"""Drift in words: which nodes, which fields, and short however many they are."""

import json
from typing import Any

from kumulus.model.node_changes import FieldChange
from kumulus.model.pools import Pool
from kumulus.nodes.pools.live import LiveNode
from kumulus.nodes.pools.observe import PoolObservation
from kumulus.nodes.pools.result import describe_drift, summary_of

POOL = Pool(name="a-use1", group="a", zone="use1", region="", replicas=5000, labels={})


def altered(ordinal: int, *differences: FieldChange) -> tuple[LiveNode, list[FieldChange]]:
    node: Any = None  # what is written needs only the ordinal and the differences
    return node, list(differences)


LABEL = FieldChange("labels", "team", "ads", "search")
GPU = FieldChange("capacity", "nvidia.com/gpu", "4", "8")


def test_a_pool_as_wanted_has_no_drift() -> None:
    assert describe_drift(POOL, PoolObservation(matching=5000)) == {}


def test_every_kind_of_drift_is_named() -> None:
    seen = PoolObservation(
        missing=[3, 4],
        extra=["stranger-b", "stranger-a"],
        foreign=["a-use1-9"],
        altered={7: altered(7, LABEL), 2: altered(2, LABEL, GPU)},
    )
    assert describe_drift(POOL, seen) == {
        "missing": "2: a-use1-3, a-use1-4",
        "extra": "2: stranger-a, stranger-b",
        "realNodes": "1: a-use1-9",
        "altered": {
            "a-use1-2": 'labels["team"]: "ads" instead of "search"; capacity["nvidia.com/gpu"]: "4" instead of "8"',
            "a-use1-7": 'labels["team"]: "ads" instead of "search"',
        },
    }


def test_the_first_nodes_are_named_and_the_others_counted() -> None:
    found = describe_drift(POOL, PoolObservation(missing=list(range(4200))))
    assert found == {"missing": "4,200: a-use1-0, a-use1-1, a-use1-2, a-use1-3, a-use1-4 and 4,195 more"}


def test_thousands_of_altered_nodes_stay_readable() -> None:
    seen = PoolObservation(altered={n: altered(n, LABEL, *([GPU] if n % 2 else [])) for n in range(5000)})
    found = describe_drift(POOL, seen)["altered"]
    assert isinstance(found, dict)
    assert list(found) == [f"a-use1-{n}" for n in range(5)] + ["and 4,995 more nodes"]
    assert found["and 4,995 more nodes"] == 'labels["team"] on 5,000, capacity["nvidia.com/gpu"] on 2,500'
    assert len(json.dumps(found)) < 1000


def test_a_node_with_many_differences_names_the_first() -> None:
    many = [FieldChange("labels", f"l{n}", None, "x") for n in range(50)]
    found = describe_drift(POOL, PoolObservation(altered={0: altered(0, *many)}))["altered"]
    assert isinstance(found, dict)
    assert found["a-use1-0"].endswith('labels["l3"]: missing instead of "x"; and 46 more')


def test_many_fields_on_many_nodes_are_summed_up() -> None:
    many = [FieldChange("labels", f"l{n:02}", None, "x") for n in range(50)]
    found = describe_drift(POOL, PoolObservation(altered={n: altered(n, *many) for n in range(6)}))["altered"]
    assert isinstance(found, dict)
    assert found["and 1 more nodes"].startswith('labels["l00"] on 6, ')
    assert found["and 1 more nodes"].endswith(', labels["l05"] on 6, and 44 more fields')


def test_the_summary_is_one_line() -> None:
    seen = PoolObservation(missing=[1], extra=["stranger"], altered={7: altered(7, LABEL)})
    assert summary_of(describe_drift(POOL, seen)) == "missing 1: a-use1-1; extra 1: stranger; altered a-use1-7"
    others = {"othersNodes": "1: theirs", "record": "not as wanted"}
    assert summary_of(others) == "othersNodes 1: theirs; record not as wanted"
