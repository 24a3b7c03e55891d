"""The resource NodePool, on an API server that keeps objects in memory."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kumulus.cluster.errors import ProviderError
from kumulus.model.pool_form import pool_to_properties
from kumulus.provider.connections import Connections
from kumulus.provider.resources.base import Operation
from kumulus.provider.resources.node_pool import NodePool
from kumulus.stackfile.expand import pools
from kumulus.stackfile.model import ClusterSpec
from tests.support.object_store import MAPS, storing
from tests.support.said import Said
from tests.unit.model.test_fault_changes import GROUP
from tests.unit.provider.test_fault import KUBECONFIG

WITH_SLICES: dict[str, Any] = {
    **GROUP,
    "gpuProduct": "NVIDIA-H100-80GB-HBM3",
    "resourceSlices": {"driver": "gpu.nvidia.com"},
}


async def test_a_pool_with_slices_is_not_recorded_in_a_cluster_without_them(tmp_path: Path) -> None:
    (pool,) = pools(ClusterSpec.checked({"nodeGroups": [WITH_SLICES]}), "dev")
    async with storing() as store:
        namespace = store.put("/api/v1/namespaces", {"metadata": {"name": "kube-system"}})
        (tmp_path / "k").write_text(KUBECONFIG.format(address=store.address))
        place = {"kubeconfig": str(tmp_path / "k"), "clusterName": "dev", "clusterOutlivesStack": False}
        connections = Connections()
        resource = NodePool(connections)
        checked = resource.check(
            {}, {**place, "clusterIdentity": namespace["metadata"]["uid"], **pool_to_properties(pool)}, "/"
        )
        assert checked.failures == []
        op = Operation("urn:pulumi:dev::p::kumulus:index:NodePool::a", Said(), asyncio.Event())
        with pytest.raises(ProviderError, match=r"does not serve resource\.k8s\.io"):
            await resource.create(op, checked.inputs)
        assert store.under(MAPS) == []
        await connections.close()
