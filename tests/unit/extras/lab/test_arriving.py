"""Pods on nodes that a scheduler chose which does not count GPU by GPU: their GPUs, and what does not go together."""

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.load import LoadedExperiment, loaded_from
from kumulus.extras.lab.measure.views import PodView
from kumulus.extras.lab.offline.measuring import Measuring
from kumulus.extras.lab.offline.placing import EmptyNode, empty
from kumulus.extras.lab.plan.asked import pod_of
from kumulus.extras.lab.plan.plan import RepetitionPlan, make
from kumulus.extras.lab.plan.stream import playable
from kumulus.extras.lab.policies import Pod
from kumulus.extras.lab.policies.fragmentation import Fragmentation, typical_kinds
from kumulus.extras.lab.report.model import PolicyUsed
from kumulus.extras.lab.run import arriving
from kumulus.extras.lab.run.arriving import by_node
from kumulus.extras.schedulers.manifests import pod_templates
from kumulus.extras.watch.live.amounts import Amounts
from kumulus.kube import Client

MACHINES = [EmptyNode("m-0", 8000, 8192, 2, "T4"), EmptyNode("m-1", 8000, 8192, 2, "T4")]
TRACE = "arrival,cpu,gpus,milli\n0,0.1,1,600\n1,0.1,1,600\n2,0.1,1,600\n3,0.1,1,1000\n"


def played(directory: Path, **trace: Any) -> LoadedExperiment:
    (directory / "t.csv").write_text(TRACE)
    columns = {"arrival": "arrival", "cpu": "cpu", "gpus": "gpus", "gpuMilli": "milli"}
    given = {"file": "t.csv", "columns": columns, "stay": True, **trace}
    return loaded_from(
        {"name": "x", "workloads": [{"name": "t", "kind": "Pod", "arrival": {"trace": given}}]}, directory, "x", ""
    )


def asked(plan: RepetitionPlan, number: int) -> dict[str, str]:
    [template] = pod_templates(list(plan.jobs[number].objects))
    requests: dict[str, str] = template["spec"]["containers"][0]["resources"]["requests"]
    return requests


async def came_to(
    monkeypatch: pytest.MonkeyPatch, loaded: LoadedExperiment, nodes: list[str | None], complete: bool = True
) -> PolicyUsed:
    """What a run comes to whose pods get these nodes, in the order of their arrival."""

    async def machines(client: Client, product_label: str) -> list[EmptyNode]:
        return MACHINES

    monkeypatch.setattr(arriving, "machines_of", machines)
    account = by_node(loaded, cast(Client, None))
    assert account is not None
    plan = make(loaded, {})
    await account.begin(plan)
    for number, (job, node) in enumerate(zip(plan.jobs, nodes, strict=False)):
        account.seen(PodView(str(number), "t", job.name, node or "", "Pending", "", "", Amounts()), over=False)
    return await account.used(complete)


def test_a_pod_of_whole_gpus_may_ask_for_their_thousandths_too(tmp_path: Path) -> None:
    plan = make(played(tmp_path, milliGpus=True), {})
    assert asked(plan, 0)["kumulus.io/gpu-milli"] == "600"
    assert "nvidia.com/gpu" not in asked(plan, 0)
    assert (asked(plan, 3)["kumulus.io/gpu-milli"], asked(plan, 3)["nvidia.com/gpu"]) == ("1000", "1")
    [template] = pod_templates(list(plan.jobs[3].objects))
    assert (pod := pod_of("p", template["spec"], "product")) == Pod("p", 100, 0, 1, 1000), pod
    alone = played(tmp_path)
    alone = replace(alone, experiment=alone.experiment.model_copy(update={"policy": "FGD"}))
    assert "kumulus.io/gpu-milli" not in asked(make(alone, {}), 3)


def test_parts_of_gpus_are_counted_by_a_policy_or_by_the_nodes(tmp_path: Path) -> None:
    playable(played(tmp_path, milliGpus=True))
    with pytest.raises(LabError, match=r"milliGpus: true, where nodes declare kumulus\.io/gpu-milli"):
        playable(played(tmp_path))


@pytest.mark.parametrize("kind", ["Pod", "Deployment"])
def test_pods_without_an_end_are_not_of_a_trace_whose_jobs_have_one(tmp_path: Path, kind: str) -> None:
    (tmp_path / "t.csv").write_text("arrival,duration\n0,60\n1,30\n")

    def traced(**trace: Any) -> LoadedExperiment:
        workload = {"name": "t", "kind": kind, "arrival": {"trace": {"file": "t.csv", **trace}}}
        return loaded_from({"name": "x", "workloads": [workload]}, tmp_path, "x", "")

    with pytest.raises(LabError, match=f"workload t: 2 jobs of the trace have a duration, and the pods of a {kind}"):
        playable(traced())
    playable(traced(stay=True))
    playable(traced(columns={"duration": ""}))


def test_a_pod_on_a_node_has_the_tightest_gpu_or_something_of_several() -> None:
    nodes = empty(MACHINES)
    pods = [Pod("a", 100, 0, 1, 600), Pod("b", 100, 0, 1, 400), Pod("c", 100, 0, 1, 700), Pod("d", 100, 0, 2, 1000)]
    measuring = Measuring(nodes, Fragmentation.of(typical_kinds(pods), nodes.models))
    for pod in pods[:3]:
        measuring.arrive_on(pod, 0)
    assert nodes.gpu_free[0].tolist() == [0, 300]
    measuring.arrive_on(pods[3], 1)
    measuring.arrive_on(pods[0], None)
    assert (measuring.pods, measuring.placed, measuring.split) == (5, 4, 0)
    # 300 are free on one GPU, and as much was said to be there of 400.
    measuring.arrive_on(Pod("e", 100, 0, 1, 400), 0)
    assert measuring.split == 1
    assert nodes.gpu_free.min() == 0, "no GPU has less than nothing"


async def test_a_run_without_a_policy_is_measured_by_the_demand_that_arrived(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Three of 600 are 1,800 of 2,000: by the node's sum there is room, on its two GPUs there is not.
    used = await came_to(monkeypatch, played(tmp_path, milliGpus=True), ["m-0", "m-0", "m-0", "m-1"])
    assert (used.split, used.policy, used.asked) == (1, "", 0)
    assert used.allocated_percent["70"] == 70.0
    apart = await came_to(monkeypatch, played(tmp_path, milliGpus=True), ["m-0", "m-0", "m-1", None])
    assert apart.split == 0
    assert apart.allocated_percent["70"] == 45.0


def test_there_is_no_such_measure_where_pods_end_or_ask_for_no_gpu(tmp_path: Path) -> None:
    nobody = cast(Client, None)
    assert by_node(played(tmp_path, milliGpus=True), nobody) is not None
    assert by_node(played(tmp_path, stay=False), nobody) is None
    (tmp_path / "c").mkdir()
    loaded = played(tmp_path / "c")
    for jobs in loaded.traces.values():
        jobs.clear()
    assert by_node(loaded, nobody) is None


async def test_what_a_run_that_was_cut_off_did_not_create_has_not_arrived(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = played(tmp_path, milliGpus=True)
    cut = await came_to(monkeypatch, loaded, ["m-0", None, "m-1"], complete=False)
    assert list(cut.allocated_percent)[-1] == "45", "1,800 of 4,000 had arrived"
    # A job that waits in a queue has no pod to be seen.
    whole = await came_to(monkeypatch, loaded, ["m-0", None, "m-1"])
    assert list(whole.allocated_percent)[-1] == "70"
