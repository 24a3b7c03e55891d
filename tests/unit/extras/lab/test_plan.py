"""From an experiment file to the objects to create: the same seed gives the same, and what the file says is in them."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.load import LoadedExperiment, load
from kumulus.extras.lab.file.model import ExperimentSpec
from kumulus.extras.lab.plan.asked import asked_at_once, pods_planned, pods_typical
from kumulus.extras.lab.plan.matching import selectors, unmatched
from kumulus.extras.lab.plan.plan import RepetitionPlan, make
from kumulus.extras.lab.plan.pods import JOB_LABEL, WORKLOAD_LABEL, UnknownPlace
from kumulus.extras.lab.plan.scheduling import queues
from kumulus.extras.lab.run.planning import too_much
from kumulus.extras.schedulers.manifests import expected_pods
from kumulus.model.errors import SpecError
from kumulus.model.quantity import parse
from tests.support import kemu


def _experiment(*workloads: dict[str, Any], **fields: Any) -> ExperimentSpec:
    listed = [{"name": f"w{index}", **each} for index, each in enumerate(workloads)]
    return ExperimentSpec.checked({"name": "test", "workloads": listed, **fields})


def plan(*workloads: dict[str, Any], places: dict[str, str] | None = None, **fields: Any) -> RepetitionPlan:
    return make(LoadedExperiment(_experiment(*workloads, **fields), Path()), places or {})


def template(made: RepetitionPlan) -> dict[str, Any]:
    found: dict[str, Any] = made.jobs[0].objects[0]["spec"]["template"]
    return found


DRAWN = {
    "jobs": 20,
    "workers": 2,
    "duration": {"lognormal": {"median": "5m", "sigma": 0.5}},
    "arrival": {"poisson": 2},
}


def test_the_same_seed_plans_the_same_and_another_seed_does_not() -> None:
    one, again, other = plan(DRAWN, seed=7), plan(DRAWN, seed=7), plan(DRAWN, seed=8)
    assert one == again
    assert one.digest != other.digest
    assert [job.at for job in one.jobs] != [job.at for job in other.jobs]


def test_a_workload_that_is_added_leaves_the_draws_of_the_others() -> None:
    alone, beside = plan(DRAWN, seed=7), plan(DRAWN, {"jobs": 3}, seed=7)
    assert [job for job in beside.jobs if job.workload == "w0"] == list(alone.jobs)


@pytest.mark.parametrize("scheduler", ["default", "kube-scheduler", "native", "coscheduling", "volcano", "yunikorn"])
def test_pods_that_never_preempt_have_a_class_of_that_policy(scheduler: str) -> None:
    never = {"preemptionPolicy": "Never"}
    made = plan({"priority": 7, **never}, {"priority": 7}, never, scheduler={"name": scheduler})
    classes = [
        (each["metadata"]["name"], each["value"], each.get("preemptionPolicy")) for each in made.setup
        if each["kind"] == "PriorityClass"
    ]  # fmt: skip
    assert classes == [
        ("experiment-0-never", 0, "Never"),
        ("experiment-7", 7, None),
        ("experiment-7-never", 7, "Never"),
    ]
    pods = [job.objects[-1]["spec"]["template"]["spec"] for job in made.jobs]
    assert [each["priorityClassName"] for each in pods] == ["experiment-7-never", "experiment-7", "experiment-0-never"]
    assert [each.get("preemptionPolicy") for each in pods] == ["Never", None, "Never"]


@pytest.mark.parametrize("scheduler", ["kueue", "kai"])
def test_a_scheduler_that_would_preempt_with_them_all_the_same_is_not_given_them(scheduler: str) -> None:
    able = "kube-scheduler or native or coscheduling or volcano or yunikorn"
    said = rf"w0: scheduler {scheduler} takes no preemptionPolicy: Never; leave it out, or write .*name: {able}}}"
    with pytest.raises(LabError, match=said):
        plan({"preemptionPolicy": "Never"}, scheduler={"name": scheduler})
    assert plan({"preemptionPolicy": "PreemptLowerPriority"}, scheduler={"name": scheduler}).jobs


def test_an_existing_class_has_a_preemption_policy_of_its_own() -> None:
    with pytest.raises(SpecError, match=r"preemptionPolicy: is that of the PriorityClass, which priority names; leave"):
        plan({"priority": "high", "preemptionPolicy": "Never"})


def test_jobs_arrive_at_once_evenly_or_at_random() -> None:
    assert [job.at for job in plan({"jobs": 3}).jobs] == [0, 0, 0]
    assert [job.at for job in plan({"jobs": 3, "arrival": {"after": "10s", "rate": 2}}).jobs] == [10, 10.5, 11]
    random = [job.at for job in plan({"jobs": 2000, "arrival": {"poisson": 4}}).jobs]
    assert random == sorted(random)
    # 2,000 exponential gaps of mean 1/4 s: their sum is within 10 % of 500 s, four standard deviations.
    assert random[-1] == pytest.approx(500, rel=0.1)


def test_a_job_has_the_workers_requests_and_labels_of_its_workload() -> None:
    made = plan(
        {"workers": 3, "requests": {"cpu": "2", "nvidia.com/gpu": "8"}, "labels": {"app": "x"}, "duration": "90s"}
    )
    job = made.jobs[0].objects[0]
    assert (job["kind"], job["spec"]["parallelism"], job["spec"]["completions"]) == ("Job", 3, 3)
    assert (made.jobs[0].workers, made.pods) == (3, 3)
    pod = template(made)
    assert pod["metadata"]["labels"] == {"app": "x", WORKLOAD_LABEL: "w0", JOB_LABEL: "w0-1"}
    assert pod["metadata"]["annotations"] == {"pod-complete.stage.kwok.x-k8s.io/delay": "90.000s"}
    assert pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "2", "nvidia.com/gpu": "8"}


def test_affinity_keeps_the_workers_of_a_job_together_and_not_those_of_two() -> None:
    made = plan({"jobs": 2, "affinity": {"required": "zone", "preferred": "rack"}}, places={"rack": "net/rack"})
    affinity = template(made)["spec"]["affinity"]["podAffinity"]
    assert affinity["requiredDuringSchedulingIgnoredDuringExecution"] == [
        {"labelSelector": {"matchLabels": {JOB_LABEL: "w0-1"}}, "topologyKey": "topology.kubernetes.io/zone"}
    ]
    term = affinity["preferredDuringSchedulingIgnoredDuringExecution"][0]
    assert term["podAffinityTerm"]["topologyKey"] == "net/rack"
    with pytest.raises(UnknownPlace, match="rack is no level of this cluster's topology; there are host, zone, region"):
        plan({"affinity": {"required": "rack"}})


def test_a_gpu_product_is_a_node_selector_and_a_number_a_priority_class() -> None:
    made = plan({"gpuProduct": "H100", "priority": -5}, {"priority": 100}, productLabel="example.com/gpu")
    assert template(made)["spec"]["nodeSelector"] == {"example.com/gpu": "H100"}
    assert template(made)["spec"]["priorityClassName"] == "experiment-minus-5"
    assert [(each["kind"], each["metadata"]["name"], each["value"]) for each in made.setup] == [
        ("PriorityClass", "experiment-minus-5", -5),
        ("PriorityClass", "experiment-100", 100),
    ]


@pytest.mark.parametrize(("kind", "workers"), [("Pod", 1), ("Deployment", 4), ("JobSet", 4), ("Job", 4)])
def test_each_kind_makes_the_pods_it_says(kind: str, workers: int) -> None:
    made = plan({"kind": kind, "workers": workers})
    assert [expected_pods(each) for each in made.jobs[0].objects] == [workers]


def test_a_job_of_bare_pods_has_one_for_each_worker_and_as_a_native_gang_a_group_of_them() -> None:
    wanted = {"kind": "Pod", "workers": 3, "jobs": 2}
    made = plan(wanted)
    assert [each["metadata"]["name"] for each in made.jobs[1].objects] == ["w0-2-0", "w0-2-1", "w0-2-2"]
    assert (made.jobs[1].workers, made.pods) == (3, 6)
    group, *pods = plan({**wanted, "gang": True}, scheduler={"name": "native"}).jobs[1].objects
    assert (group["kind"], group["metadata"]["name"]) == ("PodGroup", "w0-2")
    assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 3}}
    assert [each["spec"]["schedulingGroup"] for each in pods] == [{"podGroupName": "w0-2"}] * 3


def given(folder: Path, manifest: str, **workload: Any) -> RepetitionPlan:
    (folder / "job.yaml").write_text(manifest)
    body = {"name": "t", "workloads": [{"name": "w", "manifest": "job.yaml", **workload}]}
    (folder / "e.yaml").write_text(json.dumps(body))
    return make(load(folder / "e.yaml"), {})


JOB = """
apiVersion: batch/v1
kind: Job
metadata: {generateName: train-, namespace: elsewhere}
spec:
  parallelism: 3
  completions: 3
  template: {metadata: {labels: {id: JOB_ID}}, spec: {containers: [{name: c, image: i}]}}
"""


def test_a_manifest_is_created_once_a_job_with_names_that_repeat(tmp_path: Path) -> None:
    made = given(tmp_path, JOB, jobs=2, replace={"JOB_ID": "number-{index}"})
    assert [job.objects[0]["metadata"] for job in made.jobs] == [{"name": "train-1"}, {"name": "train-2"}]
    labels = [job.objects[0]["spec"]["template"]["metadata"]["labels"] for job in made.jobs]
    assert labels[1] == {"id": "number-2", WORKLOAD_LABEL: "w", JOB_LABEL: "w-2"}
    assert made.pods == 6
    assert made == given(tmp_path, JOB, jobs=2, replace={"JOB_ID": "number-{index}"})


def test_what_names_another_object_of_the_manifest_names_it_as_it_is_created(tmp_path: Path) -> None:
    group = "apiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\nmetadata: {name: gang}\n"
    pod = """
apiVersion: v1
kind: Pod
metadata: {name: gang-0, annotations: {scheduling.k8s.io/group-name: gang}}
spec: {schedulingGroup: {podGroupName: gang}, schedulerName: mine, containers: [{name: gang, image: i}]}
"""
    for job in given(tmp_path, f"{group}---{pod}", jobs=2).jobs:
        named = f"gang-{job.name[-1]}"
        assert job.objects[0]["metadata"]["name"] == named
        assert job.objects[1]["metadata"]["annotations"] == {"scheduling.k8s.io/group-name": named}
        spec = job.objects[1]["spec"]
        assert spec["schedulingGroup"] == {"podGroupName": named}
        assert (spec["schedulerName"], spec["containers"][0]["name"]) == ("mine", "gang")


def test_pods_that_follow_as_others_complete_are_known(tmp_path: Path) -> None:
    made = given(tmp_path, JOB.replace("completions: 3", "completions: 8"), jobs=2)
    assert (made.pods, made.later) == (6, 10)


def test_each_objects_pods_ask_for_what_it_says(tmp_path: Path) -> None:
    """A policy expects such pods as there will be, however many jobs they are of."""
    launcher = "apiVersion: v1\nkind: Pod\nmetadata: {name: l}\nspec: {containers: [{name: c, image: i}]}\n"
    workers = JOB.replace("image: i", 'image: i, resources: {requests: {"nvidia.com/gpu": "1"}}')
    made = given(tmp_path, f"{launcher}---{workers}")
    assert Counter(pod.gpus for pod in pods_planned(made, "p")) == {0: 1, 1: 3}
    assert pods_typical(load(tmp_path / "e.yaml"), made) == pods_planned(made, "p")


def test_two_objects_with_pods_and_one_name_are_refused(tmp_path: Path) -> None:
    """The second would not be created, and its pods would be waited for."""
    (tmp_path / "job.yaml").write_text(JOB)
    both = [{"name": name, "manifest": "job.yaml"} for name in ("a", "b")]

    def made(*workloads: dict[str, Any]) -> RepetitionPlan:
        (tmp_path / "e.yaml").write_text(json.dumps({"name": "t", "workloads": workloads}))
        return make(load(tmp_path / "e.yaml"), {})

    with pytest.raises(LabError, match="workload b: its Job train-1 has the name of one of job a-1"):
        made(*both)
    assert made(both[0], {**both[1], "replace": {"train-": "other-"}}).pods == 6


def test_pod_templates_are_found_however_deep(tmp_path: Path) -> None:
    pod = "{metadata: {}, spec: {containers: [{name: c, image: i}]}}"
    manifest = (
        f"apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {{name: p}}\nspec: {{pytorchReplicaSpecs: "
        f"{{Master: {{replicas: 1, template: {pod}}}, Worker: {{replicas: 2, template: {pod}}}}}}}\n"
    )
    made = given(tmp_path, manifest)
    replicas = made.jobs[0].objects[0]["spec"]["pytorchReplicaSpecs"]
    assert all(each["template"]["metadata"]["labels"][JOB_LABEL] == "w-1" for each in replicas.values())
    assert made.pods == 0, "how many pods another controller makes is not known"


def test_a_workload_file_as_kemus_are_is_taken_as_it_is(tmp_path: Path) -> None:
    assert given(tmp_path, yaml.safe_dump(kemu.job("h200", 10)), jobs=2).pods == 20


@pytest.mark.parametrize("scheduler", ["volcano", "coscheduling", "yunikorn", "kueue"])
def test_a_gang_is_told_to_its_scheduler_and_everything_goes_into_the_runs_namespace(scheduler: str) -> None:
    gang = {"workers": 3, "gang": True, "requests": {"cpu": "1"}}
    made = plan(gang, scheduler={"name": scheduler})
    assert all("namespace" not in each["metadata"] for each in made.jobs[0].objects)
    groups = [each for each in made.jobs[0].objects if each["kind"] == "PodGroup"]
    assert [each["spec"]["minMember"] for each in groups] == ([3] if scheduler in ("volcano", "coscheduling") else [])
    job = made.jobs[0].objects[-1]
    assert job["kind"] == "Job"
    pods = job["spec"]["template"]
    assert pods["spec"].get("schedulerName", "default-scheduler") == (
        scheduler if scheduler != "kueue" else "default-scheduler"
    )
    assert pods["metadata"]["labels"][JOB_LABEL] == "w0-1"
    assert made.pods == 3


def test_a_gang_of_kubernetes_own_is_placed_in_a_level_of_the_clusters_topology() -> None:
    gang = {"workers": 3, "gang": True, "topology": {"required": "rack"}, "disruption": "all"}
    experiment = ExperimentSpec.checked(
        {"name": "t", "scheduler": {"name": "native"}, "workloads": [{"name": "w", **gang}]}
    )
    (made,) = make(LoadedExperiment(experiment, Path()), {"rack": "example.com/rack"}).jobs
    (job,) = made.objects
    assert job["spec"]["scheduling"] == {
        "schedulingPolicy": {"gang": {"minCount": 3}},
        "schedulingConstraints": {"topology": [{"key": "example.com/rack"}]},
        "disruptionMode": {"all": {}},
    }
    with pytest.raises(UnknownPlace, match="rack is no level"):
        make(LoadedExperiment(experiment, Path()), {})


def test_slices_of_a_gang_are_objects_of_one_job_in_levels_of_the_clusters_topology() -> None:
    topology = {"required": "block", "slices": {"required": "rack", "size": 2}}
    gang = {"workers": 4, "gang": True, "topology": topology}
    places = {"block": "example.com/block", "rack": "example.com/rack"}
    made = plan(gang, scheduler={"name": "native"}, places=places)
    (job,) = made.jobs
    assert made.pods == 4
    assert [(each["kind"], each["metadata"]["name"]) for each in job.objects] == [
        ("Workload", "w0-1"),
        ("CompositePodGroup", "w0-1"),
        ("PodGroup", "w0-1-0"),
        ("Job", "w0-1-0"),
        ("PodGroup", "w0-1-1"),
        ("Job", "w0-1-1"),
    ]
    keys = {
        each["kind"]: each["spec"]["schedulingConstraints"]["topology"][0]["key"]
        for each in job.objects
        if "schedulingConstraints" in each["spec"]
    }
    assert keys == {"CompositePodGroup": "example.com/block", "PodGroup": "example.com/rack"}
    with pytest.raises(UnknownPlace, match="rack is no level"):
        plan(gang, scheduler={"name": "native"}, places={"block": "example.com/block"})
    with pytest.raises(LabError, match=r"w0: scheduler kai takes no slices; .* {name: native or kueue}"):
        plan(gang, scheduler={"name": "kai"}, places=places)
    with pytest.raises(LabError, match="w0: Job default/w0-1: 3 pods are no whole slices of 2 Write a multiple of 2"):
        plan({**gang, "workers": 3}, scheduler={"name": "native"}, places=places)


def test_slices_are_within_a_place() -> None:
    with pytest.raises(SpecError, match=r"topology.slices: are within one place, which required names; write required"):
        plan({"gang": True, "topology": {"slices": {"required": "rack", "size": 1}}}, scheduler={"name": "native"})


def test_a_gang_of_volcano_is_placed_in_a_level_that_its_hypernodes_have() -> None:
    made = plan({"workers": 3, "gang": True, "topology": {"required": "rack"}}, scheduler={"name": "volcano"})
    group = made.jobs[0].objects[0]
    assert group["spec"]["networkTopology"] == {"mode": "hard", "highestTierName": "rack"}


@pytest.mark.parametrize("scheduler", ["default", "coscheduling"])
@pytest.mark.parametrize(
    ("more", "able"),
    [({"topology": {"required": "zone"}}, "native or volcano or kueue or kai"), ({"disruption": "all"}, "native")],
)
def test_what_a_scheduler_cannot_do_with_a_gang_is_refused_by_name(
    scheduler: str, more: dict[str, object], able: str
) -> None:
    said = rf"w0: scheduler {scheduler} takes no {next(iter(more))}; leave it out, or write scheduler: {{name: {able}}}"
    with pytest.raises(LabError, match=said):
        plan({"workers": 3, "gang": True, **more}, scheduler={"name": scheduler})


@pytest.mark.parametrize("more", [{"topology": {"required": "zone"}}, {"disruption": "all"}])
def test_topology_and_disruption_are_of_gangs(more: dict[str, object]) -> None:
    with pytest.raises(SpecError, match=r"is of a gang, and this workload is none; write gang: true"):
        plan({"workers": 3, **more}, scheduler={"name": "native"})


def test_a_gang_is_a_plain_job_to_the_default_scheduler() -> None:
    assert plan({"workers": 3, "gang": True}).digest == plan({"workers": 3}).digest


def test_a_job_waits_in_its_queue_and_queues_that_nobody_made_have_all_there_is() -> None:
    listed = [{"name": "a", "queue": "team"}, {"name": "b"}, {"name": "c", "queue": "own"}]
    experiment = ExperimentSpec.checked({"name": "t", "scheduler": {"name": "kueue"}, "workloads": listed})
    made = make(LoadedExperiment(experiment, Path()), {})
    waiting = [job.objects[0]["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] for job in made.jobs]
    assert waiting == ["team", "default", "own"]
    found = queues("kueue", experiment.workloads, {"own"}, {"cpu": "64"})
    assert [(each["kind"], each["metadata"]) for each in found if each["kind"] == "LocalQueue"] == [
        ("LocalQueue", {"name": "default"}),
        ("LocalQueue", {"name": "team"}),
    ]
    # Of what all nodes have, what KAI's queues cannot count is left out.
    (made_for_kai,) = queues("kai", experiment.workloads, {"own", "team"}, {"cpu": "64", "ephemeral-storage": "1Ti"})
    assert made_for_kai["spec"]["resources"]["cpu"]["limit"] == 64_000
    assert queues("coscheduling", experiment.workloads, set(), {}) == []
    assert queues("default", experiment.workloads, set(), {}) == []


def test_what_a_scheduler_does_not_take_is_told_with_the_workload() -> None:
    with pytest.raises(
        LabError, match=r"workload w0: .* kueue is set up for Job and JobSet Write a Job, or use volcano"
    ):
        plan({"kind": "Deployment"}, scheduler={"name": "kueue"})


CONFIG = "kind: KubeSchedulerConfiguration\napiVersion: kubescheduler.config.k8s.io/v1\nprofiles: "


def with_config(directory: Path, profiles: str, *workloads: dict[str, Any], **fields: Any) -> LoadedExperiment:
    (directory / "mine.yaml").write_text(CONFIG + profiles)
    content = {
        "name": "own",
        "scheduler": {"name": "kube-scheduler", "config": "mine.yaml"},
        "workloads": [{"name": f"w{index}", **each} for index, each in enumerate(workloads)],
        **fields,
    }
    (directory / "own.yaml").write_text(json.dumps(content))
    return load(directory / "own.yaml")


def schedulers(made: RepetitionPlan) -> list[str]:
    return [each["spec"]["template"]["spec"].get("schedulerName", "") for job in made.jobs for each in job.objects]


def test_pods_get_the_first_profile_of_the_schedulers_own_configuration_or_the_one_they_name(tmp_path: Path) -> None:
    two = "[{schedulerName: mine}, {schedulerName: packing}]"
    assert schedulers(make(with_config(tmp_path, two, {}, {"schedulerName": "packing"}), {})) == ["mine", "packing"]


def test_the_name_of_a_configuration_s_first_profile_makes_no_other_workload(tmp_path: Path) -> None:
    mine, main = (
        make(with_config(tmp_path, f"[{{schedulerName: {name}}}, {{schedulerName: b}}]", {}), {})
        for name in ("mine", "main")
    )
    assert schedulers(mine) == ["mine"]
    assert mine.digest == main.digest
    second = with_config(tmp_path, "[{schedulerName: main}, {schedulerName: b}]", {"schedulerName": "b"})
    assert make(second, {}).digest != main.digest


@pytest.mark.parametrize("profiles", ["[{plugins: {}}]", "[]"])
def test_a_sole_profile_without_a_name_gets_one_that_the_pods_have(tmp_path: Path, profiles: str) -> None:
    assert schedulers(make(with_config(tmp_path, profiles, {}), {})) == ["second-scheduler"]


def test_a_manifests_pods_get_the_profile_too(tmp_path: Path) -> None:
    template = {"spec": {"containers": [{"name": "main", "image": "none"}]}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}, "spec": {"template": template}}
    (tmp_path / "job.yaml").write_text(json.dumps(job))
    found = with_config(tmp_path, "[{schedulerName: mine}]", {"manifest": "job.yaml", "schedulerName": "mine"})
    assert schedulers(make(found, {})) == ["mine"]


@pytest.mark.parametrize(
    ("profiles", "workload", "fields", "message"),
    [
        ("[{schedulerName: mine}]", {"schedulerName": "other"}, {}, "is no profile of mine.yaml; write mine"),
        ("[{schedulerName: default-scheduler}]", {}, {}, "scheduler.config: the scheduler's configuration"),
        ("[]", {"schedulerName": "x"}, {"scheduler": {"name": "volcano"}}, "is started; write volcano"),
        ("[]", {"schedulerName": "x"}, {"scheduler": {}, "why": True}, "is started; leave it out"),
    ],
)
def test_a_profile_that_no_scheduler_has_is_refused_with_its_place(
    tmp_path: Path, profiles: str, workload: dict[str, Any], fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(SpecError) as raised:
        with_config(tmp_path, profiles, workload, **fields)
    assert message in str(raised.value)


def test_pods_may_ask_for_a_scheduler_that_runs_in_the_cluster_already() -> None:
    assert schedulers(plan({"schedulerName": "theirs"})) == ["theirs"]


H100, A100 = {"gpu": "h100", "zone": "a"}, {"gpu": "a100", "zone": "b"}


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        ({"gpuProduct": "h1000"}, "product h1000 is not there; there are a100, h100; did you mean h100?"),
        ({"nodeSelector": {"rack": "r1"}}, "rack=r1 is not there, as no node has the label rack"),
        ({"gpuProduct": "h100", "nodeSelector": {"zone": "b"}}, "no node has gpu=h100 and zone=b at once"),
    ],
)
def test_a_workload_that_no_node_matches_is_named_with_what_is_there(workload: dict[str, Any], message: str) -> None:
    made = plan(workload, {}, {"gpuProduct": "a100"}, productLabel="gpu")
    assert list(unmatched(selectors(made.jobs), [H100, A100], "gpu")) == [f"no node matches workload w0: {message}"]


def test_a_product_under_another_label_is_pointed_out() -> None:
    nodes = [{"example.com/gpu-type": "h100", "example.com/gpu-count": "8"}]
    (line,) = unmatched(selectors(plan({"gpuProduct": "NVIDIA-H100"}).jobs), nodes, "nvidia.com/gpu.product")
    assert line.endswith("has the label nvidia.com/gpu.product; with productLabel: example.com/gpu-type there is h100")


def test_more_than_the_cluster_has_is_said_of_the_scarcest_resource() -> None:
    asks = {"requests": {"cpu": "24", "memory": "100Gi", "nvidia.com/gpu": "8"}, "workers": 50}
    # What comes a minute later may find the others gone.
    asked = asked_at_once(plan({**asks, "jobs": 2}, {**asks, "arrival": {"after": "1m"}}, {"jobs": 3}).jobs)
    there = {"cpu": parse("1000"), "memory": parse("20000Gi"), "nvidia.com/gpu": parse("800")}
    line = "note: the workload asks for 2,400 cpu at once, the cluster has 1,000: pods will wait"
    assert too_much(asked, {**there, "nvidia.com/gpu": parse("500")}) == line
    assert too_much(asked, {**there, "cpu": parse("2400")}) == ""
    line = "note: the workload asks for 10,000Gi memory at once, the clusters have 512Gi: pods will wait"
    assert too_much({"memory": parse("10000Gi")}, {"memory": parse("512Gi")}, "the clusters have") == line
    line = "note: the workload asks for 800 nvidia.com/gpu at once, the cluster has none: pods will wait"
    assert too_much(asked, {"cpu": parse("2400"), "memory": parse("20000Gi")}) == line
