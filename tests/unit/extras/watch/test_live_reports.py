"""What jobs and queues say of themselves."""

from __future__ import annotations

from typing import Any

import pytest

from kumulus.extras.watch.live import reports
from kumulus.extras.watch.live.reports import JobReport, Member, Quota

JOB = {"kind": "Job", "name": "train"}


def made(spec: dict[str, Any], status: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": "train", "namespace": "a", **metadata}, "spec": spec, "status": status or {}}


def condition(kind: str, status: str, message: str = "") -> dict[str, str]:
    return {"type": kind, "status": status, "message": message}


def test_a_job_asks_for_as_many_pods_as_run_at_once_or_are_left() -> None:
    assert reports.job(made({"parallelism": 8, "completions": 8})) == JobReport("Job", "train", "a", 8)
    assert reports.job(made({"parallelism": 8, "completions": 3})) == JobReport("Job", "train", "a", 3)
    assert reports.job(made({})) == JobReport("Job", "train", "a", 1)
    suspended = reports.job(made({"suspend": True}, labels={"kueue.x-k8s.io/queue-name": "q"}))
    assert suspended == JobReport("Job", "train", "a", 1, "q", 0, "suspended")
    complete = reports.job(made({}, {"conditions": [condition("Complete", "True")]}))
    assert complete is not None
    assert complete.says == "Complete"


def test_a_job_of_a_job_set_is_the_sets() -> None:
    assert reports.job(made({}, ownerReferences=[{"kind": "JobSet", "name": "set"}])) is None
    spec = {"replicatedJobs": [{"replicas": 2, "template": {"spec": {"parallelism": 4}}}, {"template": {}}]}
    assert reports.job_set(made(spec)) == JobReport("JobSet", "train", "a", 9)


def test_when_it_was_made_is_known() -> None:
    found = reports.job(made({}, creationTimestamp="1970-01-01T00:01:00Z"))
    assert found is not None
    assert found.created == 60


def test_a_workload_speaks_for_the_job_that_owns_it() -> None:
    waits = condition("QuotaReserved", "False", "couldn't assign flavors")
    spec = {"queueName": "q", "priority": 7, "podSets": [{"count": 4}, {"count": 2}]}
    found = reports.workload(made(spec, {"conditions": [waits]}, name="job-train-1", ownerReferences=[JOB]))
    assert found == JobReport("Job", "train", "a", 6, "q", 7, "couldn't assign flavors")
    admitted = {"conditions": [condition("QuotaReserved", "True"), condition("Admitted", "True")]}
    assert (reports.workload(made(spec, admitted, ownerReferences=[JOB])) or found).says == "Admitted"
    pods = [{"kind": "Pod", "name": "a"}, {"kind": "Pod", "name": "b"}]
    assert (reports.workload(made(spec, ownerReferences=pods)) or found).kind == "PodGroup"


def test_a_pod_group_speaks_for_itself_or_for_its_job() -> None:
    status = {"phase": "Inqueue", "conditions": [condition("Unschedulable", "True", "3/4 tasks in gang unschedulable")]}
    found = reports.pod_group(made({"minMember": 4, "queue": "q"}, status))
    assert found == JobReport("PodGroup", "train", "a", 4, "q", 0, "Inqueue: 3/4 tasks in gang unschedulable")
    placed = reports.pod_group(made({}, {**status, "phase": "Running"}))
    assert placed is not None
    assert placed.says == "Running", "the condition stays when the group is placed after all"
    assert (reports.pod_group(made({}, ownerReferences=[JOB])) or found)[:2] == ("Job", "train")


def test_queues_have_quota_use_and_what_waits() -> None:
    flavors = [{"name": f, "resources": [{"name": "cpu", "nominalQuota": n}]} for f, n in (("a", "10"), ("b", 5))]
    status = {
        "pendingWorkloads": 3,
        "admittedWorkloads": 2,
        "flavorsUsage": [{"name": "a", "resources": [{"name": "cpu", "total": "8"}]}],
    }
    (found,) = reports.cluster_queue(made({"resourceGroups": [{"flavors": flavors}]}, status))
    assert found == Quota("ClusterQueue", "train", {"cpu": "10 + 5"}, {"cpu": "8"}, 3, 2)
    assert reports.local_queue(made({}, status)) == [Quota("LocalQueue", "a/train", {}, {}, 3, 2)]
    assert reports.volcano_queue(made({"capability": {"cpu": 9}}, {"allocated": {"cpu": "4"}})) == [
        Quota("Queue", "train", {"cpu": "9"}, {"cpu": "4"}, 0, 0)
    ]
    hard = {"hard": {"pods": "5"}, "used": {"pods": "1"}}
    assert reports.resource_quota(made({}, hard)) == [
        Quota("ResourceQuota", "a/train", {"pods": "5"}, {"pods": "1"}, 0, 0)
    ]


def test_a_group_of_kai_says_why_it_waits() -> None:
    message = "Resources were found for 5 pods while 20 are required for gang scheduling"
    condition = {"type": "UnschedulableOnNodePool", "reason": "Unschedulable", "message": message}
    status = {"schedulingConditions": [{**condition, "reasons": [{"reason": "NotEnough", "message": message}]}]}
    waits = reports.kai_pod_group(made({"minMember": 20, "queue": "q"}, status))
    assert waits == JobReport("PodGroup", "train", "a", 20, "q", 0, f"NotEnough: {message}")
    older = reports.kai_pod_group(made({}, {"schedulingConditions": [condition]}))
    assert older is not None
    assert older.says == f"Unschedulable: {message}"


def test_who_stands_in_a_queue_of_volcano_its_groups_say() -> None:
    phases = {"": False, "Pending": False, "Inqueue": False, "Running": True, "Unknown": True}
    for phase, admitted in phases.items():
        assert reports.volcano_member(made({"queue": "q"}, {"phase": phase})) == Member("Queue", "q", admitted), phase
    assert reports.volcano_member(made({"queue": "q"}, {"phase": "Completed"})) is None
    assert reports.volcano_member(made({})) == Member("Queue", "default", admitted=False)


def test_an_object_without_anything_is_no_error() -> None:
    for read in (*reports.JOBS.values(), *reports.QUEUES.values(), *reports.MEMBERS.values()):
        assert read({"metadata": {"name": "x"}}) is not None
        assert read({"metadata": {"name": "x"}, "spec": None, "status": None}) is not None


def test_yunikorns_quotas_stand_in_its_configuration() -> None:
    text = """
    partitions:
      - name: default
        queues:
          - name: root
            queues:
              - name: research
                resources: {max: {vcore: 8, nvidia.com/gpu: 16}}
                queues:
                  - name: vision
                    resources: {max: {vcore: 4}}
              - name: free
    """
    found = reports.yunikorn_queues({"metadata": {"name": "yunikorn-configs"}, "data": {"queues.yaml": text}})
    assert found == [
        Quota("YuniKorn queue", "root.research", {"vcore": "8", "nvidia.com/gpu": "16"}, {}, 0, 0),
        Quota("YuniKorn queue", "root.research.vision", {"vcore": "4"}, {}, 0, 0),
    ]


@pytest.mark.parametrize(
    "text", ["", "[", "partitions: 5", "partitions: [{queues: [{}]}]", "a: &a [*a]", "x" * 5_000_000]
)
def test_a_configuration_that_yunikorn_would_refuse_has_no_queues(text: str) -> None:
    assert reports.yunikorn_queues({"data": {"queues.yaml": text}}) == []
