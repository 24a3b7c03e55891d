"""A recorded cluster in whose place another stack has made one since then: the update neither starts nor changes it."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from kumulus.nodes.errors import ProviderError
from kumulus.provider.connections import Connections
from kumulus.provider.resources.cluster import ClusterResource
from kumulus.runtimes import registry
from kumulus.runtimes.place import owner
from tests.unit.provider.stored import operation

URN = "urn:pulumi:dev::kumulus::kumulus:index:KwokCluster$kumulus:index:Cluster::dev-control-plane"
MINE, MAKERS = (owner("dev", URN, "/work/a", identity * 32) for identity in "am")
THEIRS = owner("dev", URN, "/work/b", "b" * 32)


@pytest.mark.parametrize("preview", [True, False])
@pytest.mark.parametrize("runtime", ["kwok", "kind"])
def test_another_stacks_cluster_in_its_place_is_refused(tmp_path: Path, runtime: str, preview: bool) -> None:
    with pytest.raises(ProviderError) as raised:
        updated(tmp_path, runtime, MINE, noted=THEIRS, preview=preview)
    assert str(raised.value) == (
        f"{tmp_path}/clusters/dev now belongs to the stack dev of /work/b; set another `name:` in kumulus:cluster, or "
        "destroy that one where it was made"
    )


@pytest.mark.parametrize("noted", [MAKERS, owner("dev", URN, "/work/m", "a" * 32), "", None])
def test_an_imported_cluster_is_its_own_before_and_after_the_update_that_changes_its_owner(
    tmp_path: Path, noted: str | None
) -> None:
    assert updated(tmp_path, "kwok", MAKERS, noted=noted, preview=True)["owner"] == MAKERS


def updated(home: Path, runtime: str, recorded: str, *, noted: str | None, preview: bool) -> dict[str, Any]:
    """The outputs after an update of a cluster that is recorded as stopped."""
    directory = home / "clusters" / "dev"
    directory.mkdir(parents=True)
    if noted is not None:
        (directory / "kumulus.json").write_text(json.dumps({"owner": noted}) if noted else "half: {")
    inputs = {"name": "dev", "runtime": runtime, "options": {}, "home": str(home), "stackId": "a" * 32}
    outputs = {**inputs, "identity": "uid", "directory": str(directory), "owner": recorded, "status": "stopped"}
    resource = ClusterResource({each.name: each.make() for each in registry.every()}, Connections())
    return asyncio.run(resource.update(operation(preview=preview), "dev", outputs, inputs))
