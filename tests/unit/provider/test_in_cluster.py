"""What the resources in a cluster have in common: their place is checked, and drift is a difference."""

from __future__ import annotations

from typing import Any

import pytest

from kumulus.provider.connections import Connections
from kumulus.provider.resources.base import Difference
from kumulus.provider.resources.fault import Fault
from kumulus.provider.resources.hyper_nodes import HyperNodes
from kumulus.provider.resources.in_cluster import InCluster
from kumulus.provider.resources.namespace import Namespace
from kumulus.provider.resources.node_pool import NodePool

PLACE = {"kubeconfig": "/k", "clusterIdentity": "uid", "clusterName": "dev"}
RESOURCES: list[tuple[type[InCluster], dict[str, Any]]] = [
    (NodePool, {"name": "a-z", "replicas": 1}),
    (HyperNodes, {"pools": {}}),
    (Namespace, {"name": "n", "stack": "organization/p/dev"}),
    (Fault, {"name": "f", "nodes": {"a-z": "0"}, "node": {"kubelet": "silent"}}),
]


@pytest.mark.parametrize(("resource", "own"), RESOURCES)
def test_a_place_that_is_not_text_is_refused(resource: type[InCluster], own: dict[str, Any]) -> None:
    found = resource(Connections()).check({}, {**PLACE, **own, "kubeconfig": 5.0}, "stack")
    assert [(failure.path, failure.reason) for failure in found.failures] == [("kubeconfig", "5.0 is not a string")]


@pytest.mark.parametrize(("resource", "own"), RESOURCES)
def test_inputs_that_are_missing_or_unheard_of_are_told_each(resource: type[InCluster], own: dict[str, Any]) -> None:
    found = resource(Connections()).check({}, {"colour": "red"}, "stack").failures
    assert {failure.path for failure in found} >= {"colour", *PLACE}
    assert f"{resource.__name__} has no input 'colour'; it takes kubeconfig" in found[0].reason


@pytest.mark.parametrize(("resource", "own"), RESOURCES)
def test_drift_is_a_difference_and_another_identity_another_resource(
    resource: type[InCluster], own: dict[str, Any]
) -> None:
    found = resource(Connections())
    inputs = {**PLACE, **own}
    assert not found.diff(inputs, inputs)
    assert found.diff({**inputs, "drift": {"missing": "1: a"}}, inputs) == [Difference("drift.missing", "delete")]
    assert found.diff({**inputs, "drift": "gone"}, inputs) == [Difference("drift", "delete")]
    assert [each.replaces for each in found.diff(inputs, {**inputs, "clusterIdentity": "other"})] == [True]
