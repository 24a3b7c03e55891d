"""A cluster is not deleted while a run is or may be under way on it; one that a run has left can be."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kumulus.extras.journal.book import Journal
from kumulus.extras.journal.changes import JournaledChanges
from kumulus.host import lifetime
from kumulus.nodes.errors import ProviderError
from kumulus.provider.connections import Connections
from kumulus.provider.resources.base import Resource
from kumulus.provider.resources.cluster import ClusterResource
from kumulus.provider.resources.state_only import DestroyCheck
from kumulus.provider.settings import PluginSettings
from kumulus.runtimes import registry
from tests.unit.provider.stored import operation

UID = "5d4f"
ELSEWHERE = "another-machine another-boot 1 2 3"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def delete(resource: Resource, home: Path, runtime: str, **identity: str) -> None:
    directory = home / "clusters" / "dev"
    outputs: dict[str, Any] = {"name": "dev", "runtime": runtime, "home": str(home), "directory": str(directory)}
    outputs |= {"owner": "me", "kubeconfig": str(directory / "kubeconfig.yaml"), **identity}
    asyncio.run(resource.delete(operation(), "dev", outputs))


def begun(process: str, command: str = "experiment") -> Journal:
    journal = Journal(JournaledChanges("one", "training", UID, process, command=command))
    journal.add(namespaces=["made"])
    return journal


@pytest.mark.parametrize("command", ["experiment", "fit", "snapshot restore"])
@pytest.mark.parametrize("runtime", ["kwok", "kind", "existing"])
@pytest.mark.parametrize("said", ["runs on this cluster", "may run on this cluster"])
def test_it_is_refused_while_a_run_is_or_may_be_under_way(
    tmp_path: Path, said: str, runtime: str, command: str
) -> None:
    runtimes = {each.name: each.make() for each in registry.every()}
    begun(ELSEWHERE if said.startswith("may") else lifetime.own(), command)
    match = rf"^{command} training {said} \(run one.*; nothing was removed$"
    with pytest.raises(ProviderError, match=match):
        delete(DestroyCheck(runtimes, PluginSettings()), tmp_path, runtime, clusterIdentity=UID)
    with pytest.raises(ProviderError, match=match):
        delete(ClusterResource(runtimes, Connections()), tmp_path, runtime, identity=UID)


def test_what_a_run_that_is_gone_has_left_goes_with_the_cluster(tmp_path: Path) -> None:
    runtimes = {each.name: each.make() for each in registry.every()}
    journal = begun("")
    delete(DestroyCheck(runtimes, PluginSettings()), tmp_path, "kwok", clusterIdentity=UID)
    delete(DestroyCheck(runtimes, PluginSettings()), tmp_path, "kwok")
    delete(ClusterResource(runtimes, Connections()), tmp_path, "kwok", identity=UID)
    assert not journal.file.exists()
