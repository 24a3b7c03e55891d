"""What a run leaves to be looked at again."""

from pathlib import Path
from typing import Any

import pytest

from kumulus.extras.lab.file.load import LoadedExperiment, loaded_from
from kumulus.extras.lab.measure.placement import PlacementRecorder
from kumulus.extras.lab.measure.views import pod_view
from kumulus.extras.lab.plan.plan import make
from kumulus.extras.lab.plan.pods import JOB_LABEL, WORKLOAD_LABEL, PlannedJob
from kumulus.extras.lab.plan.scheduling import queues, waiting
from kumulus.extras.watch.history.moment import moment
from kumulus.extras.watch.live.node import NOWHERE
from kumulus.kube.watch import WatchEvent
from tests.support.messages import pod_message

CLUSTER_QUEUES = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues"
WORKLOADS = "/apis/kueue.x-k8s.io/v1beta2/workloads"
CONFIGURATION = "/api/v1/configmaps?fieldSelector=metadata.name%3Dyunikorn-configs"
TRACE = "arrival,cpu,user\n0,1,6214e9\n1,1,Team_B\n2,1,\n3,1,6214e9\n"
QUEUE = "kueue.x-k8s.io/queue-name"


def test_queues_are_recorded_with_their_quota_use_and_who_waits() -> None:
    time = 0.0
    placement = PlacementRecorder({"title": "run"}, NOWHERE, lambda: time, {})

    def happens(path: str, kind: Any, name: str, **item: Any) -> None:
        placement.collections[path](WatchEvent(kind, name, {"metadata": {"name": name}, **item}))

    def quota(used: str, waiting: int) -> dict[str, Any]:
        flavor = {"name": "any", "resources": [{"name": "cpu", "nominalQuota": "8"}]}
        usage = [{"name": "any", "resources": [{"name": "cpu", "total": used}]}]
        status = {"flavorsUsage": usage, "pendingWorkloads": waiting, "admittedWorkloads": 1}
        return {"spec": {"resourceGroups": [{"flavors": [flavor]}]}, "status": status}

    happens(CLUSTER_QUEUES, "ADDED", "team", **quota("0", 0))
    placement.begin()
    time = 2.0
    happens(CLUSTER_QUEUES, "MODIFIED", "team", **quota("8", 3))
    time = 4.0
    happens(CLUSTER_QUEUES, "DELETED", "team")
    placement.end()
    found = [moment(placement.history, at).queues for at in (1000, 2000, 4000)]
    assert found == [
        {"ClusterQueue/team": [{"cpu": "8"}, {"cpu": "0"}, 0, 1]},
        {"ClusterQueue/team": [{"cpu": "8"}, {"cpu": "8"}, 3, 1]},
        {},
    ]


@pytest.mark.parametrize("heard_first", ["the job", "the workload"])
def test_why_a_job_waits_that_has_no_pods_yet_is_recorded(heard_first: str) -> None:
    placement = PlacementRecorder({"title": "run", "namespace": "run-1"}, NOWHERE, lambda: 0.0, {"work": "team"})

    def says(message: str, namespace: str = "run-1", **other: str) -> None:
        metadata = {"name": "w", "namespace": namespace, "ownerReferences": [{"kind": "Job", "name": "train"}]}
        waits = {"type": "QuotaReserved", "status": "False", "message": message, **other}
        item = {"metadata": metadata, "spec": {}, "status": {"conditions": [waits]}}
        placement.collections[WORKLOADS](WatchEvent("MODIFIED", f"{namespace}/w", item))

    job = PlannedJob("train", "work", 0.0, 4, ({"kind": "Job"},))
    if heard_first == "the job":
        placement.job(job)
    says("insufficient quota")
    says("of somebody else's", namespace="other")
    if heard_first == "the workload":
        placement.job(job)
    found = moment(placement.history, 0).jobs["work/Job/train"]
    assert (found.says, found.queue, found.size) == ("insufficient quota", "team", 4)
    assert placement.admitted == set()
    says("", type="Admitted", status="True")
    assert placement.admitted == {"train"}
    says("", type="Evicted", status="True")
    assert placement.admitted == set()


def test_the_slices_of_a_gang_speak_for_it() -> None:
    placement = PlacementRecorder({"title": "run", "namespace": "run"}, NOWHERE, lambda: 0.0, {})
    placement.begin()
    kinds = ("Workload", "CompositePodGroup", "PodGroup", "Job")
    placement.job(PlannedJob("train", "work", 0.0, 4, tuple({"kind": each} for each in kinds)))
    metadata = {"name": "train-0", "namespace": "run"}
    condition = {"type": "PodGroupInitiallyScheduled", "status": "False", "reason": "Unschedulable", "message": "full"}
    spec = {"parentCompositePodGroupName": "train"}
    item = {"metadata": metadata, "spec": spec, "status": {"conditions": [condition]}}
    placement.collections["/apis/scheduling.k8s.io/v1beta1/podgroups"](WatchEvent("MODIFIED", "run/train-0", item))
    assert moment(placement.history, 0).jobs["work/Job/train"].says == "Unschedulable: full"


def test_a_placeholder_with_the_label_of_a_job_is_no_pod_of_it() -> None:
    placement = PlacementRecorder({"title": "run"}, NOWHERE, lambda: 0.0, {})
    placement.job(PlannedJob("train", "work", 0.0, 1, ({"kind": "Job"},)))
    whole = {JOB_LABEL: "train", WORKLOAD_LABEL: "work"}
    # What a scheduler gives a pod that holds a job's place: the label by which the job's pods stay together.
    for name, labels in (("train-0", whole), ("holds-its-place", {JOB_LABEL: "train"})):
        message = pod_message(name, node="n", metadata={"labels": labels, "uid": name})
        placement.pod(f"run/{name}", message, gone=False)
        assert pod_view(message)[1:3] == (("work", "train") if labels == whole else ("", ""))
    jobs = moment(placement.history, 0).jobs
    assert (jobs["work/Job/train"].held, len(jobs)) == (1, 2)


def test_bare_pods_of_a_group_that_are_seen_before_their_job_is_are_its_pods() -> None:
    placement = PlacementRecorder({"title": "run", "namespace": "run"}, NOWHERE, lambda: 0.0, {})
    placement.begin()
    labels = {WORKLOAD_LABEL: "work", JOB_LABEL: "train"}
    message = pod_message("train-0", metadata={"labels": labels}, schedulingGroup={"podGroupName": "train"})
    placement.pod("run/train-0", message, gone=False)
    placement.job(PlannedJob("train", "work", 0.0, 4, ({"kind": "PodGroup"}, {"kind": "Pod"})))
    assert list(moment(placement.history, 0).jobs) == ["work/Pod/train"]


def test_a_job_that_is_scaled_wants_as_many_pods_from_then_on() -> None:
    time = 0.0
    placement = PlacementRecorder({"title": "run"}, NOWHERE, lambda: time, {"work": "team"})
    placement.begin()
    placement.job(PlannedJob("web", "work", 0.0, 500, ({"kind": "Deployment"},)))
    time = 2.0
    placement.resized("web", 350)
    placement.resized("nobody's", 1)
    sizes = [moment(placement.history, at).jobs["work/Deployment/web"].size for at in (1000, 2000)]
    assert sizes == [500, 350]


def test_queues_that_one_object_has_come_and_go_with_it() -> None:
    placement = PlacementRecorder({"title": "run"}, NOWHERE, lambda: 0.0, {})

    def configured(*names: str) -> None:
        children = ", ".join(f"{{name: {name}, resources: {{max: {{vcore: 4}}}}}}" for name in names)
        text = f"partitions: [{{queues: [{{name: root, queues: [{children}]}}]}}]"
        placement.collections[CONFIGURATION](
            WatchEvent("MODIFIED", "yunikorn-configs", {"data": {"queues.yaml": text}})
        )

    configured("a", "b")
    configured("b", "c")
    assert set(moment(placement.history, 0).queues) == {"YuniKorn queue/root.b", "YuniKorn queue/root.c"}


def played(directory: Path, scheduler: str, *, gang: bool = False, **trace: Any) -> LoadedExperiment:
    (directory / "t.csv").write_text(TRACE)
    columns = {"arrival": "arrival", "cpu": "cpu", "user": "user"}
    given = {"file": "t.csv", "columns": columns, **trace}
    workload = {"name": "t", "kind": "Job", "queue": "rest", "gang": gang, "arrival": {"trace": given}}
    file = {"name": "x", "scheduler": {"name": scheduler}, "workloads": [workload]}
    return loaded_from(file, directory, "x", "")


def made_for(loaded: LoadedExperiment, *there: str) -> list[str]:
    """The LocalQueues that a run makes."""
    made = queues(loaded.experiment.scheduler.name, waiting(loaded), set(there), {"cpu": "8"})
    return sorted(each["metadata"]["name"] for each in made if each["kind"] == "LocalQueue")


def waits_in(loaded: LoadedExperiment) -> list[str]:
    made = [each for job in make(loaded, {}).jobs for each in job.objects]
    return [each["metadata"]["labels"][QUEUE] for each in made if each["kind"] == "Job"]


@pytest.mark.parametrize("gang", [False, True])
def test_each_job_waits_in_the_queue_of_its_user(tmp_path: Path, gang: bool) -> None:
    assert waits_in(played(tmp_path, "kueue", gang=gang, userQueues=True)) == ["6214e9", "team-b", "rest", "6214e9"]


def test_without_it_all_wait_in_the_workloads_own(tmp_path: Path) -> None:
    assert waits_in(played(tmp_path, "kueue")) == ["rest"] * 4


def test_the_run_makes_the_queues_that_the_setup_has_not(tmp_path: Path) -> None:
    assert made_for(played(tmp_path, "kueue", userQueues=True), "team-b") == ["6214e9", "rest"]
    assert made_for(played(tmp_path, "kueue")) == ["rest"]


def test_a_scheduler_without_queues_takes_the_jobs_as_they_are(tmp_path: Path) -> None:
    for scheduler in ("default", "kube-scheduler"):
        loaded = played(tmp_path, scheduler, userQueues=True)
        assert made_for(loaded) == []
        assert all("queue" not in str(job.objects) for job in make(loaded, {}).jobs)
