"""What surrounds a Helm release, as the plugin's resources: whose a release is."""

from pathlib import Path

import pytest

from kumulus.model.identity import STACK_ID
from kumulus.nodes.errors import ProviderError
from kumulus.provider.resources.release import ReleasePreparation
from tests.unit.provider.stored import operation, stored

ONE, TWO = "1" * 32, "2" * 32
SECRETS = "/api/v1/namespaces/queues/secrets"


async def test_a_release_whose_last_revision_has_no_owner_is_that_of_the_stack_that_had_it_before(
    tmp_path: Path,
) -> None:
    """As by a Helm that copies no labels: to take it over is not offered."""
    async with stored(tmp_path, stackId=ONE, clusterOutlivesStack=True) as cluster:
        cluster.store.served.add(SECRETS)
        for version, marks in (("1", {STACK_ID: TWO}), ("2", {})):
            labels = {"owner": "helm", "name": "queue", "version": version, "status": "deployed", **marks}
            cluster.store.put(SECRETS, {"metadata": {"name": f"sh.helm.release.v1.queue.v{version}", "labels": labels}})
        inputs = {**cluster.place, "namespace": "queues", "name": "queue", "createNamespace": True}
        with pytest.raises(ProviderError) as caught:
            await ReleasePreparation(cluster.connections).create(operation(preview=True), inputs)
    assert str(caught.value) == (
        "the release queues/queue is there already (revision 2, deployed) and belongs to another stack "
        f"(identity {TWO[:8]}); nothing was changed: give the add-on another name"
    )
