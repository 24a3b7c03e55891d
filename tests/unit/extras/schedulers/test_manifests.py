"""How many pods a manifest makes, and what is said of mistakes where that is read."""

from typing import Any

import pytest

from kumulus.extras.schedulers.manifests import expected_pods, later_pods, manifest_problems, pod_templates

PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def workload(kind: str, pod: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "c"}], **(pod or {})}}
    return {"kind": kind, "metadata": {"name": "w"}, "spec": {"template": template, **spec}}


def job_set(replicas: object = None, parallelism: object = None) -> dict[str, Any]:
    job = {"spec": {"parallelism": parallelism, "template": {"spec": {"containers": [{"name": "c"}]}}}}
    return {"kind": "JobSet", "spec": {"replicatedJobs": [{"replicas": replicas, "template": job}]}}


@pytest.mark.parametrize(
    ("each", "pods"),
    [
        (workload("Deployment", replicas=3), 3),
        (workload("ReplicationController", replicas=3), 3),
        (workload("Deployment"), 1),
        # A key without a value, as an empty line of a template makes it.
        (workload("Deployment", replicas=None), 1),
        (workload("Job", parallelism=None, completions=None), 1),
        (workload("Job", parallelism=4, completions=2), 2),
        (workload("Job", parallelism=4, completions=None), 4),
        (job_set(), 1),
        (job_set(3, 4), 12),
        (workload("CronJob"), 0),
    ],
)
def test_an_objects_pods_are_counted(each: dict[str, Any], pods: int) -> None:
    assert manifest_problems((), each) == []
    assert expected_pods(each) == pods
    assert len(list(pod_templates(each))) == 1


def test_pods_that_follow_as_others_complete_are_counted() -> None:
    counts = [(4, 10, 6), (4, 2, 0), (4, None, 0), (None, 3, 2), (None, None, 0), (0, 5, 0)]
    for parallelism, completions, later in counts:
        assert later_pods(workload("Job", parallelism=parallelism, completions=completions)) == later
    jobs = job_set(3, 4)
    jobs["spec"]["replicatedJobs"][0]["template"]["spec"]["completions"] = 5
    assert later_pods(jobs) == 3
    assert later_pods(workload("Deployment", replicas=3)) == 0


@pytest.mark.parametrize(
    ("each", "said"),
    [
        (workload("Deployment", replicas="three"), 'spec.replicas: is "three"'),
        (workload("StatefulSet", replicas=-1), "spec.replicas: is -1"),
        (workload("Job", parallelism=[2]), "spec.parallelism: is "),
        (workload("Job", completions=1.5), "spec.completions: is 1.5, which is not whole"),
        (job_set("many"), 'spec.replicatedJobs[0].replicas: is "many"'),
        (job_set(2, "many"), 'spec.replicatedJobs[0].template.spec.parallelism: is "many"'),
        ({"kind": "JobSet", "spec": {"replicatedJobs": [None]}}, "spec.replicatedJobs[0]: is nothing"),
        ({"kind": "Deployment", "spec": [1]}, "spec: is "),
        ({"kind": "DaemonSet", "spec": "all"}, 'spec: is "all"'),
        ({"kind": "Deployment", "metadata": "web"}, 'metadata: is "web"'),
        (workload("Deployment", {"containers": [None]}), "spec.template.spec.containers[0]: is nothing"),
        (workload("CronJob", {"containers": ["c"]}), 'spec.template.spec.containers[0]: is "c"'),
        (workload("Deployment", {"nodeSelector": ["a"]}), "spec.template.spec.nodeSelector: is "),
        (workload("Deployment", {"affinity": "x"}), "spec.template.spec.affinity: is "),
        (
            workload("Deployment", {"containers": [{"resources": {"requests": ["cpu"]}}]}),
            "spec.template.spec.containers[0].resources.requests: is ",
        ),
        (
            workload("Deployment", {"affinity": {"podAntiAffinity": {PREFERRED: 1}}}),
            f"spec.template.spec.affinity.podAntiAffinity.{PREFERRED}: is 1",
        ),
    ],
)
def test_a_mistake_is_told_with_its_place(each: dict[str, Any], said: str) -> None:
    [found] = manifest_problems((), each)
    assert str(found).startswith(said)
    assert found.remedy


def test_of_other_kinds_nothing_is_said() -> None:
    assert manifest_problems((), {"kind": "Theirs", "metadata": {"name": "x"}, "spec": ["anything"]}) == []
