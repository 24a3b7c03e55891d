"""What faults change on nodes: nodes that change in the same way share one patch, and no other node has it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kumulus.model.active_faults import ActiveFault
from kumulus.model.node_changes import delta
from kumulus.model.node_effects import node_effects_from
from kumulus.model.nodes import HOSTNAME_LABEL, boot_id
from kumulus.model.pools import Pool
from kumulus.nodes.faults.changes import Changes, steps_of
from kumulus.stackfile.expand import pools
from kumulus.stackfile.model import ClusterSpec

NOW = "2026-01-01T00:00:00Z"
GPU = "nvidia.com/gpu"
RACK = "topology.kumulus.io/rack"
GROUP: dict[str, Any] = {
    "name": "a100",
    "placement": [{"availabilityZone": "use1", "replicas": 12}],
    "topology": {"nodesPerRack": 4, "racksPerBlock": 2},
    "nodeTemplate": {
        "metadata": {"labels": {"example.com/power": "a"}},
        "capacity": {"cpu": "96", "pods": "110", GPU: "8"},
    },
}


def pool() -> Pool:
    (found,) = pools(ClusterSpec.checked({"nodeGroups": [GROUP]}), "dev")
    return found


def fault(name: str, nodes: range, **effects: Any) -> ActiveFault:
    return ActiveFault(name, node_effects_from(effects), {pool().name: frozenset(nodes)}, NOW)


DBE = {"conditions": {"GpuDbe": {"status": "True", "reason": "DBE", "message": "m"}}, "capacity": {GPU: "-1"}}
OVER_RACK = {"labels": {RACK: "dark", "example.com/power": "none", HOSTNAME_LABEL: "nobody"}}
CASES: dict[str, tuple[list[ActiveFault], list[ActiveFault], int]] = {
    "one comes": ([], [fault("x", range(12), **DBE)], 1),
    "one goes": ([fault("x", range(12), **DBE)], [], 1),
    "another holds on some": ([fault("y", range(3), **OVER_RACK)], [fault("x", range(12), **DBE)], 4),
    "what a node alone has is given back": ([fault("y", range(12), **OVER_RACK)], [], 12),
    "a reboot": ([], [fault("z", range(12), kubelet="reboot", down=60)], 12),
    "a silent node speaks": ([fault("s", range(12), kubelet="silent")], [], 1),
}


@pytest.mark.parametrize("case", CASES)
def test_each_node_has_the_change_that_is_its_own(case: str) -> None:
    before, after, different = CASES[case]
    wanted = pool()
    steps = steps_of({wanted.name: wanted}, {wanted.name: frozenset(range(14))}, [before], after)
    assert [each.name for each in steps] == [f"{wanted.name}-{n}" for n in range(12)]
    changes, said = Changes(NOW), []
    for each in steps:
        change, alone = changes.of(each), Changes(NOW).of(each)
        assert (change.status, change.taints) == (alone.status, alone.taints)
        assert change.status is not None
        assert json.loads(change.status) == delta(*each.owned(), boot_id(each.name, "dev"), NOW).status
        said.append(change.status)
    assert len(set(said)) == different


def test_what_nodes_have_in_common_is_computed_once() -> None:
    wanted = pool()
    before, after, _ = CASES["one comes"]
    changes = Changes(NOW)
    found = [changes.of(each) for each in steps_of({wanted.name: wanted}, after[0].nodes, [before], after)]
    assert len({id(each) for each in found}) == 1
