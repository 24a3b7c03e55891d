"""``observability`` on a real kind cluster: the chart kube-prometheus-stack, its Prometheus, and every panel's query.

The chart can be fetched from no machine of ours, so these tests run where KUMULUS_PROMETHEUS_CHART names a directory
with it (75.16.1, its dependencies under ``charts/``), and are skipped elsewhere. The images are made here from Go
modules (tests/support/prometheus_images); of Grafana there is none. The tests share one stack, in their order.
"""

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from kumulus.extras.watch.dashboards import DASHBOARDS
from tests.support import docker, kind, prometheus_images
from tests.support.api import Api
from tests.support.pods import JOBS, PODS, Object
from tests.support.processes import await_that
from tests.support.project import NODES, ROOT, Project
from tests.support.prometheus import Prometheus

CHART = os.environ.get("KUMULUS_PROMETHEUS_CHART", "")
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(not CHART, reason="KUMULUS_PROMETHEUS_CHART names no directory with kube-prometheus-stack"),
]

NAME = f"kumulus-test-{os.getpid()}"
SERVICE = "/api/v1/namespaces/monitoring/services/kube-prometheus-stack-prometheus:9090/proxy"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SERVICES = "/api/v1/namespaces/kube-system/services"
# The first two are about alerting itself. node-exporter and etcd tell of this machine's load, disk and clock.
CALM = {"Watchdog", "InfoInhibitor", "etcdHighFsyncDurations", "etcdHighCommitDurations"}
FLEET: dict[str, Any] = {
    "nodeGroups": [
        {
            "name": "a100",
            "instanceType": "a2-ultragpu-8g",
            "placement": [{"availabilityZone": "z1", "replicas": 3}, {"availabilityZone": "z2", "replicas": 2}],
            "nodeTemplate": {"metadata": {"labels": {"datastrophic.io/gpu-type": "nvidia-a100-80gb"}}},
        },
        {
            "name": "cpu",
            "placement": [{"availabilityZone": "z1", "replicas": 2}],
            "nodeTemplate": {"capacity": {"cpu": "16", "memory": "64Gi", "pods": "110"}},
        },
    ],
    "podUsage": [
        {
            "name": "all",
            "selector": {"namespaces": ["default"]},
            "cpu": "80%",
            "memory": "60%",
            "gpu": "90%",
            "gpuMemory": "70%",
        }
    ],
}
FAULTS = [
    {"name": "xid79", "kind": "gpu-fell-off-bus", "target": {"names": ["a100-z1-0"]}},
    {"name": "down", "kind": "not-ready", "target": {"names": ["cpu-z1-1"]}},
    {"name": "flaky", "kind": "container-fails", "pods": {"labels": {"app": "flaky"}}},
]
MEASURED: dict[str, Any] = {
    "observability": {"scrapeInterval": "5s", "nodeScrapeInterval": "5s"},
    "prometheusStack": {"chart": CHART, "valuesObject": {"grafana": {"enabled": False}}},
}


@dataclass
class Seen:
    """The stack."""

    project: Project
    """Its project."""
    cluster: dict[str, Any]
    """Its ``kumulus:cluster`` without what is measured."""
    numbers: Iterator[int] = field(default_factory=count)

    def up(self, **more: Any) -> str:
        """Bring it up with these keys besides; what is said."""
        self.project.write_stack({**self.cluster, **more})
        return self.project.up(timeout=600).text

    def nothing_left(self) -> None:
        """Make sure that nothing of the chart is left in the cluster, or will be in a moment."""
        api = self.project.api(NAME)
        await_that(lambda: "monitoring" not in names_of(api, "/api/v1/namespaces"), 60, "the namespace goes", 0.5)
        assert {name for name in names_of(api, CRDS) if "monitoring.coreos.com" in name} == set()
        assert names_of(api, SERVICES) == {"kube-dns", "kwok-controller"}
        assert "kumulus-kubelets" not in names_of(api, "/api/v1/namespaces/kube-system/endpoints")
        for kind_ in ("clusterroles", "clusterrolebindings"):
            names = names_of(api, f"/apis/rbac.authorization.k8s.io/v1/{kind_}")
            assert {name for name in names if "prometheus" in name or "grafana" in name} == set()

    @contextmanager
    def prometheus(self) -> Iterator[Prometheus]:
        """The chart's, by the API server."""
        command = ["kubectl", "--kubeconfig", str(self.project.kubeconfig(NAME)), "proxy", "--port=0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=self.project.environment) as proxy:
            assert proxy.stdout is not None
            port = re.findall(r":(\d+)$", proxy.stdout.readline().strip())[0]
            try:
                yield Prometheus(f"http://127.0.0.1:{port}{SERVICE}")
            finally:
                proxy.terminate()

    def run_pod(self, name: str = "", gpus: int = 0, app: str = "training") -> None:
        """Have something to schedule on the fleet."""
        resources = {"cpu": "1", "memory": "1Gi", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
        container = {"name": "main", "image": "none", "resources": {"requests": resources, "limits": resources}}
        metadata = {"name": name or f"p{next(self.numbers)}", "labels": {"app": app}}
        self.project.api(NAME).create(PODS, {"metadata": metadata, "spec": on_the_fleet(container)})


def names_of(api: Api, path: str) -> set[str]:
    return {each["metadata"]["name"] for each in api.list(path)}


def on_the_fleet(container: Object) -> Object:
    return {"containers": [container], "tolerations": [{"operator": "Exists"}], "nodeSelector": {"type": "kwok"}}


def alarmed(prometheus: Prometheus) -> set[str]:
    """What fires, or would if it went on, but for what is about this machine."""
    labels = [alert["labels"] for alert in prometheus.api("alerts")["alerts"]]
    return {each["alertname"] for each in labels if each.get("job") != "node-exporter"} - CALM


def until_all_answer(prometheus: Prometheus) -> dict[str, int]:
    """How many targets each job has, once all of them are up."""
    give_up = time.monotonic() + 120
    while True:
        targets = prometheus.api("targets", state="active")["activeTargets"]
        down = {target["scrapeUrl"]: target["lastError"] for target in targets if target["health"] != "up"}
        if targets and not down:
            jobs = [target["labels"]["job"] for target in targets]
            return {job: jobs.count(job) for job in jobs}
        assert time.monotonic() < give_up, down
        time.sleep(2)


@pytest.fixture(scope="module")
def seen(module_project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    cluster = {
        **FLEET,
        "name": NAME,
        "runtime": "kind",
        "kind": {"nodeImage": kind.node_image()},
        "kwokCharts": kind.kwok_charts(),
    }
    module_project.install_plugins()
    images = prometheus_images.archive(tmp_path_factory.mktemp("images"))
    made = Seen(module_project, cluster)
    try:
        made.up()
        load: list[str | Path] = [ROOT / "kumulus", "kind", "load", "image-archive", images, "--name", NAME]
        subprocess.run(load, check=True, capture_output=True, timeout=300)
        yield made
    finally:
        for container in kind.containers(NAME):
            docker.docker("rm", "--force", "--volumes", container)


def test_a_chart_that_cannot_be_had_is_told_in_a_preview(seen: Seen) -> None:
    chart = {"repoURL": "http://127.0.0.1:9/charts", "chart": "kube-prometheus-stack"}
    seen.project.write_stack({**seen.cluster, "observability": {}, "prometheusStack": chart})
    preview = seen.project.pulumi("preview")
    assert preview.code != 0
    assert "the chart kube-prometheus-stack 75.16.1 of http://127.0.0.1:9/charts cannot be fetched" in preview.text
    assert "check repoURL and the network" in preview.text


def test_up_ends_when_prometheus_has_come_up_and_a_second_one_changes_nothing(seen: Seen) -> None:
    seen.up(**MEASURED)
    pods = seen.project.api(NAME).list("/api/v1/namespaces/monitoring/pods")
    ready = {pod["metadata"]["name"]: all(each["ready"] for each in pod["status"]["containerStatuses"]) for pod in pods}
    # One of each: node-exporter has none on an emulated node.
    assert len(ready) == 5, ready
    assert all(ready.values()), ready
    assert {"prometheus-kube-prometheus-stack-prometheus-0"} <= set(ready)
    seen.project.preview("--expect-no-changes")
    seen.project.preview("--refresh", "--expect-no-changes")


def test_every_target_answers_and_nobody_is_alarmed(seen: Seen) -> None:
    with seen.prometheus() as prometheus:
        jobs = until_all_answer(prometheus)
        # The real node's kubelet at its three paths, and seven emulated ones.
        assert jobs["kubelet"] == 3 + 7
        assert jobs["node-exporter"] == 1
        assert {name for name, number in jobs.items() if number == 1} >= {
            "apiserver",
            "kube-controller-manager",
            "kube-etcd",
            "kube-proxy",
            "kube-scheduler",
            "kube-state-metrics",
            "kwok-controller",
        }
        groups = prometheus.api("rules")["groups"]
        ours = [rule for group in groups if group["name"].startswith("kumulus-") for rule in group["rules"]]
        assert len(ours) == 26
        assert "err" not in {rule["health"] for group in groups for rule in group["rules"]}
        assert prometheus.values('sum(kumulus:nodes:count{node_group=~".+"})') == [7]
        assert prometheus.values('sum(kumulus:capacity:sum{resource="nvidia_com_gpu"})') == [40]
        assert alarmed(prometheus) == set()


def test_every_panel_of_every_dashboard_has_data(seen: Seen) -> None:
    seen.up(**MEASURED, faults=FAULTS)
    for _ in range(4):
        seen.run_pod(gpus=1)
    seen.run_pod("waits", gpus=16)
    seen.run_pod("fails", app="flaky")
    pod = {**on_the_fleet({"name": "main", "image": "none"}), "restartPolicy": "Never"}
    seen.project.api(NAME).create(JOBS, {"metadata": {"name": "done"}, "spec": {"template": {"spec": pod}}})
    lacking = {
        (board.uid, panel.title, query.expr)
        for board in DASHBOARDS
        # The chart has no prices.
        if board.uid != "kumulus-cost"
        for panel in board.panels()
        for query in panel.queries
    }
    assert len(lacking) > 80
    give_up = time.monotonic() + 240
    with seen.prometheus() as prometheus:
        while lacking := {query for query in lacking if not prometheus.values(query[2])}:
            assert time.monotonic() < give_up, lacking
            print(f"{len(lacking)} queries without data yet")
            # Latencies and rates are of the last minute: something has to happen in it.
            seen.run_pod()
            time.sleep(1)
        for metric, label in {(variable.metric, variable.name) for board in DASHBOARDS for variable in board.variables}:
            assert prometheus.values(f'count by ({label}) ({metric}{{{label}!=""}})') != [], (metric, label)
        assert set(prometheus.values('DCGM_FI_DEV_XID_ERRORS{node="a100-z1-0"}')) == {79}


def test_another_retention_is_previewed_and_taken_up(seen: Seen) -> None:
    changed = {**MEASURED, "observability": {**MEASURED["observability"], "retention": "72h"}}
    seen.project.write_stack({**seen.cluster, **changed})
    foreseen = seen.project.foresee()
    changes = {path for step in foreseen.steps for path in step.changed if step.op == "update"}
    assert any(path.endswith("prometheusSpec.retention") for path in changes), changes
    seen.project.up()
    with seen.prometheus() as prometheus:
        assert prometheus.api("status/flags")["storage.tsdb.retention.time"] == "3d"
    seen.project.preview("--expect-no-changes")


def test_an_image_that_cannot_be_pulled_is_named_and_not_waited_for_for_ever(seen: Seen) -> None:
    chart = {**MEASURED["prometheusStack"], "valuesObject": {}, "timeout": 30}
    seen.project.write_stack({**seen.cluster, **MEASURED, "prometheusStack": chart})
    result = seen.project.pulumi("up", "--yes", "--skip-preview")
    assert result.code != 0
    assert (
        "release monitoring/kube-prometheus-stack is not ready after 30 s: kube-prometheus-stack-grafana-"
        in result.text
    )
    assert re.search(r"(ErrImagePull|ImagePullBackOff) docker.io/grafana/grafana:", result.text)
    assert "load the images into them (with runtime kind: loadImages)" in result.text
    # Without it the next one is well.
    seen.up(**MEASURED)


def test_without_the_section_nothing_of_it_is_left(seen: Seen) -> None:
    nodes = seen.project.node_uids(NAME)
    assert "is kept" not in seen.up()
    seen.nothing_left()
    assert seen.project.node_uids(NAME) == nodes
    seen.project.preview("--expect-no-changes")


def test_on_a_cluster_that_is_there_already_it_comes_and_goes_alike(seen: Seen) -> None:
    """The kind cluster is another stack's: only its KWOK is used, of whose nodes there are no series then."""
    other = f"{seen.project.stack}-other"
    mine = seen.project.stack
    kubeconfig = {"kubeconfig": str(seen.project.kubeconfig(NAME))}
    group = {**FLEET["nodeGroups"][1], "name": "others"}
    cluster = {"runtime": "existing", "name": "others", "existing": kubeconfig, "nodeGroups": [group], **MEASURED}
    api = seen.project.api(NAME)
    before = names_of(api, NODES)
    try:
        seen.project.write_stack(cluster, other)
        seen.project.up(timeout=600)
        seen.project.preview("--expect-no-changes")
        with seen.prometheus() as prometheus:
            jobs = until_all_answer(prometheus)
            assert jobs["kubelet"] == 3
            assert "kwok-controller" not in jobs
        seen.project.destroy()
    finally:
        seen.project.stack = mine
    assert names_of(api, NODES) == before
    seen.nothing_left()


def test_destroy_leaves_nothing(seen: Seen) -> None:
    seen.up(**MEASURED)
    seen.project.destroy()
    assert kind.containers(NAME) == {}
    assert not Path(seen.project.cluster(NAME)).exists()
