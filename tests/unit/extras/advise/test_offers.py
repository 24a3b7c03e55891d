"""The machines to choose from, and what is said where there are none."""

from pathlib import Path

import pytest

from kumulus.extras.advise.demand import Unadvisable
from kumulus.extras.advise.offers import allowed, of_catalog, of_pools
from kumulus.model.pools import Pool
from kumulus.nodes.catalog.prices import Price, Prices, catalog, spot_labels, with_own


def test_every_type_with_a_price_in_the_zones_region_is_looked_at() -> None:
    found = of_catalog((), ("us-east-1a",), catalog())
    assert {each.kind for each in found.found} == set(catalog().types("us-east-1"))
    [m5] = [each for each in found.found if each.kind == "m5.xlarge"]
    assert (m5.hourly, m5.has["cpu"], m5.has["memory"], m5.has["pods"]) == (0.192, 4000, 16 << 30, 110)
    assert m5.labels["topology.kubernetes.io/region"] == "us-east-1"


@pytest.mark.parametrize(
    ("kind", "zone", "label"),
    [
        ("e2-standard-4", "us-central1-a", {"cloud.google.com/gke-spot": "true"}),
        ("m5.xlarge", "us-east-1a", {"eks.amazonaws.com/capacityType": "SPOT"}),
        ("Standard_D4s_v5", "eastus-1", {"kubernetes.azure.com/scalesetpriority": "spot"}),
    ],
)
def test_spot_machines_have_the_label_by_which_they_are_known_and_cost_what_is_said(
    kind: str, zone: str, label: dict[str, str]
) -> None:
    prices = Prices({("*", kind, True): Price(0.5), ("*", kind, False): Price(2.5)})
    [found] = of_catalog((kind,), (zone,), prices, spot=True).found
    price = prices.of_node(found.labels)
    assert price is not None
    assert price.hourly == found.hourly == 0.5
    assert label.items() <= found.labels.items()
    assert found.group["nodeTemplate"]["metadata"]["labels"] == label


def test_a_stacks_groups_as_spot_machines_have_that_label_too(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text('regions: {"*": {onDemand: {ours: 2.5}, spot: {ours: 0.5}}}')
    kind = {"node.kubernetes.io/instance-type": "ours"}
    plain, marked = Pool("p", "g", "z", "", 1, kind), Pool("p", "g", "z", "", 1, {**kind, **spot_labels("gcp")})
    for pool, spot, hourly in ((plain, True, 0.5), (plain, False, 2.5), (marked, False, 0.5), (marked, True, 0.5)):
        [found] = of_pools({"": [pool]}, with_own(own), spot=spot).found
        assert found.hourly == hourly
        for labels in (found.labels, found.group["nodeTemplate"]["metadata"]["labels"]):
            price = with_own(own).of_node(labels)
            assert price is not None
            assert price.hourly == hourly


def test_a_type_is_looked_for_in_a_region_of_its_own_cloud() -> None:
    assert [each.zones for each in of_catalog(("m5.xlarge",), (), catalog()).found] == [("us-east-1a",)]
    assert [each.zones for each in of_catalog(("Standard_D4s_v5",), (), catalog()).found] == [("eastus-1",)]


@pytest.mark.parametrize(
    ("types", "zones", "prices", "said"),
    [
        (("m5.xlarg",), (), catalog(), r"m5.xlarg is no instance type of the catalog\n  Write m5.xlarge$"),
        (("p5e.48xlarge",), (), catalog(), r"no price is known of p5e.48xlarge in us-east-1\n  There are prices for"),
        ((), ("use1",), catalog(), "no instance type of the catalog has a price in use1"),
        ((), (), Prices({}), "no instance type of the catalog has a price in us-central1-a"),
    ],
)
def test_where_there_is_nothing_to_choose_from_it_is_said_why(
    types: tuple[str, ...], zones: tuple[str, ...], prices: Prices, said: str
) -> None:
    with pytest.raises(Unadvisable, match=said):
        of_catalog(types, zones, prices)


def test_a_type_without_a_price_is_named_beside_those_that_have_one() -> None:
    found = of_catalog(("m5.xlarge", "p5e.48xlarge"), (), catalog())
    assert [each.kind for each in found.found] == ["m5.xlarge"]
    assert found.unpriced == ("p5e.48xlarge in us-east-1",)


def test_a_stacks_node_groups_can_be_the_machines(tmp_path: Path) -> None:
    labels = {"node.kubernetes.io/instance-type": "ours", "team": "a", "kumulus.io/pool": "p", "kumulus.io/group": "g"}
    pool = Pool("p", "g", "use1", "", 3, labels, capacity={"cpu": "8", "pods": "110"}, allocatable={"cpu": "7"})
    with pytest.raises(Unadvisable, match="no node group of the stack has a price: ours in no region"):
        of_pools({"": [pool]}, catalog())
    own = tmp_path / "own.yaml"
    own.write_text('regions: {"*": {onDemand: {ours: 2.5}}}')
    [found] = of_pools({"": [pool]}, with_own(own)).found
    assert (found.kind, found.hourly, dict(found.has)) == ("g", 2.5, {"cpu": 7000})
    assert found.group["nodeTemplate"]["metadata"]["labels"] == {
        "node.kubernetes.io/instance-type": "ours",
        "team": "a",
    }
    assert found.group["nodeTemplate"]["allocatable"] == {"cpu": "7"}, "the fleet has no more room than was counted"


@pytest.mark.parametrize(
    ("spec", "stands"),
    [
        ({}, True),
        ({"nodeSelector": {"zone": "a"}}, True),
        ({"nodeSelector": {"zone": "b"}}, False),
        ({"nodeSelector": {"zone": "a", "disk": "ssd"}}, False),
    ],
)
def test_a_node_selector_names_labels(spec: dict[str, object], stands: bool) -> None:
    assert allowed(spec, {"zone": "a", "size": "5"}) is stands


@pytest.mark.parametrize(
    ("expression", "stands"),
    [
        ({"key": "zone", "operator": "In", "values": ["a", "b"]}, True),
        ({"key": "zone", "operator": "In", "values": ["b"]}, False),
        ({"key": "zone", "operator": "NotIn", "values": ["a"]}, False),
        ({"key": "disk", "operator": "NotIn", "values": ["ssd"]}, True),
        ({"key": "zone", "operator": "Exists"}, True),
        ({"key": "disk", "operator": "Exists"}, False),
        ({"key": "disk", "operator": "DoesNotExist"}, True),
        ({"key": "size", "operator": "Gt", "values": ["4"]}, True),
        ({"key": "size", "operator": "Lt", "values": ["5"]}, False),
        ({"key": "zone", "operator": "Gt", "values": ["4"]}, False),
        ({"key": "zone", "operator": "Like", "values": ["a"]}, False),
    ],
)
def test_an_affinity_is_matched_as_the_scheduler_does(expression: dict[str, object], stands: bool) -> None:
    labels = {"zone": "a", "size": "5"}
    never: dict[str, object] = {"matchExpressions": [{"key": "never", "operator": "Exists"}]}

    def with_terms(*terms: dict[str, object]) -> dict[str, object]:
        return {"nodeAffinity": {"nodeSelectorTerms": list(terms)}}

    assert allowed(with_terms({"matchExpressions": [expression]}), labels) is stands
    # One of the terms is enough, and a term without expressions matches nothing.
    assert allowed(with_terms(never, {"matchExpressions": [expression]}), labels) is stands
    assert not allowed(with_terms(never, {}), labels)
