"""podLifecycles and podUsage in a stack file: what is taken, and what is said of every mistake."""

from __future__ import annotations

from typing import Any

import pytest

from kumulus.kwok.lifecycle_stages import StageObject, stage_objects
from kumulus.kwok.usage import resource_usage
from kumulus.model.errors import SpecError
from kumulus.stackfile.kwok_options import cluster_options
from kumulus.stackfile.model import ClusterSpec


def told(**cluster: Any) -> dict[str, str]:
    """What is said of a cluster's mistakes: path to the rest of the line."""
    with pytest.raises(SpecError) as raised:
        ClusterSpec.checked(cluster)
    return {problem.path: f"{problem.message}; {problem.remedy}" for problem in raised.value.problems}


def life(**fields: Any) -> dict[str, Any]:
    return {"name": "a", "run": "1m", **fields}


@pytest.mark.parametrize(
    ("run", "path", "words"),
    [
        ("10 min", "run", "is not a duration; write a duration such as 90s"),
        ("5min", "run", "is not a duration"),
        (5, "run", "has no unit; write 5s"),
        ("-3s", "run", "is negative"),
        ("9000h", "run", "longer than a year"),
        ({"logNormal": {}}, "run.logNormal", "is not a distribution; write lognormal"),
        ({"weibull": {}}, "run.weibull", "is not a distribution; leave it out or write one of fixed, uniform"),
        ({"normal": {"mean": "1m", "sigma": "-3s"}}, "run.normal.sigma", "is negative"),
        ({"normal": {"mean": "1m"}}, "run.normal.sigma", "is missing; write sigma: 30s"),
        ({"lognormal": {"median": "1m", "sigma": -1}}, "run.lognormal.sigma", "is negative; write a number from 0"),
        ({"lognormal": {"mean": "1m", "sigma": 1}}, "run.lognormal.mean", "is not a known key; write median"),
        ({"uniform": {"from": "5m", "to": "1m"}}, "run.uniform", "begins after its end; write from: 1m and to: 5m"),
        ({"normal": {}, "uniform": {}}, "run", "names 2 distributions; write one of"),
        ([], "run", "is a list; write a duration such as 5m, or a distribution"),
    ],
)
def test_a_duration_that_is_none_is_told_with_its_place_and_remedy(run: object, path: str, words: str) -> None:
    found = told(podLifecycles=[life(run=run)])
    assert any(words in text for place, text in found.items() if place == f"podLifecycles[0].{path}"), found


def test_shares_are_between_0_and_1_and_come_to_1_at_most() -> None:
    failures = "podLifecycles[0].failures"
    assert "not between 0 and 1" in told(podLifecycles=[life(failures=[{"share": 1.5}])])[f"{failures}[0].share"]
    too_much = told(podLifecycles=[life(failures=[{"share": 0.7}, {"share": 0.6}])])[failures]
    assert too_much.startswith("has shares that come to 1.3, more than 1; make the shares come to 1 or less")
    endless = told(podLifecycles=[{"name": "a", "failures": [{"share": 0.1}]}])[f"{failures}[0]"]
    assert "has no time" in endless


def test_a_lifecycle_that_no_pod_can_have_is_told_with_the_one_that_has_them_all() -> None:
    everything, web = life(name="all"), life(name="web", selector={"labels": {"app": "web"}})
    found = told(podLifecycles=[everything, web])["podLifecycles[1].selector"]
    assert "podLifecycles[0] selects all of these pods, and the first in the file wins" in found
    assert "move it before podLifecycles[0]" in found
    assert "the same pods" in told(podLifecycles=[web, {**web, "name": "b"}])["podLifecycles[1].selector"]
    assert told(podLifecycles=[web, {**everything, "name": "web"}])["podLifecycles[1].name"].startswith('"web" is alr')
    assert len(ClusterSpec.checked({"podLifecycles": [web, everything]}).podLifecycles) == 2


def test_unknown_keys_and_kinds_name_the_near_ones() -> None:
    assert told(podLifecycles=[life(imagePul="4s")])["podLifecycles[0].imagePul"].endswith("write imagePull")
    kinds = told(podLifecycles=[life(selector={"ownerKinds": ["pytorchjob"]})])
    assert kinds["podLifecycles[0].selector.ownerKinds[0]"].endswith("write PyTorchJob")
    assert "says nothing of how its pods live" in told(podLifecycles=[{"name": "a"}])["podLifecycles[0]"]


def test_mistakes_of_usages_are_told_likewise() -> None:
    found = told(
        podUsage=[
            {"name": "a", "cpu": "180%"},
            {"name": "b", "cpu": {"rang": {}}, "selector": {"labels": {"b": "b"}}},
            {"name": "c", "gpu": "3"},
            {"name": "d", "memory": {"range": {"from": "2Gi", "to": "1Gi"}}},
            {"name": "e", "cpu": {"curve": [{"at": "5m", "value": "1"}, {"at": "1m", "value": "10%"}]}},
            {"name": "f"},
        ]
    )
    assert found["podUsage[0].cpu"].endswith("write 100% or less")
    assert found["podUsage[1].cpu.rang"].endswith("write range")
    assert "is not a share" in found["podUsage[2].gpu"]
    assert found["podUsage[3].memory.range"].endswith("write from: 1Gi and to: 2Gi")
    assert "mixes shares" in found["podUsage[4].cpu.curve"]
    assert "is not after the point before" in found["podUsage[4].cpu.curve[1].at"]
    assert "says nothing" in found["podUsage[5]"]


def test_a_stack_without_lives_asks_nothing_of_its_cluster() -> None:
    assert cluster_options(ClusterSpec.checked({})) == {}
    assert cluster_options(ClusterSpec.checked({"podLifecycles": [life()]})) == {"stageObjects": True}
    assert cluster_options(ClusterSpec.checked({"podUsage": [{"name": "a", "cpu": "1"}]})) == {"podUsage": "pods"}


def stages_of(*lifecycles: dict[str, Any]) -> list[StageObject]:
    spec = ClusterSpec.checked({"podLifecycles": list(lifecycles)})
    return stage_objects([each.lifecycle() for each in spec.podLifecycles])


def test_stages_that_are_not_needed_are_not_there() -> None:
    def names(**fields: Any) -> list[str]:
        return [stage.name for stage in stages_of({"name": "a", **fields})]

    assert names(imagePull="1s") == ["a.create", "a.start"]
    assert names(run="1s") == ["a.create", "a.succeed", "a.restart"]
    everything = names(imagePull="1s", init="1s", startUp="1s", run="1s", failures=[{"share": 0.5}])
    assert everything == [f"a.{step}" for step in ["create", "start", "init", "ready", "succeed", "fail-0", "restart"]]


def test_adding_a_lifecycle_at_the_end_changes_no_stage_of_the_others() -> None:
    first, second = life(selector={"labels": {"a": "b"}}), life(name="b")
    alone = stages_of(first)
    both = stages_of(first, second)
    assert both[: len(alone)] == alone


def test_the_first_usage_that_selects_a_pod_is_asked_first() -> None:
    usages = [{"name": "a", "selector": {"labels": {"app": "x"}}, "cpu": "1"}, {"name": "b", "cpu": "2"}]
    spec = ClusterSpec.checked({"podUsage": usages})
    cpu = resource_usage([each.usage() for each in spec.podUsage])["usages"][0]["usage"]["cpu"]["expression"]
    assert cpu.index('"app" in pod.metadata.labels') < cpu.index('Quantity("1.000000000")') < cpu.index('"2.000')
