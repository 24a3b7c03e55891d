"""Clients of clusters, which all resources of a plugin share."""

from pathlib import Path

import pytest

from kumulus.kube import Unreachable
from tests.unit.provider.stored import stored, written


async def test_a_cluster_that_answers_again_is_not_taken_for_silent(tmp_path: Path, unused_tcp_port: int) -> None:
    async with stored(tmp_path) as cluster:
        kubeconfig, identity = cluster.place["kubeconfig"], cluster.place["clusterIdentity"]
        written(tmp_path, f"http://127.0.0.1:{unused_tcp_port}")
        with pytest.raises(Unreachable):
            await cluster.connections.client(kubeconfig, identity, 0.2)
        # It is started again, and an update has the patience to ask it once more.
        written(tmp_path, cluster.store.address)
        client = await cluster.connections.client(kubeconfig, identity, 30.0)
        assert await cluster.connections.client(kubeconfig, identity, 0.2) is client
