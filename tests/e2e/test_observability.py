"""A stack with ``observability``: what is measured, every panel of the dashboards, and changes in place.

Its tools are none of every machine: without them these tests are skipped (``./kumulus tools --with observability``).
The tests share one stack, in their order.
"""

import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest

from kumulus import toolchain
from kumulus.extras.watch.dashboards import DASHBOARDS
from kumulus.nodes.catalog.prices import catalog
from kumulus.runtimes.kwok.layout import Layout
from tests.support import disk, processes, stranger
from tests.support.pods import JOBS, PODS, TOLERATE_ALL, Object
from tests.support.processes import occupied
from tests.support.project import Project
from tests.support.prometheus import Prometheus
from tests.support.stranger import Question
from tests.support.tools import require

pytestmark = pytest.mark.e2e
TOOLS = ("prometheus", "kube-state-metrics", "metrics-server")
OURS = {f"quickstart/{name}" for name in TOOLS}
EACH_MINUTE = "apiserver_resource_objects"
CLUSTER: dict[str, Any] = {
    "nodeGroups": [
        {
            "name": "a100",
            "instanceType": "a2-ultragpu-8g",
            "placement": [
                {"availabilityZone": "z1", "replicas": 3, "region": "us-central1"},
                {"availabilityZone": "z2", "replicas": 2, "region": "us-central1"},
            ],
            "nodeTemplate": {"metadata": {"labels": {"datastrophic.io/gpu-type": "nvidia-a100-80gb"}}},
        },
        {
            "name": "cpu",
            "placement": [{"availabilityZone": "z1", "replicas": 2}],
            "nodeTemplate": {"capacity": {"cpu": "16", "memory": "64Gi", "pods": "110"}},
        },
    ],
    "podUsage": [{"name": "all", "cpu": "80%", "memory": "60%", "gpu": "90%", "gpuMemory": "70%"}],
    "faults": [
        {"name": "xid79", "kind": "gpu-fell-off-bus", "target": {"names": ["a100-z1-0"]}},
        {"name": "down", "kind": "not-ready", "target": {"names": ["cpu-z1-1"]}},
        {"name": "flaky", "kind": "container-fails", "pods": {"labels": {"app": "flaky"}}},
    ],
    "observability": {"scrapeInterval": "2s", "nodeScrapeInterval": "5s"},
}


@dataclass
class Seen:
    """The stack, up."""

    project: Project
    numbers: Iterator[int] = field(default_factory=count)

    @property
    def prometheus(self) -> Prometheus:
        return Prometheus(self.project.outputs()["prometheus"], self.project.cluster() / "pki")

    def up(self, observability: dict[str, Any] | None, *arguments: str) -> None:
        """Bring the stack up with another section ``observability``, or with none."""
        self.write(observability)
        self.project.up(*arguments)

    def write(self, observability: dict[str, Any] | None) -> None:
        self.project.write_stack({**CLUSTER, "observability": observability})

    def run_pods(self, count: int = 1) -> None:
        """Have something to schedule."""
        for _ in range(count):
            self.project.api().create(PODS, pod(f"p{next(self.numbers)}", gpus=1))

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Nothing of the cluster but metrics' components is touched."""
        nodes, identity, before = self.project.node_uids(), self.project.identity(), self.project.processes()
        yield
        after = self.project.processes()
        assert {name for name in before if name not in OURS and before[name] != after.get(name)} == set()
        assert (self.project.node_uids(), self.project.identity()) == (nodes, identity)


def pod(name: str, gpus: int = 0, app: str = "training") -> Object:
    resources = {"cpu": "4", "memory": "8Gi", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    container = {"name": "main", "image": "none", "resources": {"requests": resources, "limits": resources}}
    return {"metadata": {"name": name, "labels": {"app": app}}, "spec": _spec(container)}


def _spec(container: Object) -> Object:
    return {"containers": [container], "tolerations": TOLERATE_ALL}


def job(name: str) -> Object:
    spec = {**_spec({"name": "main", "image": "none"}), "restartPolicy": "Never"}
    return {"metadata": {"name": name}, "spec": {"template": {"spec": spec}}}


@pytest.fixture(scope="module")
def seen(module_project: Project) -> Seen:
    """The stack with its workload: pods that run, wait, fail and have ended."""
    require(*TOOLS)
    module_project.write_stack(CLUSTER)
    module_project.up()
    made = Seen(module_project)
    api = module_project.api()
    made.run_pods(4)
    api.create(PODS, pod("waits", gpus=16))
    api.create(PODS, pod("fails", app="flaky"))
    api.create(JOBS, job("done"))
    return made


def test_every_panel_of_every_dashboard_has_data(seen: Seen) -> None:
    await_data(seen, {query for query in panels() if EACH_MINUTE not in query[2]})


def panels() -> set[tuple[str, str, str]]:
    """The queries of all dashboards, each with its dashboard and panel."""
    return {
        (board.uid, panel.title, query.expr)
        for board in DASHBOARDS
        for panel in board.panels()
        for query in panel.queries
    }


def await_data(seen: Seen, lacking: set[tuple[str, str, str]]) -> None:
    prometheus = seen.prometheus
    give_up = time.monotonic() + 150
    while True:
        # Latencies and rates are of the last minute: something has to happen in it.
        seen.run_pods()
        lacking = {query for query in lacking if not prometheus.values(query[2])}
        if not lacking:
            break
        assert time.monotonic() < give_up, lacking
        time.sleep(1)


def test_series_that_kemus_own_dashboard_asks_for_are_there(seen: Seen) -> None:
    labels = "label_datastrophic_io_gpu_type, label_topology_kubernetes_io_zone"
    nodes = f'* on(node) group_left({labels}) kube_node_labels{{label_datastrophic_io_gpu_type!=""}}'
    running = '* on(pod, namespace) group_left(phase) (kube_pod_status_phase{phase="Running"} == 1)'
    of_pods = f"* on(pod, namespace) group_left(node) kube_pod_info {nodes}"
    queries = (
        'count by (label_node_kubernetes_io_instance_type) (kube_node_labels{label_datastrophic_io_gpu_type!=""})',
        f'sum(kube_node_status_capacity{{resource="nvidia_com_gpu"}} {nodes})',
        f'sum(kube_pod_container_resource_requests{{resource="nvidia_com_gpu"}} {running} {of_pods})',
        f'sum by (phase) (kube_pod_status_phase{{phase!="Pending"}} {of_pods})',
    )
    await_data(seen, {("kemu", "", query) for query in queries})


def test_what_the_dashboards_show_is_what_there_is(seen: Seen) -> None:
    prometheus = seen.prometheus
    assert prometheus.values("sum(kumulus:nodes:count)") == [7]
    # One GPU of forty fell off the bus.
    assert prometheus.values('sum(kumulus:capacity:sum{resource="nvidia_com_gpu"})') == [39]
    assert prometheus.values("sum(kumulus:nodes_faulted:count)") == [2]
    assert prometheus.values("kumulus:gpus_pending:sum")[0] >= 16
    hourly = catalog().of("a2-ultragpu-8g", "us-central1")
    assert hourly is not None
    assert prometheus.values("sum(kumulus:cost:hourly)") == [pytest.approx(5 * hourly.hourly)]
    assert prometheus.values("kumulus:nodes_unpriced:count") == [2]
    assert prometheus.values('count(kube_node_annotations{annotation_kumulus_io_faults="xid79"})') == [1]
    busy = prometheus.values('DCGM_FI_DEV_GPU_UTIL{gpu="0",node="a100-z1-0"}')
    assert set(map(round, busy)) <= {0, 90}
    assert set(prometheus.values('DCGM_FI_DEV_XID_ERRORS{gpu!="",node="a100-z1-0"}')) == {79}
    assert set(prometheus.values('DCGM_FI_DEV_XID_ERRORS{gpu!="",node!="a100-z1-0"}')) == {0}
    # 70 % of a GPU's 81,920 MiB where a pod has it.
    memory = set(map(round, prometheus.values('DCGM_FI_DEV_FB_USED{gpu!=""}')))
    assert 57344 in memory
    assert memory <= {0, 57344}
    assert all(20 < each < 90 for each in prometheus.values('DCGM_FI_DEV_GPU_TEMP{gpu!=""}'))


def test_every_choice_above_a_dashboard_has_values(seen: Seen) -> None:
    choices = {(variable.metric, variable.name) for board in DASHBOARDS for variable in board.variables}
    assert choices
    prometheus = seen.prometheus
    for metric, label in choices:
        assert prometheus.values(f'count by ({label}) ({metric}{{{label}!=""}})') != [], (metric, label)


def test_every_target_answers_and_every_rule_can_be_evaluated(seen: Seen) -> None:
    prometheus = seen.prometheus
    # Prometheus finds the nodes' endpoints only some seconds after it has started.
    read = 'up{job="kubelet"}'
    processes.await_that(lambda: len(prometheus.values(read)) == 7, 60, "every node was read once", 0.5)
    targets = prometheus.api("targets")["activeTargets"]
    assert {target["lastError"] for target in targets if target["health"] != "up"} == set()
    jobs = {target["labels"]["job"] for target in targets}
    assert jobs == {
        "apiserver",
        "kube-controller-manager",
        "kube-etcd",
        "kube-scheduler",
        "kube-state-metrics",
        "kubelet",
        "kwok-controller",
        "metrics-server",
        "prometheus",
    }
    assert len([target for target in targets if target["labels"]["job"] == "kubelet"]) == 7
    rules = [rule for group in prometheus.api("rules")["groups"] for rule in group["rules"]]
    # One of them is the price of the one kind of machine that has one.
    assert len(rules) == 27
    assert {rule["health"] for rule in rules} == {"ok"}


def test_kubectl_top_works(seen: Seen) -> None:
    def told(what: str) -> str:
        command = ["kubectl", "--kubeconfig", str(seen.project.kubeconfig()), "top", what, "--no-headers"]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60).stdout

    processes.await_that(lambda: "a100-z1-1" in told("nodes") and "p0" in told("pods"), 90, "kubectl top", 1.0)


def test_a_prometheus_that_died_is_started_again_with_its_samples(seen: Seen) -> None:
    begun = time.time() - 10
    processes.kill(seen.project.processes()["quickstart/prometheus"])
    [step] = seen.project.foresee("--refresh").steps
    assert (step.op, step.changed) == ("update", {"status": "update"})
    with seen.unchanged():
        seen.project.up("--refresh")
    found = seen.prometheus.api("query", query="up{job='prometheus'}", time=str(begun))["result"]
    assert [sample["value"][1] for sample in found] == ["1"]


def test_without_room_on_the_disk_it_is_not_started_and_that_is_said(seen: Seen) -> None:
    processes.kill(seen.project.processes()["quickstart/prometheus"])
    with disk.small(seen.project.cluster() / "prometheus", 8):
        result = seen.project.pulumi("up", "--yes", "--skip-preview", "--refresh")
    assert result.code != 0
    assert "no disk space: 8 MiB free" in result.text
    assert "Prometheus of cluster quickstart needs 256 MiB to start" in result.text
    assert "Traceback" not in result.text
    seen.project.up("--refresh")
    assert seen.prometheus.values("up") != []


def test_another_user_and_a_page_get_no_series_but_those_of_the_nodes(seen: Seen) -> None:
    layout = Layout(seen.project.cluster())
    ports = {**layout.ports()}
    page = (("Origin", "https://page.example"),)
    for name, paths in {
        "prometheus": ["/api/v1/labels", "/metrics", "/-/ready", "/federate?match[]=up", "/"],
        "kube-state-metrics": ["/metrics", "/healthz", "/"],
        "kube-state-metrics (telemetry)": ["/metrics", "/"],
    }.items():
        for scheme, statuses in (("https", {0}), ("http", {0, 400})):
            asked = [Question(ports[name], path, scheme, headers=page) for path in paths]
            for each, answer in zip(asked, stranger.ask(asked), strict=True):
                assert answer.status in statuses, each
                assert "access-control-allow-origin" not in answer.headers
    for path, status in {
        "/livez": 200,
        "/readyz": 200,
        "/metrics": 403,
        "/apis/metrics.k8s.io/v1beta1/pods": 403,
    }.items():
        [answer] = stranger.ask([Question(ports["metrics-server"], path, headers=page)])
        assert (answer.status, "access-control-allow-origin" in answer.headers) == (status, False)
    # What docs/security.md says is not kept from them: kwok-controller has no authentication.
    nodes = [Question(ports["kwok-controller"], "/discovery/prometheus", headers=page)]
    [answer] = stranger.ask(nodes)
    assert (answer.status, "access-control-allow-origin" in answer.headers) == (200, False)
    assert "a100-z1-0" in answer.text


def test_with_the_clusters_certificate_a_page_still_may_not_read(seen: Seen) -> None:
    prometheus = seen.prometheus
    asked = urllib.request.Request(f"{prometheus.address}/api/v1/labels", headers={"Origin": "https://page.example"})
    with urllib.request.urlopen(asked, timeout=30, context=prometheus.tls) as answer:
        assert answer.headers["Access-Control-Allow-Origin"] is None


def test_promtool_asks_with_the_file_that_is_written_for_it(seen: Seen) -> None:
    require("promtool")
    promtool = toolchain.find("promtool")
    told = f"--http.config.file={seen.project.cluster() / 'prometheus' / 'client.yaml'}"
    query = ["query", "instant", told, seen.prometheus.address, "sum(kumulus:nodes:count)"]
    done = subprocess.run([promtool, *query], capture_output=True, text=True, check=False, timeout=60)
    assert "=> 7 @" in done.stdout, done.stderr


def test_the_panel_of_what_the_api_server_counts_once_a_minute_has_data_as_well(seen: Seen) -> None:
    counted = {query for query in panels() if EACH_MINUTE in query[2]}
    assert counted
    await_data(seen, counted)


def test_a_change_is_previewed_and_restarts_prometheus_alone(seen: Seen) -> None:
    changed = {**CLUSTER["observability"], "retention": "3h", "memory": "512Mi"}
    seen.write(changed)
    foreseen = seen.project.foresee()
    said = "observability: prometheus will be restarted; samples stay (up to 3h or 2 GiB of samples)"
    assert said in foreseen.messages["quickstart-control-plane"]
    before = seen.project.processes()
    with seen.unchanged():
        seen.project.up()
    after = seen.project.processes()
    assert {name for name in after if after[name] != before[name]} == {"quickstart/prometheus"}
    assert seen.prometheus.api("status/flags")["storage.tsdb.retention.time"] == "3h"


def test_a_port_that_is_in_use_is_told_with_its_holder_and_nothing_is_changed(seen: Seen) -> None:
    port = int(seen.project.api().server.rpartition(":")[2])
    before = seen.project.processes()
    seen.write({**CLUSTER["observability"], "prometheusPort": port})
    result = seen.project.pulumi("up", "--yes", "--skip-preview")
    assert result.code != 0
    assert f"port {port} (observability.prometheusPort) is in use by pid" in result.text
    assert seen.project.processes() == before


def test_ports_that_others_took_meanwhile_are_left_to_them_and_everything_is_measured_at_the_new_ones(
    seen: Seen,
) -> None:
    seen.write(CLUSTER["observability"])
    before = Layout(seen.project.cluster()).ports()
    taken = {"prometheus", "kwok-controller"}
    processes.kill(pid for name in taken for pid in seen.project.processes()[f"quickstart/{name}"])
    with occupied(before["prometheus"]), occupied(before["kwok-controller"]):
        said = seen.project.up("--refresh").text
        after = Layout(seen.project.cluster()).ports()
        assert {name for name in before if before[name] != after[name]} == taken
        assert f"prometheus: port {before['prometheus']} is in use by pid" in said
        assert seen.prometheus.address == f"https://127.0.0.1:{after['prometheus']}"
        processes.await_that(
            lambda: {each["health"] for each in seen.prometheus.api("targets")["activeTargets"]} == {"up"},
            90,
            "every target answers",
            0.5,
        )


def test_a_port_that_the_stacks_file_names_is_not_given_up(seen: Seen) -> None:
    port = Layout(seen.project.cluster()).ports()["prometheus"]
    seen.up({**CLUSTER["observability"], "prometheusPort": port})
    processes.kill(seen.project.processes()["quickstart/prometheus"])
    with occupied(port):
        result = seen.project.pulumi("up", "--yes", "--skip-preview", "--refresh")
    assert result.code != 0
    assert f"prometheus of cluster quickstart cannot start: its port {port} is in use by pid" in result.text
    seen.up(CLUSTER["observability"], "--refresh")
    assert seen.prometheus.values("up") != []


def test_it_is_removed_and_added_in_place(seen: Seen) -> None:
    seen.write(None)
    foreseen = seen.project.foresee()
    said = "observability: Prometheus goes, with its samples, and kube-state-metrics"
    assert said in foreseen.messages["quickstart-control-plane"]
    with seen.unchanged():
        seen.project.up()
    # metrics-server is podUsage's as well.
    assert OURS & set(seen.project.processes()) == {"quickstart/metrics-server"}
    assert not (seen.project.cluster() / "prometheus").exists()
    assert "prometheus" not in seen.project.outputs()
    assert [(each.name, each.found.get("drift")) for each in seen.project.foresee("--refresh").steps] == []

    with seen.unchanged():
        seen.up(CLUSTER["observability"])
    assert set(seen.project.processes()) >= OURS
    assert seen.project.foresee("--refresh").steps == ()


def test_nothing_is_left_of_it(seen: Seen) -> None:
    seen.project.destroy()
    assert seen.project.processes() == {}
    assert not seen.project.cluster().exists()
