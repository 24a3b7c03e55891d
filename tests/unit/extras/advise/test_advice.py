"""The fleet advised: it holds the workload, is near the bound, and near the best of all where those can be counted."""

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

import pytest

from kumulus.extras.advise.advice import Advice, advise, groups, lines, place
from kumulus.extras.advise.apart import Pods
from kumulus.extras.advise.demand import PodShape, Unadvisable, WorkloadDemand, largest_first, made
from kumulus.extras.advise.offers import MachineOffers, Offer, of_catalog, of_pools
from kumulus.extras.advise.programme import Programme
from kumulus.model.pools import Pool
from kumulus.nodes.catalog.instances import instance_types
from kumulus.nodes.catalog.prices import Price, Prices, catalog
from kumulus.stackfile.expand import pools
from kumulus.stackfile.groups import region_of
from kumulus.stackfile.model import ClusterSpec

GIB = 1 << 30
SECONDS = 120.0  # never reached: what is found does not depend on the machine


def shape(name: str, count: int, cpu: int, memory: int, **more: int) -> PodShape:
    return PodShape(name, {"pods": 1, "cpu": cpu, "memory": memory, **more}, count)


def offer(kind: str, hourly: float, cpu: int, memory: int, pods: int = 110) -> Offer:
    return Offer(kind, ("z",), hourly, {"cpu": cpu, "memory": memory, "pods": pods}, {})


def demand(*shapes: PodShape) -> WorkloadDemand:
    return WorkloadDemand(shapes, {})


def holds(advice: Advice, wanted: WorkloadDemand) -> bool:
    offers, numbers = [each for each, _ in advice.nodes], [number for _, number in advice.nodes]
    return not any(place(offers, numbers, largest_first(wanted.shapes, advice.order)).pending)


def packs(nodes: Sequence[Offer], pods: Sequence[PodShape]) -> bool:
    """Whether some way puts all pods on the nodes: every way is tried."""
    resources = ("pods", "cpu", "memory")
    wants = [tuple(each.wants.get(resource, 0) for resource in resources) for each in pods]
    start = tuple(sorted(tuple(each.has[resource] for resource in resources) for each in nodes))

    @cache
    def fit(at: int, free: tuple[tuple[int, ...], ...]) -> bool:
        if at == len(wants):
            return True
        for index in range(len(free)):
            if index and free[index] == free[index - 1]:
                continue
            left = tuple(has - want for has, want in zip(free[index], wants[at], strict=True))
            if min(left) >= 0 and fit(at + 1, tuple(sorted((*free[:index], left, *free[index + 1 :])))):
                return True
        return False

    return fit(0, start)


def brute_force(offers: Sequence[Offer], wanted: WorkloadDemand) -> float:
    """The cheapest fleet of all, by looking at every one in the order of its price."""
    pods = [each for each in largest_first(wanted.shapes) for _ in range(each.count)]

    def fleets() -> Iterator[tuple[float, list[Offer]]]:
        for size in range(1, len(pods) + 1):
            for some in itertools.combinations_with_replacement(offers, size):
                yield sum(each.hourly for each in some), list(some)

    for hourly, nodes in sorted(fleets(), key=lambda each: each[0]):
        if packs(nodes, pods):
            return hourly
    raise AssertionError("nothing holds it")


@pytest.mark.parametrize("seed", range(20))
def test_the_packing_is_the_cheapest_of_all_on_drawn_small_workloads(seed: int) -> None:
    source = random.Random(seed)
    offers = [
        offer(
            f"t{number}", round(source.uniform(0.5, 1.5) * cpu / 4, 3), cpu * 1000, cpu * source.choice((2, 4, 8)) * GIB
        )
        for number, cpu in enumerate(source.sample((4, 8, 16, 32), 3))
    ]
    largest = max(each.has["cpu"] for each in offers)
    memory = min(each.has["memory"] for each in offers if each.has["cpu"] == largest)
    wanted = demand(
        *(
            shape(
                f"s{number}", source.randint(1, 3), source.randrange(250, largest + 1, 250), source.randint(1, memory)
            )
            for number in range(source.randint(1, 3))
        )
    )
    advice = advise(wanted, MachineOffers(tuple(offers), ()), seconds=SECONDS)
    best = brute_force(offers, wanted)
    assert advice.bound <= best + 1e-6
    assert advice.packed <= best * 1.02
    assert advice.hourly <= best * 1.02
    assert holds(advice, wanted)


def web_like() -> WorkloadDemand:
    """1,000 pods of four kinds."""
    return demand(
        shape("front", 400, 500, GIB),
        shape("api", 300, 1000, 4 * GIB),
        shape("worker", 200, 2000, 2 * GIB),
        shape("cache", 100, 3500, 28 * GIB),
    )


def test_a_web_like_mix_of_1000_pods_is_near_the_bound_by_the_order_that_packs_it_best() -> None:
    offers = of_catalog((), ("us-central1-a",), catalog())
    advice = advise(web_like(), offers, seconds=SECONDS)
    assert advice.pods == 1000
    # In the order of the largest share alone it would be 7 %.
    assert advice.gap <= 0.06
    assert advice.order != "share"
    assert holds(advice, web_like())


def test_the_articles_42_jobs_take_the_nodes_that_the_article_has() -> None:
    jobs = [("a100", 1500), ("h100", 750), ("h200", 300)]
    offers = tuple(
        Offer(f"{kind}-8g", ("z",), price, {"cpu": 208_000, "memory": 1872 * GIB, "pods": 110, "gpu": 8}, {"gpu": kind})
        for kind, price in (("a100", 40.55), ("h100", 88.49), ("h200", 99.0))
    )
    wanted = demand(
        *(
            PodShape(
                kind, {"pods": 1, "cpu": 24_000, "memory": 1100 * GIB, "gpu": 8}, count, {"nodeSelector": {"gpu": kind}}
            )
            for kind, count in jobs
        )
    )
    advice = advise(wanted, MachineOffers(offers, ()), seconds=SECONDS)
    assert {each.kind: number for each, number in advice.nodes} == {f"{kind}-8g": count for kind, count in jobs}
    assert advice.gap == pytest.approx(0.0, abs=1e-6)


def test_the_bound_holds_where_columns_are_made_and_not_listed() -> None:
    source = random.Random(3)
    amounts = [(source.randrange(200, 4000, 100), source.randrange(200, 16_000) << 20) for _ in range(12)]
    wanted = [shape(f"s{at}", 5, *each) for at, each in enumerate(amounts)]
    offers = [offer("small", 0.2, 4000, 16 * GIB), offer("large", 0.7, 16_000, 64 * GIB)]
    found = Programme(offers, wanted, 12, SECONDS).solve()
    packed = sum(number * offers[column.offer].hourly for column, number in found.columns)
    sums = max(sum(each.count * each.wants["cpu"] for each in wanted) / 20_000, 0.0)
    assert sums <= found.bound * 1.2 <= packed * 1.2
    assert found.bound <= packed <= found.bound * 1.08
    for at, each in enumerate(wanted):
        assert sum(number * column.pods[at] for column, number in found.columns) >= each.count
    for column, _ in found.columns:
        for resource, much in offers[column.offer].has.items():
            assert sum(n * each.wants.get(resource, 0) for n, each in zip(column.pods, wanted, strict=True)) <= much


def test_a_fleet_has_no_more_types_than_it_may() -> None:
    wanted = demand(shape("tall", 7, 1000, 30 * GIB), shape("wide", 7, 15_000, GIB), shape("tiny", 3, 100, 100))
    offers = MachineOffers(
        (offer("tall", 1.0, 4000, 32 * GIB), offer("wide", 1.0, 16_000, 4 * GIB), offer("both", 3.0, 16_000, 64 * GIB)),
        (),
    )
    free = advise(wanted, offers, seconds=SECONDS)
    one = advise(wanted, offers, most_types=1, seconds=SECONDS)
    assert len({each.kind for each, _ in free.nodes}) >= 2
    assert {each.kind for each, _ in one.nodes} == {"both"}
    assert one.hourly >= free.hourly


def test_each_node_keeps_room_for_the_pods_of_daemon_sets() -> None:
    wanted = WorkloadDemand((shape("a", 4, 2000, GIB),), {"cpu": 500, "memory": GIB, "pods": 1})
    advice = advise(wanted, MachineOffers((offer("four", 1.0, 4000, 16 * GIB),), ()), seconds=SECONDS)
    assert [number for _, number in advice.nodes] == [4]
    none = WorkloadDemand(wanted.shapes, {"cpu": 5000, "pods": 1})
    with pytest.raises(Unadvisable, match="no type has room for the pods of the DaemonSets"):
        advise(none, MachineOffers((offer("four", 1.0, 4000, 16 * GIB),), ()), seconds=SECONDS)


@pytest.mark.parametrize("kinds", [2, 12], ids=["columns-listed", "columns-made"])
def test_pods_of_several_kinds_that_keep_apart_have_a_node_each(kinds: int) -> None:
    wanted = demand(
        *(PodShape(f"s{at}", {"pods": 1, "cpu": 100 + at}, 3, {}, apart="db") for at in range(kinds)),
        PodShape("any", {"pods": 1, "cpu": 100}, 5),
    )
    advice = advise(wanted, MachineOffers((offer("four", 1.0, 4000, 16 * GIB),), ()), seconds=SECONDS)
    assert [number for _, number in advice.nodes] == [3 * kinds]
    assert advice.bound == pytest.approx(3 * kinds)


def test_a_node_takes_no_more_pods_than_it_has_slots_for() -> None:
    advice = advise(demand(shape("a", 30, 1, 1)), MachineOffers((offer("four", 1.0, 4000, 16 * GIB, pods=10),), ()))
    assert [number for _, number in advice.nodes] == [3]


def test_a_pod_that_fits_on_no_type_is_told() -> None:
    offers = MachineOffers((offer("four", 1.0, 4000, 16 * GIB),), ("eight in r",))
    with pytest.raises(Unadvisable) as caught:
        advise(demand(shape("big", 1, 5000, GIB)), offers)
    assert "big: no type fits a pod of 5 CPUs, 1 GiB memory\n  Tried four; name others with --types" in str(
        caught.value
    )
    assert "No price is known of eight in r" in str(caught.value)


def test_the_answer_is_the_node_groups_of_a_stack_file() -> None:
    pods = made([Pods("web", {"containers": [{"resources": {"requests": {"cpu": "3", "memory": "2Gi"}}}]}, {}, 7)])
    zones = ["us-central1-a", "us-central1-b"]
    advice = advise(pods, of_catalog(("e2-standard-4",), zones, catalog()), seconds=SECONDS)
    spec = ClusterSpec.checked({"nodeGroups": groups(advice)})
    assert [(place.availabilityZone, place.replicas) for place in spec.nodeGroups[0].placement] == [
        ("us-central1-a", 4),
        ("us-central1-b", 3),
    ]
    assert spec.nodeGroups[0].nodeTemplate.taints == ()
    text = "\n".join(lines(replace(advice, uncounted=("CronJob nightly",))))
    assert "# not counted, as it is not known how many pods they have: CronJob nightly" in text
    assert "# for all pods at once" not in text
    assert "# for all pods at once, also those that come when" in "\n".join(lines(replace(advice, at_once=True)))
    assert "# 7 pods on 7 nodes of 1 type" in text
    assert "# price        $0.94/h" in text
    assert "&id" not in text
    assert " × " not in text, "without GPUs there is nothing to name"


def test_a_type_with_gpus_is_named_with_its_gpus() -> None:
    container = {"resources": {"requests": {"nvidia.com/gpu": "8"}}}
    pods = made([Pods("train", {"containers": [container]}, {}, 3)])
    zones = ["us-central1-a", "us-central1-b"]
    text = list(lines(advise(pods, of_catalog(("g2-standard-96",), zones, catalog()), seconds=SECONDS)))
    assert text[1] == "# 3 × g2-standard-96, each 8 × NVIDIA-L4"


def in_region(region: str) -> PodShape:
    wants = {"pods": 1, "cpu": 13_000, "memory": 8 * GIB}
    return PodShape("bound", wants, 8, {"nodeSelector": {"topology.kubernetes.io/region": region}})


def printed(advice: Advice, prices: Prices) -> float:
    """What the nodes of the printed groups cost, by the labels that they have in a cluster."""
    fleet = pools(ClusterSpec.checked({"nodeGroups": groups(advice)}), "x")
    found = [(prices.of_node(pool.labels), pool.replicas) for pool in fleet]
    return sum(price.hourly * number for price, number in found if price)


def test_pods_of_a_region_get_nodes_in_its_zones_alone() -> None:
    zones = ("us-central1-a", "us-east4-a", "us-east4-b")
    advice = advise(demand(in_region("us-east4")), of_catalog((), zones, catalog()), seconds=SECONDS)
    [group] = groups(advice)
    assert group["placement"] == [
        {"availabilityZone": "us-east4-a", "replicas": 4},
        {"availabilityZone": "us-east4-b", "replicas": 4},
    ]
    assert printed(advice, catalog()) == pytest.approx(advice.hourly)


def test_where_two_regions_have_the_same_price_the_one_that_the_pods_need_is_taken() -> None:
    prices = Prices({("*", "e2-standard-16", False): Price(1.0)})
    offers = of_catalog(("e2-standard-16",), ("us-central1-a", "us-east4-a"), prices)
    advice = advise(demand(in_region("us-east4"), shape("any", 2, 13_000, GIB)), offers, seconds=SECONDS)
    assert sum(number for each, number in advice.nodes if each.zones == ("us-east4-a",)) >= 8


def test_machines_are_in_regions_of_their_own_cloud_at_the_price_that_is_printed() -> None:
    for zones in (("us-central1-a", "us-east-1a"), ("us-east-1a", "us-central1-a"), ("us-central1-a", "us-east4-a")):
        advice = advise(demand(shape("a", 20, 3000, 8 * GIB)), of_catalog((), zones, catalog()), seconds=SECONDS)
        for group in groups(advice):
            for place_of_it in group["placement"]:
                region = region_of(place_of_it["availabilityZone"])
                assert catalog().of(group["instanceType"], region), (group, instance_types()[group["instanceType"]])
        assert printed(advice, catalog()) == pytest.approx(advice.hourly)


def test_a_region_that_a_zones_name_does_not_tell_is_printed() -> None:
    group = {
        "name": "ours",
        "instanceType": "e2-standard-16",
        "placement": [{"availabilityZone": "use4", "region": "us-east4", "replicas": 1}],
    }
    offers = of_pools({"": pools(ClusterSpec.checked({"nodeGroups": [group]}), "x")}, catalog())
    advice = advise(demand(in_region("us-east4")), offers, seconds=SECONDS)
    assert printed(advice, catalog()) == pytest.approx(advice.hourly)


def test_groups_of_one_name_in_several_clusters_are_told_apart() -> None:
    def workers(kind: str) -> list[Pool]:
        placement = [{"availabilityZone": "us-central1-a", "replicas": 1}]
        group = {"name": "workers", "instanceType": kind, "placement": placement}
        return pools(ClusterSpec.checked({"nodeGroups": [group]}), "x")

    members = {"big": workers("e2-standard-16"), "small": workers("e2-standard-4")}
    wanted = demand(shape("large", 3, 15_000, 8 * GIB), shape("tiny", 1, 3000, 8 * GIB))
    advice = advise(wanted, of_pools(members, catalog()), seconds=SECONDS)
    assert {group["name"]: group["placement"][0]["replicas"] for group in groups(advice)} == {
        "big-workers": 3,
        "small-workers": 1,
    }
    assert printed(advice, catalog()) == pytest.approx(advice.hourly)
    assert advice.gap == pytest.approx(0.0, abs=1e-6)


def test_a_part_of_a_mebibyte_makes_no_fleet_dearer() -> None:
    spec = {"containers": [{"resources": {"requests": {"cpu": "10m", "memory": "157600000"}}}]}
    # 109 of them have 17,178,400,000 bytes of the 17,179,869,184 of a node.
    wanted = made([Pods("r", spec, {}, 1090)])
    advice = advise(wanted, of_catalog(("e2-standard-4",), (), catalog()), seconds=SECONDS)
    assert [number for _, number in advice.nodes] == [10]
    assert advice.gap == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_amounts_with_no_common_unit_are_packed_exactly_and_the_bound_holds(seed: int) -> None:
    source = random.Random(seed)
    # Odd numbers of bytes: three of each leave a node of 2 TiB almost no room.
    third = 2048 * GIB // 3
    wanted = [shape(f"s{at}", 6, 10, third - source.randrange(1, 200)) for at in range(9)]
    wanted += [shape("over", 3, 10, third + 101)]
    offers = [offer("large", 1.0, 64_000, 2048 * GIB)]
    found = Programme(offers, wanted, 12, SECONDS).solve()
    for column, _ in found.columns:
        asked = sum(number * each.wants["memory"] for number, each in zip(column.pods, wanted, strict=True))
        assert asked <= offers[0].has["memory"]
    # 57 pods, three on a node.
    assert found.bound <= 19.0 + 1e-6
    assert sum(number for _, number in found.columns) >= 19


def test_a_stacks_machine_of_the_catalog_is_advised_by_its_type_and_what_that_does_not_bring() -> None:
    zone = {"placement": [{"availabilityZone": "us-central1-a", "replicas": 1}]}
    plain = {"name": "plain", "instanceType": "e2-standard-4", **zone}
    template = {"metadata": {"labels": {"team": "a"}}, "capacity": {"pods": "7"}}
    larger = {"name": "larger", "instanceType": "e2-standard-8", "nodeTemplate": template, **zone}
    less = {"name": "less", "instanceType": "e2-standard-4", "nodeTemplate": {"allocatable": {"cpu": "3"}}, **zone}
    declared = pools(ClusterSpec.checked({"nodeGroups": [plain, larger, less]}), "x")
    found = {each.kind: each.group for each in of_pools({"": declared}, catalog()).found}
    assert found["plain"] == {"instanceType": "e2-standard-4", "nodeTemplate": {"taints": []}}
    assert found["larger"] == {
        "instanceType": "e2-standard-8",
        "nodeTemplate": {"metadata": {"labels": {"team": "a"}}, "capacity": {"pods": "7"}, "taints": []},
    }
    assert found["less"]["nodeTemplate"] == {"allocatable": {"cpu": "3"}, "taints": []}
