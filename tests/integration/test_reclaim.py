"""Reclaim by each scheduler's own means, by the files that come along, at a small size; a gang of YuniKorn in one zone.

A scheduler that is not built is skipped: ./kumulus tools --with schedulers builds them all.
"""

from typing import Any

import pytest
import yaml

from kumulus.extras.lab.run import ending
from kumulus.extras.schedulers import registry
from tests.integration.test_experiments import ROOT, Lab, lab, only
from tests.support.tools import require

__all__ = ["lab"]
pytestmark = pytest.mark.integration
EXPERIMENTS = ROOT / "experiments"
# Eight nodes with 64 GPUs: eight jobs fill them, and four whole nodes are asked for.
SIZES = {"background": {"jobs": 8, "workers": 8}, "important": {"workers": 4}}


def small(lab: Lab, name: str) -> dict[str, Any]:
    """An experiment that comes along, for the lab's nodes."""
    found: dict[str, Any] = yaml.safe_load((EXPERIMENTS / f"{name}.yaml").read_text())
    selector = lab.workload()["nodeSelector"]
    found["workloads"] = [{**each, **SIZES[each["name"]], "nodeSelector": selector} for each in found["workloads"]]
    return {**found, "timeout": "4m", "settle": "5s"}


async def test_volcano_preempts_pods_for_more_important_ones(lab: Lab) -> None:
    require(*registry.get("volcano").tools)
    config = str(EXPERIMENTS / "schedulers" / "volcano-preempt.yaml")
    file = small(lab, "kai-reclaim")
    background, important = file["workloads"]
    # Pods that nobody creates again: Volcano gives what is free to any of them before whole nodes are.
    alone = {key: value for key, value in background.items() if key != "workers"}
    file["workloads"] = [{**alone, "kind": "Pod", "jobs": 64}, important]
    report = await lab.run(**{**file, "scheduler": {"name": "volcano", "config": config}})
    measures = only(report).details.measures
    assert measures["gpus.allocated"] == 64, only(report).details
    assert (measures["pods.scheduled"], measures["jobs.admitted"]) == (68, 65)


async def test_kueue_takes_a_queues_share_back_from_one_that_has_borrowed_it(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Jobs that wait in a queue have no pods: the run ends once nothing has happened for so long.
    monkeypatch.setattr(ending, "_LEAST_PATIENCE", 12.0)
    require(*registry.get("kueue").tools)
    file = small(lab, "kueue-queues")
    queues = (EXPERIMENTS / file["setup"][0]).read_text().replace("2000", "32")
    (lab.directory / "queues.yaml").write_text(queues)
    report = await lab.run(**{**file, "setup": ["queues.yaml"], "settle": "2s"})
    measures = only(report).details.measures
    assert measures["gpus.allocated"] == 64, only(report).details
    assert (measures["jobs.admitted"], measures["jobs.pending"]) == (9, 4)


async def test_a_gang_of_yunikorn_stays_in_one_zone_and_its_placeholders_are_not_counted(lab: Lab) -> None:
    require(*registry.get("yunikorn").tools)
    work = lab.workload(workers=4, gang=True, affinity={"required": "zone"})
    report = await lab.run(workloads=[work], scheduler={"name": "yunikorn"})
    measures = only(report).details.measures
    assert (measures["jobs.admitted"], measures["pods.created"]) == (1, 4), only(report).details
