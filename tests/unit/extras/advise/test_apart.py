"""Pods that may not share a node, whichever workload they are of."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kumulus.extras.advise.apart import HOST, Pods
from kumulus.extras.advise.demand import Demand, made

CONTAINERS = [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]


def away_from(*, key: str = HOST, **labels: str) -> dict[str, Any]:
    """A rule to have no node with pods of these labels."""
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels}}


def pods(name: str, *terms: dict[str, Any], count: int = 3, namespace: str = "default", **labels: str) -> Pods:
    rules = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}} if terms else {}
    spec = {"containers": CONTAINERS, "affinity": rules}
    return Pods(name, spec, {"app": name, **labels}, count, namespace)


def groups(found: Demand) -> list[tuple[str, int, bool]]:
    return [(each.name, each.count, bool(each.apart)) for each in found.shapes]


def test_workloads_that_keep_away_from_each_other_are_one_group() -> None:
    term = away_from(tier="db")
    found = made([pods("a", term, tier="db"), pods("b", term, tier="db"), pods("c")])
    # Of what they ask for they are alike, so that they are one shape.
    assert groups(found) == [("a", 6, True), ("c", 3, False)]
    assert found.unmodelled == ()


def test_a_stateful_sets_live_pods_are_one_group_though_each_has_a_label_of_its_own() -> None:
    term = away_from(app="a")
    live = [
        pods("a", term, count=1, **{"app": "a", "statefulset.kubernetes.io/pod-name": f"a-{at}"}) for at in range(3)
    ]
    assert groups(made(live)) == [("a", 3, True)]


def test_pods_that_ask_for_different_amounts_are_different_shapes_of_one_group() -> None:
    term = away_from(tier="db")
    large = pods("b", term, tier="db")
    large = replace(large, spec={**large.spec, "containers": [*CONTAINERS, *CONTAINERS]})
    one, two = made([pods("a", term, tier="db"), large]).shapes
    assert one.apart == two.apart != ""


def test_the_same_labels_in_another_namespace_are_other_pods() -> None:
    term = away_from(tier="db")
    found = made([pods("a", term, tier="db"), pods("b", term, tier="db", namespace="other")])
    one, two = found.shapes
    assert one.apart != two.apart
    assert found.unmodelled == ()


def test_a_rule_that_no_group_expresses_is_left_to_the_scheduler() -> None:
    own, of_tier = away_from(app="a"), away_from(tier="db")
    for some in (
        # From another workload, which does not keep away itself; from it and from itself; from only some of a group.
        [pods("a", away_from(app="b")), pods("b")],
        [pods("a", of_tier, tier="db"), pods("b", tier="db")],
        [pods("a", own, away_from(app="b")), pods("b", away_from(app="b")), pods("c", away_from(app="c"))],
        [
            pods("a", of_tier, tier="db"),
            pods("b", of_tier, tier="db"),
            pods("c", away_from(app="a"), away_from(app="c")),
        ],
        # By zone; and where it is not known whom it selects.
        [pods("a", away_from(key="topology.kubernetes.io/zone", app="a"))],
        [pods("a", {**own, "namespaceSelector": {"matchLabels": {"x": "y"}}})],
    ):
        assert made(some).unmodelled == ("podAntiAffinity",), some


def test_a_label_that_a_controller_adds_tells_workloads_apart() -> None:
    term = {**away_from(tier="db"), "matchLabelKeys": ["pod-template-hash"]}
    found = made([pods("a", term, tier="db"), pods("b", term, tier="db", other="x")])
    assert groups(found) == [("a", 3, True), ("b", 3, True)]
    assert found.unmodelled == ()
