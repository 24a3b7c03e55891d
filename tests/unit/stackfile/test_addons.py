"""Add-ons: charts from three kinds of places, values as mapping or text, and their order."""

from __future__ import annotations

from typing import Any

import pytest

from kumulus.model.errors import SpecError
from kumulus.stackfile.addons import in_order
from kumulus.stackfile.model import ClusterSpec

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
    try:
        read(*addons)
    except SpecError as error:
        return {problem.path: f"{problem.message}; {problem.remedy}" for problem in error.problems}
    return {}


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
    addon = read({"name": "a", "chart": chart, "repoURL": url}).clusterAddons[0]
    assert (addon.chart_kind, addon.chart_name) == (kind, name)


def test_defaults_are_those_of_kemu() -> None:
    addon = read(ADDON).clusterAddons[0]
    assert (addon.createNamespace, addon.timeout, addon.atomic, addon.skipAwait) == (True, 300, False, False)
    assert addon.values() == {}
    assert addon.version == "75.16.1"


@pytest.mark.parametrize("values", [{"a": {"b": True}}, "a:\n  b: yes\n"])
def test_values_are_a_mapping_or_a_text_of_one(values: object) -> None:
    assert read({**ADDON, "valuesObject": values}).clusterAddons[0].values() == {"a": {"b": True}}


@pytest.mark.parametrize("values", ["tcp: {8080: web, true: [{1.5: x}]}", {"tcp": {8080: "web", True: [{1.5: "x"}]}}])
def test_keys_of_values_are_texts_as_helm_has_them(values: object) -> None:
    found = read({**ADDON, "valuesObject": values}).clusterAddons[0].values()
    assert found == {"tcp": {"8080": "web", "true": [{"1.5": "x"}]}}


def test_an_empty_text_of_values_is_no_values() -> None:
    assert read({**ADDON, "valuesObject": "# nothing\n"}).clusterAddons[0].values() == {}


@pytest.mark.parametrize(
    ("change", "path", "words"),
    [
        ({"chart": None}, "chart", "is nothing"),
        ({"chart": " "}, "chart", "blanks"),
        ({"chart": "other/stack"}, "chart", 'write "prometheus-community/stack"'),
        ({"chart": "a/b/c"}, "chart", "./a/b/c"),
        ({"repoURL": None}, "repoURL", "is missing"),
        ({"repoURL": "prometheus.io"}, "repoURL", "https://"),
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
        ({"valuesObject": "a: .inf"}, "valuesObject", "JSON has not"),
        ({"valuesObject": "a: 1\na: 2"}, "valuesObject", "there twice"),
        ({"timeout": 0}, "timeout", "from 1"),
        ({"atomic": "true"}, "atomic", "not true or false"),
        ({"dependsOn": "cert-manager"}, "dependsOn", "write dependsOn: [cert-manager]"),
        ({"dependsOn": ["cert-manager"]}, "dependsOn[0]", "not an add-on"),
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
    problems = told(named("a", "b"), named("b", "c"), named("c", "a"))
    assert len(problems) == 1
    assert any(
        circle in next(iter(problems.values())) for circle in ("a → b → c → a", "b → c → a → b", "c → a → b → c")
    )
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
