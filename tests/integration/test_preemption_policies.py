"""`preemptionPolicy: Never` on the schedulers that are started: gangs with it wait, and others preempt."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kumulus.extras.lab.plan.pods import JOB_LABEL
from tests.integration.conftest import Plane, Pools
from tests.integration.test_native_workloads import ONE_PER_NODE, needs, run

pytestmark = pytest.mark.integration
# By default, Volcano preempts nobody (its chart's actions), and YuniKorn only for a queue that has a guarantee.
CONFIGURATIONS = {
    "volcano": """
actions: "allocate, preempt, backfill"
tiers:
- plugins: [{name: priority}, {name: gang, enablePreemptable: false}, {name: conformance}]
- plugins: [{name: predicates}, {name: nodeorder}]
""",
    "yunikorn": """
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - {name: low}
    - {name: high, resources: {guaranteed: {vcore: 4}}, properties: {preemption.delay: 1s}}
""",
}


@pytest.mark.parametrize("scheduler", ["coscheduling", "volcano", "yunikorn"])
async def test_a_gang_that_never_preempts_waits_and_one_that_may_preempts(
    plane: Plane, pools: Pools, tmp_path: Path, scheduler: str
) -> None:
    needs(scheduler)
    # Each on nodes of its own: what the one has made room for is nothing to the other.
    for name in ("never", "may"):
        await pools.create(pools.inputs(2, capacity=ONE_PER_NODE, labels={"example.com/of": name}))
    placed: dict[str, int] = {}

    def look(_: object) -> None:
        pods = plane.api.list("/api/v1/pods", labelSelector=JOB_LABEL)
        there = [each["metadata"]["name"].partition("-")[0] for each in pods if each["spec"].get("nodeName")]
        placed.clear()
        placed.update(Counter(there))

    wanted: dict[str, Any] = {"name": scheduler}
    if text := CONFIGURATIONS.get(scheduler):
        (tmp_path / "scheduler.yaml").write_text(text)
        wanted["config"] = "scheduler.yaml"
    queues = ("low", "high") if scheduler == "yunikorn" else ("", "")
    pods = {"requests": {"cpu": "1"}}
    high = {**pods, "workers": 2, "gang": True, "priority": 9, "queue": queues[1], "arrival": {"after": "3s"}}
    never, may = ({**high, "name": name, "nodeSelector": {"example.com/of": name}} for name in ("never", "may"))
    low = {**pods, "name": "low", "workers": 4, "priority": 1, "queue": queues[0]}
    workloads = [low, {**never, "preemptionPolicy": "Never"}, may]
    file = {"scheduler": wanted, "settle": "8s", "timeout": "15s"}
    details, _ = await run(plane, tmp_path, workloads, scheduler, file, on_sample=look)
    assert placed == {"low": 2, "may": 2}, details.ended
