"""Prices: the catalog's are of its own types and have a source and a date, and a user's own file wins."""

import re
from pathlib import Path

import pytest

from kumulus.model.errors import SpecError
from kumulus.nodes.catalog.instances import instance_types
from kumulus.nodes.catalog.prices import Price, catalog, is_spot, with_own
from kumulus.stackfile.groups import region_of

REGIONS = {"aws": "us-east-1", "gcp": "us-central1", "azure": "eastus"}


def test_every_price_is_of_a_type_of_the_catalog_in_a_region_of_its_cloud() -> None:
    for region, kind, spot in catalog().table:
        machine, found = instance_types()[kind], catalog().of(kind, region, spot=spot)
        assert found is not None
        assert found.hourly > 0
        assert machine.cloud in found.source
        assert re.fullmatch(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}", found.date)


def test_a_spot_machine_costs_less_than_the_same_on_demand() -> None:
    found = [(region, kind) for region, kind, spot in catalog().table if spot]
    assert found
    for region, kind in found:
        spot, plain = catalog().of(kind, region, spot=True), catalog().of(kind, region)
        assert spot is not None
        assert plain is not None
        assert 0.1 * plain.hourly < spot.hourly < 0.75 * plain.hourly


def test_twice_the_machine_costs_about_twice_as_much() -> None:
    prices, region = catalog(), REGIONS["aws"]
    for less, more, times in (("m7i.4xlarge", "m7i.48xlarge", 12), ("g6.12xlarge", "g6.48xlarge", 2.9)):
        smaller, larger = prices.of(less, region), prices.of(more, region)
        assert smaller is not None
        assert larger is not None
        assert larger.hourly == pytest.approx(times * smaller.hourly, rel=0.05)


def test_a_type_without_a_source_has_no_price() -> None:
    # Neither is in Karpenter's list.
    assert catalog().of("p5e.48xlarge", "us-east-1") is None
    assert catalog().of("Standard_NC80adis_H100_v5", "eastus") is None
    # Nor does a price hold in another region.
    assert catalog().of("m5.xlarge", "eu-west-1") is None
    assert catalog().of("m5.xlarge", "us-east-1", spot=True) is None


def test_the_regions_are_those_that_a_zones_name_tells() -> None:
    assert {region_of("us-east-1a"), region_of("us-central1-b"), region_of("us-east4-c"), region_of("eastus-1")} == set(
        catalog().regions()
    )


def test_a_node_has_the_price_of_its_labels() -> None:
    labels = {"node.kubernetes.io/instance-type": "e2-standard-4", "topology.kubernetes.io/region": "us-central1"}
    plain, spot = catalog().of_node(labels), catalog().of_node({**labels, "cloud.google.com/gke-spot": "true"})
    assert plain is not None
    assert spot is not None
    assert (plain.hourly, spot.hourly) == (0.13402284, 0.080424)
    assert catalog().of_node({}) is None


@pytest.mark.parametrize(
    "label",
    [
        ("karpenter.sh/capacity-type", "spot"),
        ("eks.amazonaws.com/capacityType", "SPOT"),
        ("cloud.google.com/gke-spot", "true"),
        ("kubernetes.azure.com/scalesetpriority", "spot"),
    ],
)
def test_spot_machines_are_known_by_their_clouds_labels(label: tuple[str, str]) -> None:
    assert is_spot(dict([label]))
    assert not is_spot({label[0]: "on-demand"})


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "prices.yaml"
    path.write_text(text)
    return path


def test_a_file_of_the_users_own_wins_and_leaves_the_rest(tmp_path: Path) -> None:
    own = """
regions:
  us-east-1: {date: 2026-10-01, source: our contract, onDemand: {m5.xlarge: 0.1}}
  "*": {onDemand: {m5.4xlarge: 0.5, our-server: 2}}
"""
    prices = with_own(written(tmp_path, own))
    assert prices.of("m5.xlarge", "us-east-1") == Price(0.1, "our contract", "2026-10-01")
    assert prices.of("m5.24xlarge", "us-east-1") == catalog().of("m5.24xlarge", "us-east-1")
    # A region's own price goes before that of every region, whoever has it.
    assert prices.of("m5.4xlarge", "us-east-1") == catalog().of("m5.4xlarge", "us-east-1")
    assert prices.of("m5.4xlarge", "nowhere") == prices.of("m5.4xlarge", "") == Price(0.5, "prices.yaml")
    assert prices.of("our-server", "use1") == Price(2.0, "prices.yaml")
    assert "our-server" in prices.types("use1")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("regions: {r: {onDemand: {m5.xlarge: -1}}}", '["m5.xlarge"]: is -1, a negative price; write US dollars'),
        ("regions: {r: {spot: {a: cheap}}}", 'regions.r.spot.a: is "cheap", which is no price'),
        ("regions: {1: {onDemand: {a: 1}}}", 'regions: has the key 1, which is no text; write "1" in quotes'),
        ("regions: {r: {onDemand: {a: .nan}}}", "which is no price"),
        ("regions: {r: {onDemand: {a: true}}}", "which is no price"),
        ("regions: {r: {onDemand: {a: 20000000}}}", "write US dollars for an hour"),
        ("regions: {r: {ondemand: {a: 1}}}", "regions.r.ondemand: is not a known key; write onDemand"),
        ("regions: {r: {onDemand: [1]}}", "regions.r.onDemand: is a list"),
        ("regions: {r: 5}", "regions.r: is 5"),
        ("regions: {r: {date: soon}}", 'regions.r.date: is "soon"; write it as 2026-11-22'),
        ("regions: {}", "regions: has no region, so that there is no price"),
        ("", "regions: is missing"),
        ("currency: EUR\nregions: {r: {}}", 'currency: is "EUR"; write prices in USD'),
        ("regions:\n  a: [", "is no YAML: line 3, column 1: while parsing a flow node; write regions: with onDemand:"),
        ("regions: {r: {date: 2026-02-30, onDemand: {a: 1}}}", "is no YAML: "),
        ("regions: " + 2000 * "[", "is no YAML"),
    ],
)
def test_a_mistake_is_told_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(SpecError) as caught:
        with_own(written(tmp_path, text))
    assert said in str(caught.value)
    assert "prices.yaml" in str(caught.value)


def test_a_file_that_is_not_there_is_told() -> None:
    with pytest.raises(
        SpecError,
        match="No such file or directory; write the path of one that can be read, as kumulus:prices or --prices",
    ):
        with_own(Path("nowhere.yaml"))
