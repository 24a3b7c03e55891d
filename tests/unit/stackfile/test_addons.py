"""Add-ons: charts from three kinds of places, values as mapping or text, and their order."""

from typing import Any

import pytest

from kumulus.extras.watch.section import Measured
from kumulus.model.errors import SpecError
from kumulus.stackfile.addons import chart_kind, chart_name, in_order
from kumulus.stackfile.model import ClusterSpec
from tests.support.said import problems_of

REPOSITORY = "https://prometheus-community.github.io/helm-charts"
ADDON: dict[str, Any] = {
    "name": "prometheus",
    "repoName": "prometheus-community",
    "repoURL": REPOSITORY,
    "namespace": "monitoring",
    "chart": "prometheus-community/kube-prometheus-stack",
    "version": "75.16.1",
}


def read(*addons: dict[str, Any]) -> ClusterSpec:
    return ClusterSpec.checked({"clusterAddons": list(addons)})


def told(*addons: dict[str, Any]) -> dict[str, str]:
    return problems_of(read, *addons)


def named(name: str, *depends_on: str) -> dict[str, Any]:
    return {"name": name, "chart": "oci://example.com/c", "dependsOn": list(depends_on)}


@pytest.mark.parametrize(
    ("chart", "url", "kind", "name"),
    [
        ("prometheus-community/kube-prometheus-stack", REPOSITORY, "repository", "kube-prometheus-stack"),
        ("kube-prometheus-stack", REPOSITORY, "repository", "kube-prometheus-stack"),
        ("oci://registry.example.com/charts/kueue", None, "oci", "oci://registry.example.com/charts/kueue"),
        ("./charts/mine", None, "path", "./charts/mine"),
        ("../mine", None, "path", "../mine"),
        ("/srv/mine", None, "path", "/srv/mine"),
    ],
)
def test_charts_come_from_repositories_registries_and_paths(chart: str, url: str | None, kind: str, name: str) -> None:
    read({"name": "a", "chart": chart, "repoURL": url})
    assert (chart_kind(chart), chart_name(chart)) == (kind, name)


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({"a": {"b": True}}, {"a": {"b": True}}),
        ("a:\n  b: yes\n", {"a": {"b": True}}),
        # Keys are texts, as Helm has them.
        ("tcp: {8080: web, true: [{1.5: x}]}", {"tcp": {"8080": "web", "true": [{"1.5": "x"}]}}),
        ({"tcp": {8080: "web", True: [{1.5: "x"}]}}, {"tcp": {"8080": "web", "true": [{"1.5": "x"}]}}),
        ("# nothing\n", {}),
    ],
)
def test_values_are_a_mapping_or_a_text_of_one(values: object, found: object) -> None:
    assert read({**ADDON, "valuesObject": values}).clusterAddons[0].valuesObject == found


@pytest.mark.parametrize(
    ("change", "path", "words"),
    [
        ({"chart": None}, "chart", "is nothing"),
        ({"chart": " "}, "chart", "blanks"),
        ({"chart": "other/stack"}, "chart", 'write "prometheus-community/stack"'),
        ({"chart": "a/b/c"}, "chart", "./a/b/c"),
        ({"repoURL": None}, "repoURL", "is missing"),
        ({"chart": "oci://example.com/c"}, "repoURL", "leave it out"),
        ({"chart": "./c"}, "repoURL", "leave it out"),
        ({"repoURL": "oci://e.com/c", "repositoryOpts": {}}, "repositoryOpts", "helm registry login e.com"),
        ({"repoURL": None, "chart": "./c", "repositoryOpts": {}}, "repositoryOpts", "leave it out"),
        ({"name": "Prometheus"}, "name", "write prometheus"),
        ({"name": "p" * 54}, "name", "at most 53"),
        ({"namespace": "a.b"}, "namespace", "write a-b"),
        ({"version": 1.10}, "version", 'in quotes: "1.1", or as the file has it'),
        ({"valuesObject": "a: [1"}, "valuesObject", "line 1"),
        ({"valuesObject": "a"}, "valuesObject", "not of a mapping"),
        ({"valuesObject": ["a"]}, "valuesObject", "is a list"),
        ({"valuesObject": "a: &x [*x]"}, "valuesObject", "*x stands for what it is in"),
        ({"valuesObject": "a: .inf"}, "valuesObject", "does not exist in JSON"),
        ({"valuesObject": "a: 1\na: 2"}, "valuesObject", "there twice"),
        ({"timeout": 0}, "timeout", "from 1"),
        ({"atomic": "true"}, "atomic", "not true or false"),
        ({"dependsOn": "cert-manager"}, "dependsOn", "write dependsOn: [cert-manager]"),
        ({"valuesobject": {}}, "valuesobject", "write valuesObject"),
        ({"valueFiles": []}, "valueFiles", "not a known key"),
    ],
)
def test_mistakes_are_told(change: dict[str, Any], path: str, words: str) -> None:
    problems = told({**ADDON, **change})
    assert list(problems) == [f"clusterAddons[0].{path}"]
    assert words in next(iter(problems.values()))


def test_names_are_unique() -> None:
    assert "already clusterAddons[0].name" in told(ADDON, ADDON)["clusterAddons[1].name"]


def test_dependencies_in_a_circle_are_told_as_the_circle() -> None:
    [problem] = told(named("a", "b"), named("b", "c"), named("c", "a")).values()
    assert any(circle in problem for circle in ("a → b → c → a", "b → c → a → b", "c → a → b → c"))
    assert "circle: a → a" in told(named("a", "a"))["clusterAddons[0].dependsOn"]


def test_add_ons_come_after_those_they_depend_on() -> None:
    spec = read(named("c", "a", "b"), named("b", "a"), named("a"), named("d"))
    names = [addon.name for addon in in_order(spec.clusterAddons)]
    assert names.index("a") < names.index("b") < names.index("c")
    assert sorted(names) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("spoilt", [{"chart": "\x1b[31m/x"}, {"chart": "a\x07"}, {"chart": "b/c", "repoName": "\x1b"}])
def test_control_characters_of_a_chart_never_reach_the_terminal(spoilt: dict[str, str]) -> None:
    with pytest.raises(SpecError) as raised:
        read({"name": "a", **spoilt})
    assert all(line.isprintable() for line in str(raised.value).splitlines())


DEFAULTS = {"retention": "24h", "retentionSize": "2Gi", "memory": "1Gi", "scrapeInterval": "15s"}
DEFAULTS |= {"nodeScrapeInterval": "1m"}
ALL = {"retention": "72h", "retentionSize": "10Gi", "memory": "4Gi", "scrapeInterval": "5s", "prometheusPort": 9090}
ALL |= {"nodeScrapeInterval": "90s", "nodeLabels": ["example.com/team"]}


@pytest.mark.parametrize(
    ("section", "options"),
    [(None, None), ({"retention": None}, {**DEFAULTS, "nodeLabels": []}), (ALL, ALL)],
    ids=["nothing", "defaults", "all"],
)
def test_what_is_measured_has_every_default_and_its_options_say_all(section: Any, options: Any) -> None:
    found = Measured.of(ClusterSpec.checked({"observability": section}))
    assert (found and found.options()) == options


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
    problems = problems_of(ClusterSpec.checked, {"observability": section})
    assert words in problems.get(f"observability{path}", ""), problems


def test_prometheus_and_the_api_server_have_ports_of_their_own() -> None:
    cluster = {"kwok": {"apiServerPort": 9090}, "observability": {"prometheusPort": 9090}}
    said = {"observability.prometheusPort": "is also kwok.apiServerPort; write another port"}
    assert problems_of(ClusterSpec.checked, cluster) == said


def fleet(nodes: int, **section: Any) -> dict[str, Any]:
    capacity = {"cpu": "1", "memory": "1Gi", "pods": "1"}
    group = {"name": "a", "placement": [{"availabilityZone": "z", "replicas": nodes}]}
    return {"nodeGroups": [{**group, "nodeTemplate": {"capacity": capacity}}], "observability": section}


def test_a_fleet_too_large_for_its_metrics_memory_is_told_with_what_is_enough() -> None:
    said = {"observability.memory": "is 1Gi, enough for 2,621 nodes, and these are 10,000; write memory: 4Gi"}
    assert problems_of(ClusterSpec.checked, fleet(10_000)) == said
    for allowed in (fleet(2_550), fleet(10_000, memory="4Gi")):
        assert Measured.of(ClusterSpec.checked(allowed)) is not None
