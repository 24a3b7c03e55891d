"""The resource Cluster with the runtime kind: what is checked, and what a change means."""

import asyncio
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from kumulus.model.plain import UNKNOWN
from kumulus.provider.connections import Connections
from kumulus.provider.resources.base import Operation
from kumulus.provider.resources.cluster import ClusterResource
from kumulus.runtimes.kind.kind_config import API_VERSION
from kumulus.runtimes.kind.runtime import KindRuntime
from kumulus.runtimes.kwok.runtime import KwokRuntime

CONFIG: dict[str, Any] = {
    "kind": "Cluster",
    "apiVersion": API_VERSION,
    "nodes": [{"role": "control-plane"}, {"role": "worker", "image": "own:1"}],
    "networking": {"apiServerPort": 7000},
}


@pytest.fixture
def cluster() -> ClusterResource:
    return ClusterResource({"kind": KindRuntime(), "kwok": KwokRuntime()}, Connections())


def checked(cluster: ClusterResource, old: dict[str, Any] | None = None, **inputs: Any) -> dict[str, Any]:
    found = cluster.check(old or {}, {"name": "dev", "runtime": "kind", **inputs}, "/program")
    assert found.failures == []
    return found.inputs


def recorded(home: Path, inputs: dict[str, Any]) -> dict[str, Any]:
    """What the state has of a cluster that is there."""
    directory = home / "clusters" / "dev"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "kumulus.json").write_text('{"owner": "me"}')
    return {**inputs, "directory": str(directory), "status": "running", "configuration": ""}


def changes(cluster: ClusterResource, old: dict[str, Any], new: dict[str, Any]) -> dict[str, str]:
    return {each.path: each.kind for each in cluster.diff(old, new)}


def test_without_a_version_there_is_none_and_one_that_was_asked_for_stays(cluster: ClusterResource) -> None:
    assert "kubernetesVersion" not in checked(cluster)
    asked = checked(cluster, kubernetesVersion="v1.34.3")
    assert checked(cluster, asked)["kubernetesVersion"] == "v1.34.3"
    assert "kubernetesVersion" not in checked(cluster, {**asked, "runtime": "kwok"})


def test_mistakes_in_the_options_are_told_by_their_property_path(cluster: ClusterResource) -> None:
    options = {"kindConfig": {**CONFIG, "nodes": [{"rôle": "x"}]}, "adopt": "maybe"}
    found = cluster.check({}, {"name": "dev", "runtime": "kind", "options": options}, "/program")
    assert {each.path for each in found.failures} == {'options.kindConfig.nodes[0]["rôle"]', "options.adopt"}


def test_a_changed_kind_config_replaces_the_cluster_and_names_the_field(
    cluster: ClusterResource, tmp_path: Path
) -> None:
    inputs = checked(cluster, options={"kindConfig": CONFIG})
    old = recorded(tmp_path, inputs)
    assert changes(cluster, old, inputs) == {}
    nodes = [CONFIG["nodes"][0], {"role": "worker", "image": "own:2"}, {"role": "worker"}]
    changed = checked(cluster, options={"kindConfig": {**CONFIG, "nodes": nodes, "networking": {}}, "nodeImage": "n:1"})
    assert changes(cluster, old, changed) == {
        "options.kindConfig.nodes[1].image": "update-replace",
        "options.kindConfig.nodes[2]": "add-replace",
        "options.kindConfig.networking.apiServerPort": "delete-replace",
        "options.nodeImage": "add-replace",
    }
    assert cluster.delete_before_replace


@pytest.mark.parametrize(
    ("before", "now", "found"),
    [
        ({}, {"options": {"wait": "5m", "adopt": True}}, {"options.wait": "add", "options.adopt": "add"}),
        (
            {"runtime": "kwok", "kubernetesVersion": "v1.35.4"},
            {},
            {"runtime": "update-replace", "kubernetesVersion": "delete-replace"},
        ),
        ({"status": "stopped"}, {}, {"status": "update"}),
        ({"status": "degraded"}, {}, {"status": "update"}),
        ({"status": "incomplete"}, {}, {"status": "update-replace"}),
    ],
)
def test_a_change_is_made_in_place_where_it_can_be(
    cluster: ClusterResource, tmp_path: Path, before: dict[str, Any], now: dict[str, Any], found: dict[str, str]
) -> None:
    old = recorded(tmp_path, checked(cluster)) | before
    assert changes(cluster, old, checked(cluster, **now)) == found


def test_a_removal_that_was_begun_is_a_replacement_without_a_refresh(cluster: ClusterResource, tmp_path: Path) -> None:
    inputs = checked(cluster)
    old = recorded(tmp_path, inputs)
    (tmp_path / "clusters" / "dev" / "kumulus.json").write_text('{"owner": "me", "removal": "begun"}')
    assert changes(cluster, old, inputs) == {"status": "update-replace"}


async def test_a_preview_knows_the_kubeconfig_and_asks_nobody(
    cluster: ClusterResource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    operation = Operation("urn:pulumi:dev::p::kumulus:index:Cluster::x", Mock(), asyncio.Event(), preview=True)
    _, outputs = await cluster.create(operation, checked(cluster, home=str(tmp_path)))
    assert outputs["kubeconfig"] == f"{tmp_path}/clusters/dev/kubeconfig.yaml"
    assert outputs["identity"] is UNKNOWN
