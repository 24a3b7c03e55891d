"""Node pools and the plain form in which they reach the plugin."""

import copy
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kumulus.model.errors import Problem, SpecError
from kumulus.model.pool_form import POOL_KEYS, pool_from_properties, pool_problems, pool_to_properties
from kumulus.model.pools import NodeInfo, Pool, Taint

WIRE: dict[str, Any] = {
    "name": "a100-use1",
    "replicas": 5.0,
    "labels": {
        "kumulus.io/group": "a100",
        "topology.kubernetes.io/zone": "use1",
        "topology.kubernetes.io/region": "us",
        "kubernetes.io/arch": "arm64",
        "team": "search",
    },
    "gpu": {
        "product": "NVIDIA-L40S",
        "count": "4",
        "memory": "46068",
        "major": "8",
        "minor": "9",
        "mig": "false",
        "machine": "g6e.12xlarge",
        "driver": "580.95.05",
        "cuda": "13.0",
    },
    "annotations": {"note": "any text\nat all"},
    "taints": [{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}, {"key": "x", "effect": "NoExecute"}],
    "capacity": {"cpu": 96.0, "memory": "1024Gi", "pods": "110", "nvidia.com/gpu": "8"},
    "allocatable": {"cpu": "95500m"},
    "nodeInfo": {"kubeletVersion": "v1.35.4"},
    "declaredFeatures": ["RestartAllContainersOnContainerExits", "B/c"],
    "topology": {"rack": {"label": "example.com/rack", "nodes": 2.0}},
    "resourceSlices": {
        "driver": "gpu.nvidia.com",
        "count": 8.0,
        "attributes": {"type": {"string": "gpu"}, "minor": {"int": 3.0}, "cudaDriverVersion": {"version": "13.0.0"}},
        "capacity": {"memory": "1024Mi"},
    },
    "shards": 4.0,
    "nodes": [
        {"name": "n-0", "labels": {"rack": "r3"}, "unschedulable": True},
        *({"name": f"n-{n}"} for n in range(1, 5)),
    ],
    "minReplicas": 2.0,
    "maxReplicas": 9.0,
}


def wire(**changes: Any) -> dict[str, Any]:
    """The pool with changes, without names of its nodes and bounds, so that their number is free."""
    return {**copy.deepcopy(WIRE), **dict.fromkeys(("nodes", "minReplicas", "maxReplicas")), **changes}


def paths(problems: list[Problem]) -> list[str]:
    return [problem.path for problem in problems]


def test_a_pool_is_read_with_canonical_quantities_and_its_place_from_the_labels() -> None:
    pool = pool_from_properties(WIRE)
    assert (pool.name, pool.group, pool.zone, pool.region, pool.replicas) == ("a100-use1", "a100", "use1", "us", 5)
    assert isinstance(pool.replicas, int)
    assert pool.capacity == {"cpu": "96", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": "8"}
    assert pool.taints == (Taint("dedicated", "gpu", "NoSchedule"), Taint("x", "", "NoExecute"))
    assert pool.node_info == NodeInfo("arm64", "linux", "v1.35.4")


def test_what_is_not_given_as_allocatable_is_allocatable_in_full() -> None:
    pool = pool_from_properties(WIRE)
    assert pool.allocatable == {"cpu": "95500m", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": "8"}
    assert pool_from_properties(wire(allocatable=None)).allocatable == pool.capacity


def test_the_group_is_the_instance_type_where_our_label_is_missing() -> None:
    assert pool_from_properties(wire(labels={"node.kubernetes.io/instance-type": "a3"})).group == "a3"


def test_a_name_and_a_count_are_enough() -> None:
    pool = pool_from_properties({"name": "p", "replicas": 2})
    assert pool.node_names() == ["p-0", "p-1"]
    assert (pool.group, pool.zone, pool.taints, pool.capacity) == ("", "", (), {})


def test_the_plain_form_goes_there_and_back() -> None:
    pool = pool_from_properties(WIRE)
    plain = pool_to_properties(pool)
    assert tuple(plain) == POOL_KEYS
    assert pool_from_properties(json.loads(json.dumps(plain))) == pool


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"name": None}, "name"),
        ({"name": "A_b"}, "name"),
        ({"name": "p" * 61, "replicas": 11}, "name"),
        ({"replicas": None}, "replicas"),
        ({"replicas": 5.5}, "replicas"),
        ({"replicas": True}, "replicas"),
        ({"replicas": "5"}, "replicas"),
        ({"replicas": -1}, "replicas"),
        ({"replicas": 100_001}, "replicas"),
        ({"replicas": float("nan")}, "replicas"),
        ({"replicas": float("inf")}, "replicas"),
        ({"replicas": 10**400}, "replicas"),
        ({"labels": []}, "labels"),
        ({"labels": {"a b": "c"}}, 'labels["a b"]'),
        ({"labels": {"a": "c d"}}, "labels.a"),
        ({"labels": {"a": True}}, "labels.a"),
        ({"annotations": {"a": 5}}, "annotations.a"),
        ({"annotations": {"a": "x" * 300_000}}, "annotations"),
        ({"taints": {"key": "x"}}, "taints"),
        ({"taints": [{"key": "x", "effect": "noschedule"}]}, "taints[0].effect"),
        ({"taints": [{"effect": "NoSchedule"}]}, "taints[0].key"),
        ({"taints": [{"key": "x", "value": "a b", "effect": "NoSchedule"}]}, "taints[0].value"),
        ({"taints": [{"key": "x", "effect": "NoSchedule", "until": "2027"}]}, "taints[0].until"),
        ({"taints": [{"key": "x", "effect": "NoSchedule"}] * 2}, "taints[1]"),
        ({"taints": ["x"]}, "taints[0]"),
        ({"capacity": {"cpu": "many"}}, "capacity.cpu"),
        ({"capacity": {"cpu": True}}, "capacity.cpu"),
        ({"capacity": {"cpu": "-1"}}, "capacity.cpu"),
        ({"capacity": {"cpu": "1u"}}, "capacity.cpu"),
        ({"capacity": {"memory": "16Ei"}}, "capacity.memory"),
        ({"capacity": {"nvidia.com/gpu": 7.5}}, 'capacity["nvidia.com/gpu"]'),
        ({"capacity": {"pods": "110500m"}}, "capacity.pods"),
        ({"capacity": {"cpu": "1"}, "allocatable": {"cpu": "2"}}, "allocatable.cpu"),
        ({"capacity": {"cpu": "1"}, "allocatable": {"memory": "2"}}, "allocatable.memory"),
        ({"nodeInfo": {"arch": "arm64"}}, "nodeInfo.arch"),
        ({"nodeInfo": {"architecture": 64}}, "nodeInfo.architecture"),
        ({"nodeinfo": {}}, "nodeinfo"),
        ({"declaredFeatures": "A"}, "declaredFeatures"),
        ({"declaredFeatures": ["A", "b"]}, "declaredFeatures[1]"),
        ({"declaredFeatures": ["A" * 254]}, "declaredFeatures[0]"),
        ({"declaredFeatures": ["A", "B", "A"]}, "declaredFeatures[2]"),
        ({"minReplicas": 1}, "minReplicas"),
        ({"minReplicas": 7, "maxReplicas": 6}, "minReplicas"),
        ({"maxReplicas": -1}, "maxReplicas"),
        ({"maxReplicas": 4}, "replicas"),
        ({"minReplicas": 6, "maxReplicas": 9}, "replicas"),
    ],
)
def test_what_is_wrong_is_told_with_its_path_and_a_remedy(change: dict[str, Any], path: str) -> None:
    problems = pool_problems({**wire(allocatable=None), **change})
    assert paths(problems) == [path]
    assert problems[0].remedy


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(SpecError) as caught:
        pool_from_properties(wire(replicas=-1, labels={"a": "b c"}, capacity={"cpu": "x"}, allocatable=None))
    assert paths(list(caught.value.problems)) == ["replicas", "labels.a", "capacity.cpu"]
    assert "a100-use1" in str(caught.value)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


# On a busy machine the first input alone takes seconds.
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.fixed_dictionaries({}, optional={key: anything | st.just(WIRE[key]) for key in POOL_KEYS}))
def test_any_plain_form_is_a_pool_or_a_spec_error(raw: dict[str, object]) -> None:
    if pool_problems(raw):
        with pytest.raises(SpecError, match="problem"):
            pool_from_properties(raw)
    else:
        assert isinstance(pool_from_properties(raw), Pool)
