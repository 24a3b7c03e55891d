"""The dashboards and rules as data: whether Prometheus and Grafana can read them."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus import toolchain
from kumulus.extras.watch import dashboards
from kumulus.extras.watch.dashboards import DASHBOARDS
from kumulus.extras.watch.dashboards.grafana import document, text
from kumulus.extras.watch.dashboards.model import WIDTH, Dashboard, Panel, PanelRow, Query

TESTS = Path(__file__).resolve().parent / "rules"
RULES = dashboards.HERE / "rules" / "fleet.yaml"
by_uid = pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda dashboard: dashboard.uid)


def promtool(*arguments: str) -> str:
    """Run promtool, which has to succeed; it is no tool of every machine (./kumulus tools --with observability)."""
    try:
        program = toolchain.find("promtool")
    except toolchain.ToolMissing as error:
        pytest.skip(str(error))
    answer = subprocess.run([program, *arguments], capture_output=True, text=True, check=False, timeout=120)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


def recorded() -> set[str]:
    groups = yaml.safe_load(dashboards.rules())["groups"]
    return {rule["record"] for group in groups for rule in group["rules"] if "record" in rule}


def test_a_description_is_written_as_grafana_reads_it() -> None:
    panels = (Panel("Nodes", (Query("count(kube_node_info)", "all"),), kind="stat"),)
    small = Dashboard("small", "Small", "One panel.", (PanelRow("Fleet", panels),))
    golden = Path(__file__).with_name("small.json")
    assert text(small) == golden.read_text(), f"{golden.name} is what Grafana was tried with: change it with care"


def test_the_files_of_all_dashboards_are_written_where_they_are_asked_for(tmp_path: Path) -> None:
    command = (sys.executable, "-m", "kumulus.extras.watch.dashboards", str(tmp_path / "made"))
    subprocess.run(command, check=True, timeout=120)
    written = {each.name: each.read_text() for each in (tmp_path / "made").iterdir()}
    assert written == dashboards.provisioned()
    assert written.keys() == {f"{dashboard.uid}.json" for dashboard in DASHBOARDS}


@by_uid
def test_panels_lie_side_by_side_and_none_on_another(dashboard: Dashboard) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in document(dashboard)["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= WIDTH
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells


@by_uid
def test_every_panel_has_queries_whose_variables_and_recorded_series_exist(dashboard: Dashboard) -> None:
    panels: list[dict[str, Any]] = [panel for panel in document(dashboard)["panels"] if panel["type"] != "row"]
    assert len({panel["id"] for panel in panels}) == len(panels) == len(list(dashboard.panels()))
    known = {variable.name for variable in dashboard.variables}
    for panel in panels:
        assert panel["targets"], panel["title"]
        for target in panel["targets"]:
            assert set(re.findall(r"\$(\w+)", target["expr"])) <= known, panel["title"]
            assert set(re.findall(r"kumulus:\w+:\w+", target["expr"])) <= recorded(), panel["title"]


def test_the_binding_rate_is_the_one_that_scheduler_benchmarks_use() -> None:
    expected = 'sum(rate(apiserver_request_total{resource="pods",subresource="binding",verb="POST"}[1m]))'
    scheduler = next(dashboard for dashboard in DASHBOARDS if dashboard.uid == "kumulus-scheduler")
    assert expected in [query.expr for panel in scheduler.panels() for query in panel.queries]


def test_the_rules_are_well_formed() -> None:
    assert "SUCCESS: 26 rules found" in promtool("check", "rules", str(RULES))


def test_prices_are_series_that_the_rules_of_costs_stand_on(tmp_path: Path) -> None:
    price = {"instanceType": "m5.large", "region": "us-east-1", "capacityType": "spot", "hourly": 0.07}
    (tmp_path / "rules.yaml").write_text(dashboards.rules([price, {**price, "region": "", "hourly": 2}]))
    assert "SUCCESS: 28 rules found" in promtool("check", "rules", str(tmp_path / "rules.yaml"))
    [*others, group] = yaml.safe_load((tmp_path / "rules.yaml").read_text())["groups"]
    labels = {"instance_type": "m5.large", "region": "us-east-1", "capacity_type": "spot"}
    assert group["rules"][0] == {"record": "kumulus:price:hourly", "expr": "vector(0.07)", "labels": labels}
    assert yaml.safe_load(dashboards.rules())["groups"] == others


def test_the_rules_do_what_they_are_for() -> None:
    assert "SUCCESS" in promtool("test", "rules", str(TESTS / "fleet.yaml"))


def test_every_rule_is_tried() -> None:
    tried = (TESTS / "fleet.yaml").read_text()
    groups = yaml.safe_load(dashboards.rules())["groups"]
    names = [rule.get("record") or rule["alert"] for group in groups for rule in group["rules"]]
    # These two are parts of others.
    assert [name for name in names if name not in tried] == [
        "kumulus:node:info",
        "kumulus:capacity:sum",
        "kumulus:allocatable:sum",
        "kumulus:node:faulted",
    ]


@by_uid
def test_grafana_reads_a_data_source_and_its_variables(dashboard: Dashboard) -> None:
    found = json.loads(text(dashboard))
    names = [variable["name"] for variable in found["templating"]["list"]]
    assert names == ["datasource", *(variable.name for variable in dashboard.variables)]
    assert {panel["datasource"]["uid"] for panel in found["panels"] if panel["type"] != "row"} == {"${datasource}"}
