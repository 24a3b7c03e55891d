"""The kinds that a chart has brought: which of them go with it."""

from pathlib import Path

import pytest

from kumulus.provider.resources.definitions import Definitions
from tests.support.object_store import Object
from tests.unit.provider.stored import messages, operation, stored

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAME = "ones.things.io"


def crd(served: bool) -> Object:
    fields = [{"manager": "pulumi-resource-kubernetes", "operation": "Update"}]
    spec = {"group": "things.io", "names": {"plural": "ones"}, "versions": [{"name": "v1", "served": served}]}
    return {"metadata": {"name": NAME, "managedFields": fields}, "spec": spec}


@pytest.mark.parametrize("served", [True, False])
async def test_a_kind_goes_unless_it_may_have_objects_that_nobody_can_list(served: bool, tmp_path: Path) -> None:
    op = operation()
    async with stored(tmp_path, stackId="1" * 32, clusterOutlivesStack=True) as cluster:
        cluster.store.served |= {CRDS, "/apis/things.io/v1/ones"}
        cluster.store.put(CRDS, crd(served))
        outputs = {**cluster.place, "group": "things.io", "before": []}
        await Definitions(cluster.connections).delete(op, "things.io", outputs)
        assert (f"{CRDS}/{NAME}" in cluster.store.objects) == (not served)
    assert messages(op) == ([] if served else [f"{NAME} stays: there are objects of it"])
