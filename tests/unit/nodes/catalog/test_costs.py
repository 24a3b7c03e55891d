"""What a fleet costs, and what it says of nodes whose price nobody knows."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kumulus.cli.main import main
from kumulus.model.named_nodes import NamedNode
from kumulus.model.pools import INSTANCE_TYPE_LABEL, REGION_LABEL, Pool
from kumulus.nodes.catalog.prices import FleetCost, Price, Prices, fleet_cost

PRICES = Prices(
    {
        ("r", "big", False): Price(10.0),
        ("r", "big", True): Price(4.0),
        ("r", "small", False): Price(1.0),
    }
)
SPOT = {"cloud.google.com/gke-spot": "true"}


def pool(group: str, kind: str, replicas: int, *, zone: str = "r-a", labels: dict[str, str] | None = None) -> Pool:
    its = {INSTANCE_TYPE_LABEL: kind, REGION_LABEL: "r", **(labels or {})}
    return Pool(f"{group}-{zone}", group, zone, "r", replicas, its)


def test_a_fleet_is_summed_by_group_and_zone_and_spot_set_against_on_demand() -> None:
    found = fleet_cost([pool("a", "big", 3), pool("b", "big", 2, zone="r-b", labels=SPOT)], PRICES)
    assert (found.total.hourly, found.total.spot) == (38.0, 8.0)
    assert (found.total.all_on_demand, found.total.all_spot) == (50.0, 20.0)
    assert {name: each.hourly for name, each in found.by_group.items()} == {"a": 30.0, "b": 8.0}
    assert {name: each.hourly for name, each in found.by_zone.items()} == {"r-a": 30.0, "r-b": 8.0}
    assert found.total.monthly == 38 * 730
    assert found.outputs() == {"costPerHour": 38.0}


def test_nodes_without_a_price_are_counted_and_named_and_cost_nothing() -> None:
    found = fleet_cost([pool("a", "big", 1), pool("b", "odd", 4)], PRICES)
    assert (found.total.hourly, found.total.unpriced, dict(found.without)) == (10.0, 4, {("odd", "r"): 4})
    assert found.outputs() == {"costPerHour": 10.0, "nodesWithoutPrice": 4}
    assert fleet_cost([pool("b", "odd", 4)], PRICES).outputs() == {}


def test_a_machine_without_a_spot_price_leaves_that_sum_unknown() -> None:
    assert fleet_cost([pool("a", "small", 2)], PRICES).total.all_spot is None


def test_a_named_node_has_the_price_of_its_own_labels() -> None:
    named = Pool("a", "a", "r-a", "r", 2, {INSTANCE_TYPE_LABEL: "big", REGION_LABEL: "r"})
    nodes = (NamedNode("n0", SPOT), NamedNode("n1"))
    found = fleet_cost([Pool(**{**vars(named), "nodes": nodes})], PRICES)
    assert (found.total.nodes, found.total.hourly, found.total.spot) == (2, 14.0, 4.0)


def test_a_pools_own_labels_say_nothing_where_each_node_has_its_own() -> None:
    own = {INSTANCE_TYPE_LABEL: "big", REGION_LABEL: "r"}
    named = replace(pool("a", "", 1), labels={}, nodes=(NamedNode("n0", own),))
    found = fleet_cost([named, pool("empty", "small", 0)], PRICES)
    assert (found.total.hourly, found.total.all_spot, dict(found.without)) == (10.0, 4.0, {})
    assert list(found.by_group) == ["a", "empty"]


def test_no_nodes_cost_nothing() -> None:
    assert fleet_cost([], PRICES).outputs() == FleetCost().outputs() == {}


STACK = """config:
  kumulus:cluster:
    nodeGroups:
      - {name: web, instanceType: e2-standard-16, placement: [{availabilityZone: us-central1-a, replicas: 2}]}
      - {name: odd, instanceType: e2-standard-16, placement: [{availabilityZone: use1, replicas: 3}]}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PWD", raising=False)
    (tmp_path / "Pulumi.yaml").write_text("name: fleet\nruntime: python\n")
    (tmp_path / "Pulumi.dev.yaml").write_text(STACK)
    return tmp_path


TAKES = "a group's instanceType, as e2-standard-4, and its availabilityZone, as us-central1-a"


@pytest.mark.usefixtures("folder")
def test_the_command_says_what_a_stack_costs_and_what_has_no_price(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["price"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("dev: 5 nodes, $1.07/h, $782.69 a month, without 3 whose price is not known\n")
    assert "without a known price: 3 nodes of e2-standard-16 in no known region\n" in said
    assert f"  A price takes {TAKES}; your own:" in said
    assert main(["price", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["hourly"], found["nodesWithoutPrice"], found["byGroup"]["odd"]["hourly"]) == (1.0722, 3, None)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("command", ["topology", "plan"])
def test_the_price_is_beside_what_else_is_said_of_a_stack(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    main([command, "-s", "dev"])
    said = capsys.readouterr().out
    assert "$1.07/h, $782.69 a month, without 3 whose price is not known" in said
    assert TAKES not in said


def test_where_no_node_has_a_price_a_topology_says_what_it_takes(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As of an imported trace, whose machines have no type."""
    (folder / "Pulumi.dev.yaml").write_text(
        "config: {kumulus:cluster: {nodeGroups: [{name: p100-8g, placement: [{availabilityZone: trace, replicas: 5}], "
        "nodeTemplate: {capacity: {cpu: 64, memory: 1Gi, pods: 10}}}]}}\n"
    )
    main(["topology", "-s", "dev"])
    assert capsys.readouterr().out.endswith(f"\ncost: price not known; it takes {TAKES}\n")
