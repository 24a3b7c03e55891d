"""What faults change on nodes: nodes that change in the same way share one patch, and no other node has it."""

import json
from typing import Any

import pytest

from kumulus.model.active_faults import ActiveFault
from kumulus.model.fault_consequences import described_fault, reclaimed
from kumulus.model.fault_effects import (
    Interruption,
    NodeEffects,
    OfferEffects,
    PodEffects,
    node_effects_from,
    offer_effects_from,
)
from kumulus.model.node_changes import node_patch
from kumulus.model.nodes import HOSTNAME_LABEL, boot_id
from kumulus.model.pools import Pool
from kumulus.nodes.faults.changes import NodePatches, steps_of
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
DBE = {"conditions": {"GpuDbe": {"status": "True", "reason": "DBE", "message": "m"}}, "capacity": {GPU: "-1"}}
OVER_RACK = {"labels": {RACK: "dark", "example.com/power": "none", HOSTNAME_LABEL: "nobody"}}
NAMES = [f"node-{number}" for number in range(40)]


def pool() -> Pool:
    (found,) = pools(ClusterSpec.checked({"nodeGroups": [GROUP]}), "dev")
    return found


def fault(name: str, nodes: range, **effects: Any) -> ActiveFault:
    return ActiveFault(name, node_effects_from(effects), {pool().name: frozenset(nodes)}, NOW)


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
    changes, said = NodePatches(NOW), []
    for each in steps:
        change, alone = changes.of(each), NodePatches(NOW).of(each)
        assert (change.status, change.taints) == (alone.status, alone.taints)
        assert change.status is not None
        assert change.status == node_patch(*each.owned(), boot_id(each.name, "dev"), NOW).status
        said.append(change.status)
    assert len(set(said)) == different


def test_what_nodes_have_in_common_is_computed_once() -> None:
    wanted = pool()
    before, after, _ = CASES["one comes"]
    changes = NodePatches(NOW)
    found = [changes.of(each) for each in steps_of({wanted.name: wanted}, after[0].nodes, [before], after)]
    assert len({id(each) for each in found}) == 1


def test_a_share_or_a_count_is_drawn_by_the_seed() -> None:
    fifth = Interruption(percent=20, seed="a").drawn(NAMES)
    assert len(fifth) == len(set(fifth)) == 8
    assert set(fifth) <= set(NAMES)
    assert Interruption(percent=20, seed="a").drawn(NAMES) == fifth
    assert Interruption(percent=20, seed="b").drawn(NAMES) != fifth
    # Places are drawn: of another run's names, the same.
    others = [name.upper() for name in NAMES]
    assert Interruption(percent=20, seed="a").drawn(others) == tuple(name.upper() for name in fifth)
    assert len(Interruption(count=3, seed="a").drawn(NAMES)) == 3
    assert len(Interruption(count=3, percent=5, seed="a").drawn(NAMES)) == 2
    assert Interruption().drawn(NAMES) == tuple(NAMES)
    # Of some there is one, and of none none.
    assert len(Interruption(percent=1).drawn(NAMES[:3])) == 1
    assert Interruption(count=50).drawn(NAMES) == tuple(NAMES)
    assert Interruption(percent=50).drawn([]) == ()


def test_it_is_said_in_a_line() -> None:
    def said(how: Interruption, **which: Any) -> str:
        return described_fault(
            "spot-interruption", NodeEffects(), None, {}, {}, {}, None, OfferEffects(interruption=how, **which)
        )

    assert said(Interruption()) == "spot-interruption: all spot machines go after a notice of 2m"
    where = {"instance_types": ("e2-*",), "zones": ("a",)}
    wanted = "spot-interruption: 20% of the spot machines go after a notice of 30s: e2-* in a"
    assert said(Interruption(30, percent=20), **where) == wanted
    assert said(Interruption(count=3, labels={"team": "ml"})).endswith(
        "3 of the spot machines go after a notice of 2m: team=ml"
    )
    assert reclaimed(["a"]) == "; 1 machine"
    assert reclaimed(NAMES) == "; 40 machines"
    assert reclaimed([]) == ""


def test_its_plain_form_is_json_and_comes_back() -> None:
    assert offer_effects_from({"interruption": {}}) == OfferEffects()
    for how in (Interruption(), Interruption(30, {"a": "b"}, 3, 12.5, "seed")):
        effects = OfferEffects(capacity_types=("spot",), interruption=how)
        assert offer_effects_from(json.loads(json.dumps(effects.to_plain()))) == effects


def test_what_is_empty_is_not_in_the_plain_form_of_nodes_effects() -> None:
    taints = [{"key": "a", "effect": "NoSchedule"}, {"key": "b", "value": "c", "effect": "NoExecute"}]
    plain = {"conditions": {"Ready": {"status": "False", "reason": "r", "message": "m"}}, "taints": taints, "down": 3.0}
    assert node_effects_from(plain).to_plain() == plain
    assert node_effects_from({"labels": None, "taints": None}) == NodeEffects()


def test_what_moves_is_said_and_not_what_stays() -> None:
    def said(before: range, nodes: range) -> str:
        return described_fault("xid", NodeEffects(), None, {"a": frozenset(before)}, {"a": frozenset(nodes)}, {}, None)

    assert said(range(2), range(2, 4)) == "xid moves from 2 nodes (a-[0-1]) to 2 nodes (a-[2-3])"
    partly = "xid moves from 1 node (a-0) to 2 nodes (a-[2-3]), on 2 → 3 nodes (a-[1-3])"
    assert said(range(2), range(1, 4)) == partly
    assert said(range(2), range(4)) == "xid on 2 → 4 nodes (a-[0-3])"


def test_a_fault_of_pods_that_names_no_nodes_any_more_is_on_every_node() -> None:
    pods = PodEffects("evict")
    said = described_fault("evicted", NodeEffects(), pods, {"a": frozenset({1})}, {}, {}, 1)
    assert said == "evicted on every node: evicted; 1 of the pods selected runs"


def test_a_quota_is_said_and_comes_back() -> None:
    effects = OfferEffects(instance_types=("e2-*",), zones=("us-central1-*",), limits={"cpu": "64", "nodes": "10"})
    assert effects.described() == "at most 64 cpu, 10 nodes: e2-* in us-central1-*"
    assert offer_effects_from(json.loads(json.dumps(effects.to_plain()))) == effects
    assert effects.selects("e2-standard-4", "us-central1-b", "spot")
    assert not effects.selects("n2-standard-4", "us-central1-b", "spot")
    assert not effects.selects("e2-standard-4", "us-east4-b", "spot")
