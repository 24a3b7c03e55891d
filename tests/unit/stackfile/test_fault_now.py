"""A fault that begins now, on recorded pools: what is wrong is said without a list that is not there."""

from typing import Any

import pytest

from kumulus.model.errors import SpecError
from kumulus.model.pools import Pool
from kumulus.stackfile.expand import pools
from kumulus.stackfile.fault_now import NoPools, resolved
from kumulus.stackfile.faults import fault_from
from kumulus.stackfile.model import ClusterSpec

GROUP: dict[str, Any] = {
    "name": "cpu",
    "placement": [{"availabilityZone": "use1", "replicas": 5}],
    "nodeTemplate": {"capacity": {"cpu": "8", "pods": "110"}},
}
RECORDED: dict[str, Pool] = {pool.name: pool for pool in pools(ClusterSpec.checked({"nodeGroups": [GROUP]}), "dev")}


def fault(**target: Any) -> Any:
    return fault_from({"name": "lost", "kind": "not-ready", "target": target}, "the page")


def test_its_nodes_are_those_of_the_recorded_pools() -> None:
    found = resolved(fault(count=2), RECORDED, "the page")
    assert {pool: len(ordinals) for pool, ordinals in found.nodes.items()} == {"cpu-use1": 2}


def test_without_recorded_pools_the_remedy_is_named() -> None:
    with pytest.raises(NoPools, match=r"no recorded pools.*; `pulumi up --refresh` records them"):
        resolved(fault(count=2), {}, "the page")


def test_a_problem_has_its_place_in_the_fault() -> None:
    with pytest.raises(SpecError) as caught:
        resolved(fault(count=6), RECORDED, "the page")
    assert [each.path for each in caught.value.problems] == ["target.count"]
