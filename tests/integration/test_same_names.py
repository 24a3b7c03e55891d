"""A pod made under the name of a deleted one is nobody's to delete but its owner's."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import same_names
from kumulus.kube import Client, load_kubeconfig
from tests.integration.conftest import PODS, Plane, Pools

pytestmark = pytest.mark.integration
TRIES = 100


@pytest.mark.parametrize("grace", [0, 30])
async def test_a_pod_made_again_under_its_name_stays(plane: Plane, pools: Pools, grace: int) -> None:
    inputs = pools.inputs(4)
    await pools.create(inputs)
    try:
        async with Client(load_kubeconfig(Path(plane.observed.kubeconfig))) as client:
            assert await same_names.lost(client, list(pools.nodes(inputs)), TRIES, grace) == 0
    finally:
        plane.api.delete(f"{PODS}?gracePeriodSeconds=0")
        plane.api.until(PODS, lambda found: not found)
