"""What is declared no more is reported at the diff of its cluster, in previews, and only when something is missing."""

import socket
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from kumulus.model.contents import FAULTS, POOLS, contents, is_contents, removed, renamed
from kumulus.provider.connections import Connections
from kumulus.provider.resources.previews import _sibling, report_removals
from tests.support.said import Said
from tests.unit.provider.stored import written

CLUSTER = "urn:pulumi:dev::kumulus::kumulus:index:EmulatedCluster$kumulus:index:KwokCluster$kumulus:index:Cluster::dev"


def test_names_that_are_missing_are_those_that_were_removed() -> None:
    before = contents(["b", "a"], ["x-z", "y-z"], preview=False)
    after = contents(["b"], [], preview=True)
    assert before == {"faults": "a,b", "pools": "x-z,y-z"}
    assert (removed(before, after, FAULTS), removed(before, after, POOLS)) == (["a"], ["x-z", "y-z"])
    assert removed(after, before, FAULTS) == []
    # A state of before there were any, and one that was edited.
    assert removed(None, after, FAULTS) == removed({"faults": 5}, after, FAULTS) == []
    assert not is_contents({"faults": "", "nodes": ""})


@pytest.mark.parametrize(
    ("zones", "come", "group"),
    [
        (["use1"], ["h100-use1"], "h100"),
        (["use1", "use2"], ["h100-use1", "h100-use2"], "h100"),
        (["a-b", "b"], ["x-a-a-b", "x-a-b"], "x-a"),
        (["use1", "use2"], ["h100-use1"], None),  # it came with fewer zones
        (["use1"], ["h100-use1", "l40s-use1"], None),  # two came: which would it be?
        (["use1"], ["h100-use2"], None),
        (["use1"], [], None),
    ],
)
def test_a_group_that_comes_in_the_place_of_another_may_be_the_same_renamed(
    zones: list[str], come: list[str], group: str | None
) -> None:
    assert renamed(zones, come) == group


def test_a_removed_resource_is_found_beside_its_cluster() -> None:
    assert _sibling(CLUSTER, "kumulus:index:Fault::f") == (
        "urn:pulumi:dev::kumulus::kumulus:index:EmulatedCluster$kumulus:index:Fault::f"
    )


@pytest.mark.parametrize(
    ("after", "kubeconfig", "warned"),
    [
        (contents(["f"], [], preview=True), "kubeconfig.yaml", False),  # nothing goes
        (contents([], [], preview=False), "kubeconfig.yaml", False),  # it is going: the delete tells
        (contents([], [], preview=True), "nowhere", False),  # its cluster is gone as well
        (contents([], [], preview=True), "kubeconfig.yaml", True),  # the cluster is down
    ],
)
async def test_a_cluster_is_asked_only_when_there_is_something_to_tell(
    after: dict[str, Any], kubeconfig: str, warned: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kumulus.provider.resources.previews.LOOK_PATIENCE", 0.2)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        written(tmp_path, f"http://127.0.0.1:{closed.getsockname()[1]}")
    said, connections = defaultdict[str, Said](Said), Connections()
    inputs = {"contents": contents(["f"], [], preview=False)}
    outputs = {"kubeconfig": str(tmp_path / kubeconfig), "identity": "x"}
    await report_removals(connections, said.__getitem__, CLUSTER, inputs, outputs, {"contents": after}, lambda _: None)
    await connections.close()
    assert list(said) == ([CLUSTER] if warned else [])
    assert not warned or "what the removal of f means could not be looked up" in said[CLUSTER].messages[0]
