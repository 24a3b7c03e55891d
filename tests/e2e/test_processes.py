"""Add-ons whose code runs on the runtime kwok: Kueue, JobSet, LWS and Volcano by their own charts; nothing is left."""

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from kumulus.extras.lab.plan.pods import JOB_LABEL
from tests.support import examples, runs
from tests.support.api import Api, Refused
from tests.support.project import Project
from tests.support.tools import require

pytestmark = pytest.mark.e2e
STAGING = "us-central1-docker.pkg.dev/k8s-staging-images"
# By add-on: its Go module, the chart in it, and the tools that its images stand for.
CHARTS = {
    "kueue": ("sigs.k8s.io/kueue", "charts/kueue", {f"{STAGING}/kueue/kueue": "kueue"}),
    "jobset": ("sigs.k8s.io/jobset", "charts/jobset", {f"{STAGING}/jobset/jobset": "jobset"}),
    "lws": ("sigs.k8s.io/lws", "charts/lws", {"registry.k8s.io/lws/lws": "lws"}),
    "volcano": (
        "volcano.sh/volcano",
        "installer/helm/chart/volcano",
        {f"docker.io/volcanosh/vc-{each}": f"volcano-{each}" for each in ("scheduler", "controller-manager")},
    ),
}
JOBS = "/apis/batch/v1/namespaces/default/jobs"
JOB_SETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets"
KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
LABEL = {"example.com/pool": "gpu"}
GROUP = {
    "name": "gpu",
    "placement": [{"availabilityZone": "z", "replicas": 4}],
    "nodeTemplate": {
        "metadata": {"labels": LABEL},
        "capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"},
        "taints": [],
    },
}


@pytest.fixture
def install(project: Project, tmp_path: Path) -> Callable[..., Api]:
    """Bring up a stack with an add-on by its own chart, out of the Go module that its program is built from."""

    def bring_up(name: str, values: dict[str, Any] | None = None, **kwok: Any) -> Api:
        module, folder, programs = CHARTS[name]
        require(*programs.values(), "helm")
        source = examples.module(module, next(iter(programs.values())))
        chart = shutil.copytree(source / folder, tmp_path / name)
        project.install_plugins()
        addon = {"name": name, "namespace": f"{name}-system", "chart": str(chart), "valuesObject": values or {}}
        kwok["processes"] = programs
        project.write_stack({"nodeGroups": [GROUP], "clusterAddons": [addon], "kwok": kwok})
        foreseen = json.dumps(list(project.foresee().messages.values()))
        assert f"pods of {', '.join(sorted(programs))} run on this machine" in foreseen
        project.up()
        return project.api()

    return bring_up


def job(name: str, cpu: str) -> dict[str, Any]:
    container = {"name": "c", "image": "none", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": name, "labels": {"kueue.x-k8s.io/queue-name": "queue"}}
    return {
        "metadata": metadata,
        "spec": {"suspend": False, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    }


def make(api: Api, kind: str, name: str, spec: dict[str, Any], within: str = "") -> None:
    """Make an object of Kueue's."""
    body = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name}, "spec": spec}
    api.create(f"{KUEUE}/{within}{kind.lower()}s", body)


def test_kueue_by_its_chart_queues_jobs_and_refuses_by_its_webhook_and_goes_with_the_stack(
    project: Project, install: Callable[..., Api]
) -> None:
    api = install("kueue")
    [manager] = api.list("/api/v1/namespaces/kueue-system/pods")
    assert manager["spec"]["nodeName"] == "local"
    assert {each["type"]: each["status"] for each in manager["status"]["conditions"]}["Ready"] == "True"
    assert '"msg":"Starting manager"' in project.kubectl("logs", "-n", "kueue-system", manager["metadata"]["name"])

    flavor = {"name": "default", "resources": [{"name": "cpu", "nominalQuota": "4"}]}
    groups = [{"coveredResources": ["cpu"], "flavors": [flavor]}]
    make(api, "ResourceFlavor", "default", {})
    make(api, "ClusterQueue", "all", {"namespaceSelector": {}, "resourceGroups": groups})
    make(api, "LocalQueue", "queue", {"clusterQueue": "all"}, "namespaces/default/")
    for name, cpu in (("fits", "4"), ("waits", "4")):
        assert api.create(JOBS, job(name, cpu))["spec"]["suspend"] is True, "by its webhook"
    found = api.until(JOBS, lambda found: sorted(each["spec"]["suspend"] for each in found.values()) == [False, True])
    [admitted] = [name for name, each in found.items() if not each["spec"]["suspend"]]
    with pytest.raises(Refused, match=r"admission webhook .* denied the request"):
        api.merge(f"{JOBS}/{admitted}", {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "other"}}})

    kubelets = [pid for name, pids in project.processes().items() if name.endswith("local-node") for pid in pids]
    programs = [each for pid in kubelets for each in psutil.Process(pid).children(recursive=True)]
    assert any(each.name() == "manager" for each in programs)
    project.destroy()
    assert psutil.wait_procs(programs, timeout=10)[1] == []
    assert not project.cluster().exists()


async def test_jobsets_by_their_chart_are_native_gangs_that_are_placed_whole_or_wait_whole(
    project: Project, install: Callable[..., Api], tmp_path: Path
) -> None:
    api = install("jobset", workloads="native")
    spec = {"replicatedJobs": [], "successPolicy": {"operator": "All", "targetReplicatedJobs": ["nobody"]}}
    body = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "wrong"}, "spec": spec}
    with pytest.raises(Refused, match=r"admission webhook .* denied the request.*nobody"):
        api.create(JOB_SETS, body)
    placed: dict[str, Counter[bool]] = {}

    def look(_: object) -> None:
        pods = api.list("/api/v1/pods", labelSelector=JOB_LABEL)
        for name in ("fits", "never"):
            mine = [each["spec"] for each in pods if each["metadata"]["name"].startswith(name)]
            placed[name] = Counter("nodeName" in each for each in mine)

    gang = {"kind": "JobSet", "gang": True, "requests": {"cpu": "5"}, "nodeSelector": LABEL}
    workloads = [{"name": "fits", "workers": 3, **gang}, {"name": "never", "workers": 5, **gang}]
    file = tmp_path / "experiment.yaml"
    native = {"name": "native", "scheduler": {"name": "native"}, "workloads": workloads, "settle": "3s"}
    file.write_text(yaml.safe_dump({**native, "timeout": "30s"}))
    report, _ = await runs.run(project.kubeconfig(), file, on_sample=look)
    assert placed == {"fits": {True: 3}, "never": {False: 5}}
    measures = report.results.tests[0].details.measures
    assert [measures[f"groups.{each}"] for each in ("total", "admitted", "partlyPlaced")] == [2, 1, 0]
    project.destroy()
    assert not project.cluster().exists()


def test_volcano_by_its_chart_places_a_gang_of_its_job_whole_and_none_of_one_that_does_not_fit(
    project: Project, install: Callable[..., Api]
) -> None:
    api = install("volcano", {"custom": {"admission_enable": False}})
    programs = api.list("/api/v1/namespaces/volcano-system/pods")
    assert [each["spec"]["nodeName"] for each in programs] == ["local", "local"]
    for name, workers in (("fits", 3), ("never", 5)):
        container = {"name": "c", "image": "none", "resources": {"requests": {"cpu": "5"}}}
        template = {"spec": {"restartPolicy": "Never", "nodeSelector": LABEL, "containers": [container]}}
        spec = {"schedulerName": "volcano", "minAvailable": workers}
        spec["tasks"] = [{"name": "worker", "replicas": workers, "template": template}]
        body = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": name}, "spec": spec}
        api.create("/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs", body)
    groups = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"

    def placed(_: object) -> bool:
        pods = api.list("/api/v1/namespaces/default/pods")
        running = Counter(each["metadata"]["name"].partition("-")[0] for each in pods if "nodeName" in each["spec"])
        assert running["never"] == 0
        return running["fits"] == 3

    api.until(groups, placed)
    project.destroy()
    assert not project.cluster().exists()


def test_lws_by_its_chart_makes_groups_of_a_leader_and_its_workers_and_refuses_a_group_of_nobody(
    project: Project, install: Callable[..., Api]
) -> None:
    api = install("lws")
    sets, pods = (
        "/apis/leaderworkerset.x-k8s.io/v1/namespaces/default/leaderworkersets",
        "/api/v1/namespaces/default/pods",
    )
    template = {"spec": {"containers": [{"name": "c", "image": "none"}]}}

    def body(name: str, size: int) -> dict[str, Any]:
        spec = {"replicas": 2, "leaderWorkerTemplate": {"size": size, "workerTemplate": template}}
        return {
            "apiVersion": "leaderworkerset.x-k8s.io/v1",
            "kind": "LeaderWorkerSet",
            "metadata": {"name": name},
            "spec": spec,
        }

    with pytest.raises(Refused, match=r"admission webhook .* denied the request.*size"):
        api.create(sets, body("wrong", 0))
    api.create(sets, body("serving", 3))
    names = ["serving-0", "serving-0-1", "serving-0-2", "serving-1", "serving-1-1", "serving-1-2"]
    api.until(
        pods, lambda found: [name for name, each in sorted(found.items()) if each["spec"].get("nodeName")] == names
    )
    project.destroy()
    assert not project.cluster().exists()
