"""A control plane that is killed as a whole, and brought back: everything is there again, and goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kumulus.runtimes import outages
from tests.integration.conftest import JOBS, NODES, PODS, Plane, Pools
from tests.support.api import Refused

pytestmark = pytest.mark.integration


def job(name: str, seconds: int) -> dict[str, Any]:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    toleration = {"operator": "Exists"}
    template = {
        "metadata": {"annotations": {"pod-complete.stage.kwok.x-k8s.io/delay": f"{seconds}s"}},
        "spec": {"restartPolicy": "Never", "containers": [container], "tolerations": [toleration]},
    }
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}


async def test_a_control_plane_that_is_killed_comes_back_with_its_nodes_and_its_pods_go_on(
    plane: Plane, pools: Pools
) -> None:
    await pools.create(pools.inputs(3, taints=[]))
    kubeconfig = Path(plane.observed.kubeconfig)
    assert outages.can_be_killed(kubeconfig)
    before, nodes = plane.processes(), {each["name"]: each["uid"] for each in plane.api.metadata(NODES)}
    plane.api.create(JOBS, job("amid", 8))
    plane.api.until(PODS, lambda found: any(each["status"].get("phase") == "Running" for each in found.values()))
    assert set(await outages.kill(kubeconfig)) == before.keys()
    assert plane.processes() == {}, "something runs still"
    with pytest.raises((OSError, Refused)):
        plane.api.list(NODES)
    assert await outages.bring_back(kubeconfig)
    assert plane.processes().keys() == before.keys()
    assert {each["name"]: each["uid"] for each in plane.api.metadata(NODES)} == nodes
    plane.api.until(JOBS, lambda found: any(each["status"].get("succeeded") == 1 for each in found.values()))
    assert not await outages.bring_back(kubeconfig), "there was nothing to start"


def test_what_is_no_control_plane_of_this_machine_cannot_be_killed(tmp_path: Path) -> None:
    assert not outages.can_be_killed(tmp_path / "kubeconfig.yaml")
