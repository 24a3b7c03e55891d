"""The sums of a fleet, kept event by event; and the health of its control plane."""

import time
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from kumulus.extras.watch.live import health
from kumulus.extras.watch.live.amounts import Amounts
from kumulus.extras.watch.live.devices import Claim, DevicePool, Gpu, PublishedSlice, claim_from
from kumulus.extras.watch.live.model import Fleet, Group, Rate
from kumulus.extras.watch.live.node import ClusterNode, State
from kumulus.extras.watch.live.pod import ClusterPod
from kumulus.kube.messages import message_classes
from tests.support.apiserver import serving

ALLOCATABLE = Amounts(96_000, 2**40, 8, 110)
NODE = ClusterNode("n0", "use1", "g", "g-use1", "r0", "", "H100", ALLOCATABLE, ALLOCATABLE, "True", False, (), (), ())
POD = ClusterPod("default", "p", "", "", "Pending", Amounts(1000, 2**30, 2, 1), ("Insufficient cpu",), 0, 0, False)


def bound(node: str, phase: str = "Running") -> ClusterPod:
    return replace(POD, node=node, phase=phase, reasons=())


NODES = st.tuples(
    st.sampled_from(["n0", "n1", "n2"]),
    st.none()
    | st.builds(
        lambda zone, product, ready, gpus: replace(
            NODE, zone=zone, product=product, ready=ready, allocatable=Amounts(96_000, 2**40, gpus, 110)
        ),
        st.sampled_from(["use1", "use2", ""]),
        st.sampled_from(["H100", "A100", ""]),
        st.sampled_from(["True", "False"]),
        st.integers(0, 8),
    ),
)
PODS = st.tuples(
    st.sampled_from(["default/a", "default/b", "default/c", "default/d"]),
    st.none()
    | st.builds(
        lambda node, phase, gpus: replace(
            POD, node=node, phase=phase, requests=Amounts(1000, 0, gpus, 1), reasons=() if node else ("x", "y")
        ),
        st.sampled_from(["", "n0", "n1", "n2"]),
        st.sampled_from(["Pending", "Running", "Succeeded", "Failed"]),
        st.integers(0, 8),
    ),
)


SLICES = st.tuples(
    st.sampled_from(["s0", "s1", "s2"]),
    st.none()
    | st.builds(
        lambda node, pool, gpus: PublishedSlice(node, DevicePool("gpu.nvidia.com", pool), gpus),
        st.sampled_from(["n0", "n1", "n2", ""]),
        st.sampled_from(["p0", "p1", "p2"]),
        st.integers(0, 9),
    ),
)
CLAIMS = st.tuples(
    st.sampled_from(["default/a", "default/b"]),
    st.none()
    | st.lists(st.sampled_from(["p0", "p1", "p2"]), max_size=3).map(
        lambda pools: Claim(
            tuple(Gpu(DevicePool("gpu.nvidia.com", pool), f"gpu-{number}") for number, pool in enumerate(pools))
        )
    ),
)


def recount(fleet: Fleet, nodes: list[ClusterNode]) -> Group:
    group = Group()
    for name, node in fleet.nodes.items():
        if node not in nodes:
            continue
        group.nodes += 1
        group.states[node.state] += 1
        group.allocatable = group.allocatable.plus(node.allocatable)
        for pod in fleet.pods.values():
            if pod.node == name and pod.holds:
                group.taken = group.taken.plus(pod.requests)
    return group


def counts(group: Group) -> tuple[int, Counter[State], Amounts, Amounts]:
    return group.nodes, +group.states, group.allocatable, group.taken


@given(st.lists(st.one_of(NODES.map(lambda e: ("node", e)), PODS.map(lambda e: ("pod", e))), max_size=40))
def test_sums_kept_event_by_event_are_those_of_counting_anew(events: list[tuple[str, tuple[str, Any]]]) -> None:
    fleet = Fleet()
    for kind, (name, item) in events:
        if kind == "node":
            fleet.set_node(name, replace(item, name=name) if item else None)
        else:
            fleet.set_pod(name, item)
    nodes = list(fleet.nodes.values())
    assert counts(fleet.total) == counts(recount(fleet, nodes))
    for attribute, groups in (("product", fleet.by_product), ("zone", fleet.by_zone)):
        names = {getattr(node, attribute) for node in nodes}
        assert set(groups) == names
        for name in names:
            chosen = [node for node in nodes if getattr(node, attribute) == name]
            assert counts(groups[name]) == counts(recount(fleet, chosen))
    pods = list(fleet.pods.values())
    assert +fleet.phases == Counter(pod.phase for pod in pods)
    assert fleet.waiting == sum(pod.waits for pod in pods)
    assert fleet.reasons == Counter(reason for pod in pods if pod.waits for reason in pod.reasons)
    for node in ("n0", "n1", "n2"):
        assert fleet.on(node) == [fleet.pods[key] for key in sorted(fleet.pods) if fleet.pods[key].node == node]


@given(st.lists(st.one_of(SLICES.map(lambda e: ("slice", e)), CLAIMS.map(lambda e: ("claim", e))), max_size=30))
def test_what_slices_publish_and_claims_have_is_what_counting_anew_gives(
    events: list[tuple[str, tuple[str, Any]]],
) -> None:
    fleet = Fleet()
    slices: dict[str, PublishedSlice] = {}
    claims: dict[str, Claim] = {}
    for name in ("n0", "n1", "n2"):
        fleet.set_node(name, replace(NODE, name=name, allocatable=ALLOCATABLE._replace(gpus=2)))
    for kind, (key, item) in events:
        (fleet.set_slice if kind == "slice" else fleet.set_claim)(key, item)
        known: dict[str, Any] = slices if kind == "slice" else claims
        known.pop(key, None)
        if item is not None:
            known[key] = item
    # A pool of devices is one node's.
    owners = {
        place: {s.node for s in slices.values() if s.place == place} for place in {s.place for s in slices.values()}
    }
    if any(len(nodes) > 1 for nodes in owners.values()):
        return
    for name in ("n0", "n1", "n2"):
        gpus = sum(s.gpus for s in slices.values() if s.node == name)
        assert fleet.nodes[name].allocatable.gpus == max(2, gpus)
        mine = {s.place for s in slices.values() if s.node == name}
        assert fleet.taken(name).gpus == len(
            {gpu for claim in claims.values() for gpu in claim.gpus if gpu.place in mine}
        )
    assert fleet.total.allocatable.gpus == sum(node.allocatable.gpus for node in fleet.nodes.values())
    assert fleet.total.taken.gpus == sum(fleet.taken(name).gpus for name in fleet.nodes)


def test_a_pool_of_devices_that_went_to_another_node_for_a_moment_still_counts() -> None:
    fleet, pool = Fleet(), DevicePool("gpu.nvidia.com", "p0")
    for name in ("n0", "n1"):
        fleet.set_node(name, replace(NODE, name=name, allocatable=ALLOCATABLE._replace(gpus=2)))
    fleet.set_slice("s0", PublishedSlice("n1", pool, 1))
    fleet.set_slice("s1", PublishedSlice("n0", pool, 1))
    fleet.set_slice("s1", None)
    fleet.set_claim("default/a", Claim((Gpu(pool, "gpu-0"),)))
    assert (fleet.taken("n0").gpus, fleet.taken("n1").gpus) == (0, 1)


@pytest.mark.parametrize("by_scheduler", [False, True])
def test_gpus_of_a_pod_that_the_scheduler_makes_a_claim_for_count_once(by_scheduler: bool) -> None:
    annotations = {"resource.kubernetes.io/extended-resource-claim": "true"} if by_scheduler else {}
    results = [{"driver": "gpu.nvidia.com", "pool": "p0", "device": f"gpu-{number}"} for number in range(4)]
    allocation = {"allocation": {"devices": {"results": results}}}
    claim = message_classes()["ResourceClaim"](metadata={"annotations": annotations}, status=allocation)
    fleet = Fleet()
    fleet.set_node("n0", replace(NODE, allocatable=ALLOCATABLE._replace(gpus=0)))
    fleet.set_slice("s0", PublishedSlice("n0", DevicePool("gpu.nvidia.com", "p0"), 8))
    fleet.set_claim("default/a", claim_from(claim))
    # A pod that asks for devices by a claim has no request of its own.
    fleet.set_pod("default/p", replace(bound("n0"), requests=Amounts(1000, 0, 4 if by_scheduler else 0, 1)))
    assert (fleet.taken("n0").gpus, fleet.total.allocatable.gpus) == (4, 8)


def test_what_changed_is_noted_and_a_heartbeat_is_not() -> None:
    fleet = Fleet()
    fleet.set_node("n0", NODE)
    assert fleet.touched == {"n0"}
    fleet.touched.clear()
    fleet.set_node("n0", replace(NODE))
    assert fleet.touched == set()
    fleet.set_pod("default/p", bound("n0"))
    assert fleet.touched == {"n0"}
    fleet.touched.clear()
    fleet.set_pod("default/p", bound("n0"))
    assert fleet.touched == set()


def test_a_fleet_that_is_cleared_is_as_a_new_one_and_what_went_is_noted() -> None:
    fleet = Fleet()
    fleet.set_node("n0", NODE)
    fleet.set_pod("default/p", bound("n0"))
    fleet.set_pod("default/waits", POD)
    fleet.touched.clear()
    fleet.clear()
    assert (fleet.nodes, fleet.pods, fleet.by_zone, fleet.by_product) == ({}, {}, {}, {})
    assert counts(fleet.total) == counts(Group())
    assert (+fleet.phases, fleet.waiting, +fleet.reasons, fleet.on("n0")) == (Counter(), 0, Counter(), [])
    assert fleet.touched == {"n0"}


def test_bindings_are_counted_when_they_are_heard() -> None:
    fleet = Fleet()
    now = time.monotonic()
    fleet.set_pod("default/p", POD, now)
    assert fleet.bindings.total == 0
    fleet.set_pod("default/p", bound("n0", "Pending"), now)
    fleet.set_pod("default/p", bound("n0"), now)
    assert fleet.bindings.total == 1


def test_a_list_counts_the_bindings_of_the_last_minute_by_the_pods_own_word() -> None:
    fleet = Fleet()
    now = int(time.time())
    for name, at in (("a", now - 5), ("b", now - 3600), ("c", 0)):
        fleet.set_pod(name, replace(bound("n0"), bound=at))
    assert fleet.bindings.total == 1
    assert sum(fleet.bindings.history()[-10:]) == 1


def test_a_rate_is_of_the_last_ten_whole_seconds_and_forgets_after_a_minute() -> None:
    rate = Rate()
    for at in (30.5, 99.9, 100.1, 100.2, 109.9, 110.0):
        rate.note(at)
    assert rate.per_second(110.0) == 0.3
    assert rate.history(110.0)[-10:] == [2, 0, 0, 0, 0, 0, 0, 0, 0, 1]
    assert sum(rate.history(110.0)) == 4
    assert rate.total == 6


@pytest.mark.parametrize(
    ("silent", "says"), [(1, ("ok", "")), (60, ("failing", "its lease is 60 s old"))], ids=["well", "dead"]
)
@pytest.mark.parametrize("ahead", [45, -3600, 0])
async def test_a_lease_is_as_old_as_it_is_by_the_clusters_clock(ahead: int, silent: int, says: tuple[str, str]) -> None:
    there = datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=ahead)

    async def answer(request: web.Request) -> web.StreamResponse:
        spec = {"renewTime": (there - timedelta(seconds=silent)).isoformat(), "leaseDurationSeconds": 15}
        return web.json_response({"spec": spec}, headers={"Date": format_datetime(there, usegmt=True)})

    async with serving() as server, server.client() as client:
        server.answers = [answer]
        found = (await health.look(client, {}))["kube-scheduler"]
    assert (found.status, found.detail) == says
