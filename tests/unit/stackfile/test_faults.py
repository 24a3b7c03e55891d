"""Faults in a stack file: what is wrong is reported with its path; what is right always means the same nodes."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import pages
from kumulus.model.active_faults import FAULTS_ANNOTATION, ActiveFault, faults_of
from kumulus.model.devices import Devices
from kumulus.model.errors import SpecError
from kumulus.model.fault_consequences import described_end, described_fault, loss
from kumulus.model.fault_effects import (
    XID_ANNOTATION,
    Interruption,
    NodeEffects,
    OfferEffects,
    PodEffects,
    lost,
    node_effects_from,
    offer_effects_from,
    reduced,
)
from kumulus.model.node_changes import node_patch
from kumulus.model.node_sets import clashes, from_plain, ordinals, ranges, size, to_plain
from kumulus.model.nodes import owned_fields
from kumulus.model.plain import made_from
from kumulus.model.pools import Pool
from kumulus.model.slices import SlicePart, slice_spec
from kumulus.nodes.catalog.faults import fault_kinds
from kumulus.nodes.faults.records import record_from
from kumulus.stackfile.expand import pools
from kumulus.stackfile.fault_now import NoPools, resolved
from kumulus.stackfile.fault_targets import ResolvedFault, chosen, effects_of
from kumulus.stackfile.faults import Target, fault_from
from kumulus.stackfile.load import load
from kumulus.stackfile.model import ClusterSpec

GPU = "nvidia.com/gpu"
GROUPS: list[dict[str, Any]] = [
    {
        "name": "a100",
        "placement": [{"availabilityZone": "use1", "replicas": 20}, {"availabilityZone": "use2", "replicas": 10}],
        "topology": {
            "nodesPerRack": 4,
            "racksPerBlock": 2,
            "racksPerLeaf": 2,
            "leavesPerSpine": 2,
            "nodesPerNvlinkDomain": 2,
        },
        "nodeTemplate": {
            "metadata": {"labels": {"example.com/power": "a"}},
            "capacity": {"cpu": "96", "pods": "110", GPU: "8"},
        },
    },
    {
        "name": "cpu",
        "placement": [{"availabilityZone": "use1", "replicas": 5}],
        "nodeTemplate": {"capacity": {"cpu": "8", "pods": "110"}},
    },
]


def faults(*raw: dict[str, Any], groups: list[dict[str, Any]] | None = None) -> list[ResolvedFault]:
    spec = {"nodeGroups": groups or GROUPS, "faults": list(raw)}
    return list(load({"cluster": spec}, "dev", Path("/nowhere")).faults)


def problems(*raw: dict[str, Any]) -> str:
    with pytest.raises(SpecError) as caught:
        faults(*raw)
    return str(caught.value)


def nodes(target: dict[str, Any], **fault: Any) -> dict[str, str]:
    (found,) = faults({"name": "x", "kind": "not-ready", "target": target, **fault})
    return to_plain(found.nodes)


def fleet() -> list[Pool]:
    return pools(ClusterSpec.checked({"nodeGroups": GROUPS}), "dev")


# --- what is wrong ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ({"kind": "not-ready", "nodes": ["a100-use1-0"]}, ".nodes: is not a known key; write target: {names: ["),
        ({"kind": "reboot", "downFor": "2 minutes"}, '.downFor: is "2 minutes", which is not a'),
        ({"kind": "reboot", "downFor": "5min"}, '.downFor: is "5min", which is not a duration; write a'),
        ({"kind": "container-fails", "delay": "-3s"}, '.delay: is "-3s", which is negative; write a'),
        ({"kind": "container-fails", "share": 101}, ".share: is 101, more than 100"),
        (
            {"kind": "gpu-fell-off-bus", "target": {"nodeGroup": "cpu"}},
            '.capacity["nvidia.com/gpu"]: no node of the target has nvidia.com/gpu',
        ),
        ({"target": {"count": 1}}, ": does nothing; write a kind, or conditions"),
        ({"kind": "not-ready", "exitCode": 3}, ".exitCode: is for pods, and not-ready is a fault of"),
        ({"kind": "evicted", "taints": []}, ".taints: is for nodes, and evicted is a fault of pods"),
        ({"kind": "not-ready", "downFor": "1m"}, ".downFor: has no effect without a reboot"),
        ({"kind": "xid-74", "devices": "taint"}, ".devices: has no effect, as the fault takes no device"),
        ({"kind": "xid-79", "devices": "evict"}, ".devices: "),
        ({"capacity": {GPU: "-1.5"}}, '.capacity["nvidia.com/gpu"]: "1.5" is not a whole number'),
        ({"conditions": {"X": {"status": True}}}, ".conditions.X.status: is true, not a text"),
        ({"kubelet": "dead"}, '.kubelet: is "dead"'),
        ({"kind": "stock-out"}, ".kind: is about what an autoscaler is offered (stock-out), and the stack has"),
        ({"kind": "not-ready", "priceFactor": 2}, ".priceFactor: is for what an autoscaler is offered"),
        ({"kind": "price-change", "priceFactor": 0}, ".priceFactor: is 0"),
    ],
)
def test_a_mistake_is_told_with_its_path_and_a_remedy(fault: dict[str, Any], said: str) -> None:
    text = problems({"name": "x", **fault})
    assert f"faults[0]{said}" in text
    assert "; " in text


def test_a_node_of_a_pool_without_nodes_is_not_answered_with_a_number_below_0() -> None:
    empty = [replace(pool, replicas=0) for pool in pools(ClusterSpec.checked({"nodeGroups": GROUPS}), "dev")]
    _, [found] = chosen(Target(names=("a100-use1-0",)), "x", empty, ("target",))
    assert str(found) == (
        'target.names[0]: "a100-use1-0" is no node: a100-use1 has none; give it replicas, or leave the name out'
    )


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ({"percent": "0%"}, '.percent: is "0%", which is'),
        ({"names": ["nope"]}, '.names[0]: "nope" is no node of the stack; write POOL-NUMBER; the pools are a100-use1,'),
        ({"names": ["a100-use1-20"]}, '.names[0]: "a100-use1-20" is beyond the 20 nodes of a100-use1; write up to 19'),
        ({"nodeGroup": "a1000"}, '.nodeGroup: "a1000" matches no node; write a100'),
        ({"nodeGroup": "cpu", "rack": "r0"}, '.rack: "r0" matches no node: no such group has a topology with it'),
        ({"labels": {"example.com/power": "b"}}, ": matches no node: no node fulfils all of it; example.com/power is"),
        ({"zone": "use1", "rack": "r99"}, '.rack: "r99" matches no node; write r0, r1, r2, r3 or r4'),
        ({"block": "a100-use2-b7"}, '.block: "a100-use2-b7" matches no node; write a100-use2-b0 or a100-use2-b1'),
        (
            {"zone": "use1", "nodeGroup": "cpu", "labels": {"a/b": "c"}},
            ": matches no node: no node fulfils all of it (nodeGroup cpu matches 5, zone use1 matches 25, the label",
        ),
        ({"count": 99}, ".count: is 99, more than the 35"),
    ],
)
def test_a_mistake_in_a_target_is_told_with_what_there_is(target: dict[str, Any], said: str) -> None:
    assert f"faults[0].target{said}" in problems({"name": "x", "kind": "not-ready", "target": target})


OFFERED = {"name": "karpenter", "zones": ["us-central1-a"], "instanceTypes": ["e2-standard-4"]}


def of_offerings(**fault: Any) -> list[ResolvedFault]:
    spec = {"autoscaler": OFFERED, "faults": [{"name": "x", **fault}]}
    return list(load({"cluster": spec}, "dev", Path("/nowhere")).faults)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ({"kind": "price-change"}, ": says no price; write priceFactor: 2 for twice the price"),
        ({"kind": "stock-out", "priceFactor": 2}, ".priceFactor: has no effect on a fault of kind stock-out"),
        ({"kind": "stock-out", "target": {"count": 1}}, ".target: is for nodes or pods, and stock-out is"),
        ({"kind": "stock-out", "offers": {"zones": ["us-east4-a"]}}, '.offers.zones[0]: "us-east4-a" is not'),
        ({"kind": "stock-out", "offers": {"instanceTypes": ["e2-standard"]}}, ".offers.instanceTypes[0]: "),
        ({"kind": "stock-out", "offers": {"capacityTypes": ["sport"]}}, ".offers.capacityTypes[0]: "),
        ({"kind": "stock-out", "offers": {"instanceTypes": ["q9-*"]}}, '.offers.instanceTypes[0]: "q9-*" fits'),
        ({"kind": "stock-out", "limits": {"cpu": "4"}}, ".limits: has no effect on a fault of kind stock-out"),
        ({"kind": "stock-out", "notice": "1m"}, ".notice: has no effect on a fault of kind stock-out"),
        ({"kind": "quota"}, ": says no limit"),
        ({"kind": "quota", "limits": {}}, ".limits: is empty"),
        ({"kind": "quota", "limits": {"cpus": "4"}}, ".limits.cpus: is not a resource of Kubernetes"),
        ({"kind": "quota", "limits": {"nodes": "1500m"}}, ".limits.nodes: "),
        ({"kind": "quota", "limits": {"nodes": "1"}, "target": {"count": 1}}, ".target: is for nodes or pods"),
        (
            {"kind": "spot-interruption", "offers": {"capacityTypes": ["on-demand"]}},
            ".offers.capacityTypes: has machines on demand",
        ),
        ({"kind": "spot-interruption", "target": {"zone": "a"}}, ".target.zone: selects nodes of node groups"),
        ({"kind": "not-ready", "notice": "1m"}, ".notice: is for what an autoscaler is offered"),
    ],
)
def test_a_mistake_in_a_fault_of_offerings_is_told(fault: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError) as caught:
        of_offerings(**fault)
    assert f"faults[0]{said}" in str(caught.value)


def test_a_quota_and_an_interruption_are_about_offerings_too() -> None:
    [quota] = of_offerings(kind="quota", limits={"nodes": 10, "cpu": 64}, offers={"instanceTypes": ["e2-*"]})
    assert quota.offers == OfferEffects(instance_types=("e2-*",), limits={"cpu": "64", "nodes": "10"})
    [taken] = of_offerings(kind="spot-interruption", target={"percent": 20, "labels": {"team": "ml"}}, notice="30s")
    how = Interruption(30.0, {"team": "ml"}, 0, 20.0, "x")
    assert taken.offers == OfferEffects(capacity_types=("spot",), interruption=how)
    assert taken.nodes == {}
    [taken] = of_offerings(kind="spot-interruption", target={"seed": "other"})
    assert taken.offers is not None
    assert taken.offers.interruption == Interruption(120.0, seed="other")


def test_a_stock_out_and_a_price_are_about_offerings_and_no_nodes() -> None:
    [gone] = of_offerings(kind="stock-out", offers={"zones": ["us-central1-a"], "capacityTypes": ["on-demand"]})
    [dear] = of_offerings(kind="price-change", priceFactor=2.5)
    assert gone.nodes == dear.nodes == {}
    assert gone.offers == OfferEffects(sold_out=True, zones=("us-central1-a",), capacity_types=("on-demand",))
    assert dear.offers == OfferEffects(price_factor=2.5)
    assert gone.offers.selects("any", "us-central1-a", "on-demand")
    assert not gone.offers.selects("any", "us-central1-a", "spot")
    assert offer_effects_from(gone.offers.to_plain()) == gone.offers
    assert record_from({"name": "x", "offers": dear.offers.to_plain()}).to_plain()["offers"] == dear.offers.to_plain()
    said = described_fault(gone.kind, gone.node, None, {}, {}, {}, None, gone.offers)
    assert said == "stock-out: none available: every instance type in us-central1-a, on-demand"


def test_faults_that_decide_the_same_on_one_node_are_refused() -> None:
    one = {"name": "one", "kind": "xid-48", "target": {"names": ["a100-use1-[0-4]"]}}
    text = problems(one, {"name": "two", "capacity": {GPU: "0"}, "target": {"names": ["a100-use1-[3-9]"]}})
    assert "faults[1].target: the capacity of nvidia.com/gpu of a100-use1-3, a100-use1-4" in text
    assert "is decided by the fault one too; choose other nodes" in text
    assert "faults[1].name" in problems(one, {**one, "target": {"names": ["a100-use2-0"]}})
    both = {"kind": "reboot", "target": {"names": ["a100-use1-0"]}}
    assert "the kubelet of a100-use1-0 is decided by" in problems({"name": "one", **both}, {"name": "two", **both})


def test_faults_that_decide_different_things_share_a_node() -> None:
    both = {"target": {"names": ["a100-use1-0"]}}
    assert len(faults({"name": "one", "kind": "xid-48", **both}, {"name": "two", "kind": "not-ready", **both})) == 2
    other = {"target": {"names": ["a100-use1-1"]}}
    assert len(faults({"name": "one", "kind": "reboot", **both}, {"name": "two", "kind": "reboot", **other})) == 2


# --- which nodes -----------------------------------------------------------------------------------------------------


def test_a_target_is_what_fulfils_all_of_it() -> None:
    assert nodes({}) == {"a100-use1": "0-19", "a100-use2": "0-9", "cpu-use1": "0-4"}
    assert nodes({"nodeGroup": "a100", "zone": "use2"}) == {"a100-use2": "0-9"}
    assert nodes({"nodeGroup": "a100", "rack": "r1"}) == {"a100-use1": "4-7", "a100-use2": "4-7"}
    assert nodes({"rack": "a100-use1-r1"}) == {"a100-use1": "4-7"}
    assert nodes({"nodeGroup": "a100", "zone": "use1", "block": "b1"}) == {"a100-use1": "8-15"}
    assert nodes({"leaf": "leaf1"}) == {"a100-use1": "8-15", "a100-use2": "8-9"}
    assert nodes({"zone": "use1", "spine": "spine1"}) == {"a100-use1": "16-19"}
    assert nodes({"zone": "use2", "nvlinkDomain": "nvl1"}) == {"a100-use2": "2-3"}
    assert nodes({"zone": "use1"}) == {"a100-use1": "0-19", "cpu-use1": "0-4"}
    assert nodes({"labels": {"example.com/power": "a"}}) == {"a100-use1": "0-19", "a100-use2": "0-9"}
    assert nodes({"labels": {"kubernetes.io/hostname": "cpu-use1-3"}}) == {"cpu-use1": "3"}
    assert nodes({"names": ["a100-use1-[0-2,9]", "cpu-use1-1"]}) == {"a100-use1": "0-2,9", "cpu-use1": "1"}


def test_a_share_is_seeded_and_a_resize_changes_as_few_nodes_as_it_can() -> None:
    few, _ = chosen(Target(nodeGroup="a100", percent=20), "x", fleet(), ())
    assert size(few) == 6
    assert chosen(Target(nodeGroup="a100", percent=20), "x", fleet(), ())[0] == few
    assert chosen(Target(nodeGroup="a100", percent=20, seed="y"), "x", fleet(), ())[0] != few
    (pool,) = [each for each in fleet() if each.name == "a100-use1"]
    sizes = {}
    for replicas in (1000, 1010):
        grown = [Pool(**{**pool.__dict__, "replicas": replicas})]
        found, _ = chosen(Target(percent=10), "x", grown, ())
        sizes[replicas] = found["a100-use1"]
    assert (len(sizes[1000]), len(sizes[1010])) == (100, 101)
    assert len(sizes[1000] - sizes[1010]) <= 10


def test_a_set_of_nodes_is_written_as_ranges() -> None:
    assert ranges([5, 0, 1, 2]) == "0-2,5"
    assert ordinals("0-2,5") == {0, 1, 2, 5}
    assert from_plain(to_plain({"a": frozenset({3, 4})})) == {"a": {3, 4}}
    with pytest.raises(ValueError, match="ranges"):
        ordinals("1,,2")


def test_a_fault_that_begins_now_is_of_the_pools_on_record() -> None:
    recorded = {pool.name: pool for pool in fleet()}

    def now(known: dict[str, Pool], count: int) -> ResolvedFault:
        return resolved(fault_from({"name": "lost", "kind": "not-ready", "target": {"count": count}}, ""), known, "")

    assert size(now(recorded, 2).nodes) == 2
    with pytest.raises(NoPools, match=r"no recorded pools.*; `pulumi up --refresh` records them"):
        now({}, 2)
    with pytest.raises(SpecError) as caught:
        now(recorded, 99)
    assert [each.path for each in caught.value.problems] == ["target.count"], "there is no list"


# --- what happens there ----------------------------------------------------------------------------------------------


def test_a_kind_and_what_is_given_beside_it_add_up() -> None:
    (found,) = faults(
        {
            "name": "x",
            "kind": "gpu-fell-off-bus",
            "target": {"names": ["a100-use1-[0-2]"]},
            "capacity": {GPU: "-2"},
            "labels": {"example.com/rma": "yes"},
        }
    )
    assert found.node.capacity == {GPU: "-2"}
    assert found.node.labels == {"example.com/rma": "yes"}
    assert "SysLogsGPUFallenOff" in found.node.conditions
    assert found.lost == {GPU: "6"}


def test_a_node_that_goes_loses_everything() -> None:
    (found,) = faults({"name": "x", "kind": "spot-reclaim", "target": {"names": ["cpu-use1-[0-1]"]}})
    assert found.lost == {"cpu": "16", "pods": "220"}


@pytest.mark.parametrize(("change", "gone"), [("-1", "1"), ("7", "1"), ("-99", "8"), ("0", "8"), ("12", "0")])
def test_no_more_is_lost_than_there_is(change: str, gone: str) -> None:
    assert str(lost("8", change)) == gone


def test_what_is_allocatable_shrinks_by_what_the_capacity_loses() -> None:
    left = reduced({"cpu": "94", "pods": "110"}, {"cpu": "96", "pods": "110"}, {"cpu": "-4"})
    assert left == {"cpu": "90", "pods": "110"}


def test_a_fault_is_laid_over_what_the_pool_wants_and_taking_it_away_is_the_way_back() -> None:
    pool = fleet()[0]
    fault = ActiveFault(
        "x", fault_kinds()["gpu-fell-off-bus"].node, {pool.name: frozenset({3})}, "2026-01-01T00:00:00Z"
    )
    faulted = Pool(**{**pool.__dict__, "faults": faults_of(pool.name, [fault])})
    healthy, sick = owned_fields(pool, 3), owned_fields(faulted, 3)
    assert sick.allocatable[GPU] == "7"
    assert sick.annotations[FAULTS_ANNOTATION] == "x"
    assert owned_fields(faulted, 4) == owned_fields(pool, 4)
    there, back = node_patch([healthy], sick, "b", "now"), node_patch([sick], healthy, "b", "now")
    assert there.taints
    assert back.taints
    assert back.status is not None
    assert json.loads(back.status)["status"] == {
        "capacity": {GPU: "8"},
        "allocatable": {GPU: "8"},
        "conditions": [{"type": "SysLogsGPUFallenOff", "$patch": "delete"}],
    }
    assert node_patch([sick], sick, "b", "now").status is None


def test_effects_survive_their_way_to_the_plugin() -> None:
    for kind in fault_kinds().values():
        assert node_effects_from(kind.node.to_plain()) == kind.node
        assert kind.pods is None or made_from(PodEffects, kind.pods.to_plain()) == kind.pods


# --- the catalog -----------------------------------------------------------------------------------------------------


def test_the_end_of_a_fault_is_told_with_what_comes_back_and_what_is_over() -> None:
    capacity = {"cpu": "8", "nvidia.com/gpu": "8"}
    pool = Pool("a-z", "a", "z", "", 10, {}, capacity=capacity, allocatable=capacity)
    lost_gpu = fault_kinds()["gpu-fell-off-bus"]
    nodes = {"a-z": frozenset({0, 1, 2})}
    assert described_end("gpu-fell-off-bus", lost_gpu.node, None, nodes, [pool], 1) == (
        "gpu-fell-off-bus ends on 3 nodes (a-z-[0-2]): +3 nvidia.com/gpu; over: SysLogsGPUFallenOff=True, "
        "taint nvidia.com/gpu-error:NoSchedule, XID 79; 1 running pod on them"
    )
    stuck = fault_kinds()["stuck-terminating"]
    assert described_end("stuck-terminating", stuck.node, stuck.pods, {}, [pool], None) == (
        "stuck-terminating ends on every node: over: a deleted pod does not go"
    )
    gone = described_end("", NodeEffects(kubelet="gone"), None, {"a-z": frozenset({3})}, [pool], 0)
    assert gone == "fault ends on 1 node (a-z-3): +8 nvidia.com/gpu, +8 cpu; over: goes; 0 running pods on them"


def test_two_xids_share_a_node_and_the_last_is_shown() -> None:
    found = [(fault_kinds()[kind].node, {"a-z": frozenset({0})}) for kind in ("xid-74", "gpu-fell-off-bus")]
    assert clashes(*found[0], *found[1]) == ""
    capacity = {"nvidia.com/gpu": "8"}
    active = [ActiveFault(name, node, nodes) for name, (node, nodes) in zip("ab", found, strict=True)]
    pool = Pool("a-z", "a", "z", "", 1, {}, capacity=capacity, allocatable=capacity)
    sick = replace(pool, faults=faults_of("a-z", active))
    assert owned_fields(sick, 0).annotations[XID_ANNOTATION] == "79"


def test_a_lost_gpu_is_one_device_fewer_in_its_nodes_slice() -> None:
    devices = Devices("gpu.nvidia.com", 2)
    pool = Pool("a-z", "a", "z", "", 3, {}, devices=devices)
    lost_gpu, all_gone = (
        ActiveFault(kind, fault_kinds()[kind].node, {"a-z": frozenset({n})})
        for n, kind in enumerate(("gpu-fell-off-bus", "gpu-driver"))
    )
    sick = replace(pool, faults=faults_of("a-z", [lost_gpu, all_gone]))
    published = [slice_spec(sick, SlicePart(n, 0)).get("devices", []) for n in range(3)]
    assert [[each["name"] for each in there] for there in published] == [["gpu-0"], [], ["gpu-0", "gpu-1"]]
    assert published[0] == slice_spec(pool, SlicePart(0, 0))["devices"][:1]
    # A group whose GPUs are to be had by claims only loses them all the same.
    assert loss(lost_gpu.effects, lost_gpu.nodes, [pool]) == {"nvidia.com/gpu": "1"}


def test_every_kind_does_something_and_says_where_it_is_from() -> None:
    for kind in fault_kinds().values():
        assert kind.summary
        assert kind.sources
        assert kind.pods is not None or kind.offers is not None or kind.node != NodeEffects()


def test_every_kind_can_be_declared_as_it_is() -> None:
    for kind in fault_kinds().values():
        if kind.offers is None:
            assert faults({"name": "x", "kind": kind.name, "target": {"names": ["a100-use1-0"]}})
        else:
            needed: dict[str, dict[str, Any]] = {"price-change": {"priceFactor": 2}, "quota": {"limits": {"cpu": "64"}}}
            assert of_offerings(kind=kind.name, **needed.get(kind.name, {}))


def test_the_page_has_the_catalog_as_it_is() -> None:
    text = (pages.DOCS / "faults.md").read_text()
    assert pages.with_faults(text) == text, "run: python -m benchmarks.pages"


def test_the_images_that_a_file_names_are_those_of_the_fault() -> None:
    pods = {"images": ["webserver:404", "down.example.com/*"]}
    _, effects = effects_of(fault_from({"name": "x", "kind": "image-pull-error", "pods": pods}, "a test"))
    assert effects is not None
    assert (effects.action, effects.images) == ("imagePull", ("webserver:404", "down.example.com/*"))
