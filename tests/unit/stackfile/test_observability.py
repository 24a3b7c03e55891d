"""`observability` in a stack file: what is taken, and what is said of every mistake."""

from __future__ import annotations

from typing import Any

import pytest

from kumulus.model.errors import SpecError
from kumulus.model.observability import Observability
from kumulus.stackfile.model import ClusterSpec


def told(section: object) -> dict[str, str]:
    """What is said of a section's mistakes: path to the rest of the line."""
    with pytest.raises(SpecError) as raised:
        ClusterSpec.checked({"observability": section})
    return {problem.path: f"{problem.message}; {problem.remedy}" for problem in raised.value.problems}


def test_nothing_is_measured_unless_asked_for() -> None:
    assert ClusterSpec.checked({}).observability is None
    assert ClusterSpec.checked({"observability": None}).observability is None


def test_an_empty_section_has_every_default_and_the_options_say_all_of_them() -> None:
    found = ClusterSpec.checked({"observability": {"retention": None}}).observability
    assert found == Observability()
    assert found is not None
    assert found.options() == {
        "retention": "24h",
        "retentionSize": "2Gi",
        "memory": "1Gi",
        "scrapeInterval": "15s",
        "nodeScrapeInterval": "1m",
        "nodeLabels": [],
    }


def test_what_is_given_is_taken() -> None:
    section: dict[str, Any] = {
        "prometheusPort": 9090,
        "retention": "72h",
        "retentionSize": "10Gi",
        "memory": "4Gi",
        "scrapeInterval": "5s",
        "nodeScrapeInterval": "90s",
        "nodeLabels": ["example.com/team"],
    }
    found = ClusterSpec.checked({"observability": section}).observability
    assert found is not None
    assert found.options() == section


@pytest.mark.parametrize(
    ("section", "path", "words"),
    [
        (True, "", "is true; write {} to measure with all defaults"),
        ([], "", "is a list; write {}"),
        ({"retentoin": "1h"}, ".retentoin", "is not a known key; write retention"),
        ({"grafana": {}}, ".grafana", "is not a known key; leave it out or write one of prometheusPort, retention"),
        ({"prometheusPort": 80}, ".prometheusPort", "is 80, less than 1024; write a port from 1024 to 65,535"),
        ({"prometheusPort": "9090"}, ".prometheusPort", 'is "9090"; write a port'),
        ({"retention": "15 d"}, ".retention", "is not a duration; write a duration such as 90s"),
        ({"retention": "30m"}, ".retention", "not between 2h and 8760h: Prometheus keeps two hours in memory"),
        ({"retention": 0}, ".retention", "is 0, not between 2h and 8760h"),
        ({"retentionSize": "2GB"}, ".retentionSize", "has a B at its end"),
        ({"retentionSize": "1Mi"}, ".retentionSize", "is 1 MiB: Prometheus' write-ahead log alone may be larger"),
        ({"memory": "-1Gi"}, ".memory", "is negative"),
        ({"memory": "100M"}, ".memory", "is 95.4 MiB: less is not enough"),
        ({"scrapeInterval": "1m"}, ".scrapeInterval", "the dashboards' rates look at one minute; write 1s to 30s"),
        ({"scrapeInterval": 15}, ".scrapeInterval", "has no unit; write 15s"),
        ({"nodeScrapeInterval": "10m"}, ".nodeScrapeInterval", "a series is taken for gone after five"),
        ({"nodeLabels": "team"}, ".nodeLabels", 'is "team"; write a list of label keys'),
        ({"nodeLabels": ["team", "a b"]}, ".nodeLabels[1]", '"a b" is not a qualified name'),
        ({"nodeLabels": [1]}, ".nodeLabels[0]", "is 1; write a label key"),
    ],
)
def test_a_mistake_is_told_with_its_place_and_remedy(section: object, path: str, words: str) -> None:
    assert words in told(section).get(f"observability{path}", ""), told(section)


def test_every_mistake_is_told_at_once() -> None:
    found = told({"retention": "never", "memory": "lots", "port": 1})
    assert set(found) == {"observability.retention", "observability.memory", "observability.port"}


def test_prometheus_and_the_api_server_have_ports_of_their_own() -> None:
    with pytest.raises(SpecError) as raised:
        ClusterSpec.checked({"kwok": {"apiServerPort": 9090}, "observability": {"prometheusPort": 9090}})
    [found] = raised.value.problems
    assert str(found) == "observability.prometheusPort: is also kwok.apiServerPort; write another port"


def fleet(nodes: int, **section: Any) -> dict[str, Any]:
    capacity = {"cpu": "1", "memory": "1Gi", "pods": "1"}
    group = {"name": "a", "placement": [{"availabilityZone": "z", "replicas": nodes}]}
    return {"nodeGroups": [{**group, "nodeTemplate": {"capacity": capacity}}], "observability": section}


def test_a_fleet_too_large_for_its_metrics_memory_is_told_with_what_is_enough() -> None:
    with pytest.raises(SpecError) as raised:
        ClusterSpec.checked(fleet(10_000))
    [found] = raised.value.problems
    assert str(found) == (
        "observability.memory: is 1Gi, enough for 2,621 nodes, and these are 10,000; write memory: 4Gi"
    )
    for allowed in (fleet(2_550), fleet(10_000, memory="4Gi")):
        assert ClusterSpec.checked(allowed).observability is not None
