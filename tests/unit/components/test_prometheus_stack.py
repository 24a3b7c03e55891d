"""``observability`` where nodes run containers: the chart kube-prometheus-stack, what it is told, and its coming up."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kumulus import EmulatedCluster
from kumulus.extras.watch import resource as release
from kumulus.extras.watch.dashboards import DASHBOARDS
from kumulus.extras.watch.observability import Observability
from kumulus.extras.watch.prometheus_stack import merged_values
from kumulus.extras.watch.resource import ReleaseReady, look
from kumulus.extras.watch.scraping import scraped
from kumulus.kube import ApiError
from kumulus.kube.pods import reason
from kumulus.kwok.controllers import Controllers
from kumulus.model.errors import SpecError
from kumulus.nodes.errors import ProviderError
from kumulus.provider.resources.base import Operation
from kumulus.stackfile.cluster_charts import KwokChartsSpec
from kumulus.stackfile.load import load
from kumulus.stackfile.model import ClusterSpec
from kumulus.stackfile.secrets import Secrets
from tests.support.program import Program, run
from tests.support.project import ROOT
from tests.support.said import Said, problems_of

RELEASE, READY = "kubernetes:helm.sh/v3:Release", "kumulus:index:ReleaseReady"
NAME = "dev-observability-release"
SERVICE = "kubernetes:core/v1:Service"
METRIC = "kubernetes:kwok.x-k8s.io/v1alpha1:Metric"
HELLO = str(ROOT / "tests" / "support" / "hello-chart")
CHART = {"chart": "/srv/chart", "valuesObject": {"grafana": {"enabled": False}}}


def declared(*secrets: tuple[str | int, ...], runtime: str = "kind", **cluster: Any) -> Program:
    loaded = load(
        {"cluster": {"runtime": runtime, "observability": {}, **cluster}}, "dev", ROOT, secrets=Secrets(secrets)
    )
    return run(lambda: EmulatedCluster("dev", loaded=loaded, base=ROOT))


def values(**cluster: Any) -> dict[str, Any]:
    found: dict[str, Any] = declared(**cluster).of_type(RELEASE)[NAME].inputs["values"]
    return found


# --- the section -----------------------------------------------------------------------------------------------------


def told(runtime: str, **cluster: Any) -> dict[str, str]:
    return problems_of(ClusterSpec.checked, {"runtime": runtime, **cluster})


@pytest.mark.parametrize(
    ("section", "path", "said"),
    [
        ({"repoURL": "charts.example.com"}, "repoURL", "write a URL that starts with https://"),
        ({"chart": ""}, "chart", "is not a name"),
        ({"timeout": 0}, "timeout", "write a whole number from 1"),
        ({"valueObject": {}}, "valueObject", "write valuesObject"),
        ({"valuesObject": "a: b: c"}, "valuesObject", ""),
        ({"namespace": "A"}, "namespace", ""),
    ],
)
def test_mistakes_are_told_with_their_place(section: dict[str, Any], path: str, said: str) -> None:
    found = told("kind", observability={}, prometheusStack=section)
    assert list(found) == [f"prometheusStack.{path}"]
    assert said in found[f"prometheusStack.{path}"]


def test_where_it_has_no_effect_that_is_told() -> None:
    found = told("kind", prometheusStack=CHART)
    assert found == {"prometheusStack": "has no effect without observability; write observability: {}"}
    assert "where Prometheus runs alongside the cluster" in told("kwok", prometheusStack=CHART)["prometheusStack"]


def test_values_lie_on_others_key_by_key() -> None:
    below = {"a": {"b": 1, "c": [1, 2]}, "d": {"e": 1}}
    assert merged_values(below, {"a": {"c": [3]}, "d": None, "f": {}}) == {"a": {"b": 1, "c": [3]}, "d": None, "f": {}}
    assert below["a"] == {"b": 1, "c": [1, 2]}


# --- what is declared ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("runtime", ["kind", "existing"])
def test_it_is_a_chart_and_no_option_of_the_cluster(runtime: str) -> None:
    program = declared(runtime=runtime)
    release = program.of_type(RELEASE)[NAME]
    assert release.inputs["chart"] == "kube-prometheus-stack"
    assert release.inputs["version"] == "75.16.1"
    assert release.inputs["repositoryOpts"]["repo"] == "https://prometheus-community.github.io/helm-charts"
    assert "observability" not in program.only("kumulus:index:Cluster").inputs["options"]


def test_its_chart_may_be_another_and_its_values_win() -> None:
    asked = {"retention": "3h", "retentionSize": "1Gi", "nodeLabels": ["example.com/team"]}
    # A path is the project's.
    chart = "./tests/support/hello-chart"
    section = {"chart": chart, "namespace": "metrics", "valuesObject": {"grafana": {"enabled": False}}}
    program = declared(observability=asked, prometheusStack=section)
    release = program.of_type(RELEASE)[NAME]
    assert (release.inputs["chart"], release.inputs["namespace"]) == (HELLO, "metrics")
    assert not {"version", "repositoryOpts"} & set(release.inputs)
    given = release.inputs["values"]
    assert given["grafana"]["enabled"] is False
    assert given["grafana"]["sidecar"]["dashboards"]["label"] == "grafana_dashboard"
    wanted = given["prometheus"]["prometheusSpec"]
    assert (wanted["retention"], wanted["retentionSize"]) == ("3h", f"{1 << 30}B")
    [labels] = given["kube-state-metrics"]["metricLabelsAllowlist"]
    assert labels.startswith("nodes=[kumulus.io/group,")
    assert labels.endswith(",example.com/team]")


def test_a_secret_among_its_values_is_marked() -> None:
    section = {"valuesObject": {"grafana": {"adminPassword": "hunter2"}}}
    place = ("prometheusStack", "valuesObject", "grafana", "adminPassword")
    assert "values" in declared(place, prometheusStack=section).of_type(RELEASE)[NAME].secret_inputs
    assert "values" not in declared(prometheusStack=section).of_type(RELEASE)[NAME].secret_inputs


def test_it_brings_the_rules_and_the_dashboards() -> None:
    program = declared(prometheusStack={"namespace": "metrics"})
    release = program.of_type(RELEASE)[NAME]
    groups = release.inputs["values"]["additionalPrometheusRulesMap"]["kumulus"]["groups"]
    assert [group["name"] for group in groups] == ["kumulus-fleet", "kumulus-fleet-alerts"]
    maps = [
        each
        for name, each in program.of_type("kubernetes:core/v1:ConfigMap").items()
        if name.startswith("dev-observability")
    ]
    assert {name: json.loads(text)["uid"] for each in maps for name, text in each.inputs["data"].items()} == {
        f"{dashboard.uid}.json": dashboard.uid for dashboard in DASHBOARDS
    }
    for each in maps:
        assert each.inputs["metadata"]["labels"] == {"grafana_dashboard": "1"}
        assert each.inputs["metadata"]["namespace"] == "metrics"
        assert f"{RELEASE}::{NAME}" in each.depends_on


def test_nothing_of_it_runs_on_an_emulated_node_or_takes_one_for_a_real_one() -> None:
    given = values()
    operator = given["prometheusOperator"]
    placed = [
        given["prometheus"]["prometheusSpec"],
        operator,
        given["alertmanager"]["alertmanagerSpec"],
        given["grafana"],
        given["kube-state-metrics"],
        given["prometheus-node-exporter"],
    ]
    for each in placed:
        terms = each["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        assert {"key": "kumulus.io/pool", "operator": "DoesNotExist"} in terms[0]["matchExpressions"]
    # Otherwise each emulated node would be asked at an address that is nobody's, at three paths.
    assert operator["kubeletService"] == {
        "name": "kumulus-kubelets",
        "selector": "!kumulus.io/pool,!kumulus.io/cluster,type!=kwok",
    }


def test_the_kubelets_service_goes_after_the_operator_that_would_make_it_anew() -> None:
    program = declared()
    service = program.of_type(SERVICE)["dev-observability-kubelets"]
    assert service.inputs["metadata"]["name"] == "kumulus-kubelets"
    assert service.inputs["metadata"]["labels"] == {"app.kubernetes.io/name": "kubelet", "k8s-app": "kubelet"}
    assert f"{SERVICE}::dev-observability-kubelets" in program.of_type(RELEASE)[NAME].depends_on


def test_up_waits_for_what_operators_make_and_not_for_helm() -> None:
    program = declared(prometheusStack={"timeout": 120, "namespace": "metrics"})
    release, ready = program.of_type(RELEASE)[NAME], program.only(READY)
    assert release.inputs["skipAwait"] is True
    place = {"namespace": "metrics", "name": "kube-prometheus-stack", "timeout": 120}
    assert place.items() <= ready.inputs.items()
    assert f"{RELEASE}::{NAME}" in ready.depends_on
    assert ready.deleted_with == release.deleted_with


# --- KWOK's controllers ----------------------------------------------------------------------------------------------


def test_kwoks_controllers_have_their_nodes_series_where_they_are_asked_for() -> None:
    program = declared(kwokCharts={"shards": 2})
    assert program.only(METRIC).inputs["spec"]["path"] == "/metrics/nodes/{nodeName}/metrics/resource"
    names = {each.inputs["metadata"]["name"] for each in program.of_type(SERVICE).values()}
    assert {"kwok-controller-shard-0", "kwok-controller-shard-1"} <= names
    jobs = program.of_type(RELEASE)[NAME].inputs["values"]["prometheus"]["prometheusSpec"]["additionalScrapeConfigs"]
    assert [job["job_name"] for job in jobs] == ["kwok-controller", "kubelet"]
    assert jobs[0]["static_configs"][0]["targets"] == [
        "kwok-controller-shard-0.kube-system:10247",
        "kwok-controller-shard-1.kube-system:10247",
    ]


def test_without_observability_or_a_kwok_of_ones_own_there_are_none() -> None:
    program = declared(observability=None)
    assert not program.of_type(METRIC)
    assert not program.of_type(SERVICE)
    program = declared(kwokCharts={"install": False})
    assert not program.of_type(METRIC)
    given = program.of_type(RELEASE)[NAME].inputs["values"]
    assert given["prometheus"]["prometheusSpec"]["additionalScrapeConfigs"] == []


def test_a_node_is_asked_for_at_its_controller() -> None:
    asked = Observability(nodeScrapeInterval="1m", memory="512Mi")
    _, job = scraped(asked, "dev", 3)
    [found] = job["kubernetes_sd_configs"]
    assert found["selectors"] == [{"role": "node", "label": "kumulus.io/cluster=dev"}]
    assert (job["scrape_interval"], job["scrape_timeout"]) == ("1m", "30s")
    assert job["target_limit"] == asked.most_nodes
    rules = {rule["target_label"]: rule for rule in job["relabel_configs"] if "regex" not in rule}
    assert rules["__address__"]["replacement"] == "kwok-controller-shard-0.kube-system:10247"
    assert rules["__metrics_path__"]["replacement"] == "/metrics/nodes/$1/metrics/resource"
    # The chart's own rules tell kubelets' jobs apart by it.
    assert rules["metrics_path"]["replacement"] == "/metrics/resource"
    [sharded] = [rule for rule in job["relabel_configs"] if "regex" in rule]
    assert sharded["source_labels"] == ["__meta_kubernetes_node_label_kumulus_io_shard"]
    # A node without the label stays the first one's.
    assert sharded["regex"] == "(.+)"
    assert sharded["replacement"] == "kwok-controller-shard-$1.kube-system:10247"


def test_a_controllers_service_has_its_pods_alone() -> None:
    controllers = Controllers(KwokChartsSpec().settings(), "dev", 10, 2)
    for shard in range(2):
        pods = controllers.deployment(shard)["spec"]["template"]["metadata"]["labels"]
        chosen = [controllers.service(each)["spec"]["selector"].items() <= pods.items() for each in range(2)]
        assert chosen == [each == shard for each in range(2)]


# --- waiting ---------------------------------------------------------------------------------------------------------

OURS = {"meta.helm.sh/release-name": "stack"}


def item(kind: str, name: str, status: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {
        "kind": kind,
        "metadata": {"name": name, "generation": 2, "annotations": OURS, **metadata},
        "spec": {"replicas": 1},
        "status": status,
    }


def conditions(available: str = "True", seen: int = 2) -> dict[str, Any]:
    return {
        "conditions": [
            {"type": kind, "status": status, "observedGeneration": seen}
            for kind, status in (("Available", available), ("Reconciled", "True"))
        ]
    }


def pod(name: str, container: dict[str, Any], **status: Any) -> dict[str, Any]:
    labels = {"app.kubernetes.io/instance": "stack-prometheus"}
    return {"metadata": {"name": name, "labels": labels}, "status": {"containerStatuses": [container], **status}}


UP = {"observedGeneration": 2, "updatedReplicas": 1, "readyReplicas": 1}
PULL = (
    'failed to pull and unpack image "x": failed to resolve reference "x": failed to do request: Head "https://e.com": '
    "dial tcp: lookup e.com on 10.0.0.1:53: no such host"
)
KILLED = {
    "image": "x",
    "state": {"waiting": {"reason": "CrashLoopBackOff"}},
    "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
}
UNPLACED = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}
UNPULLED = {"image": "e.com/x:1", "state": {"waiting": {"reason": "ErrImagePull", "message": PULL}}}


class Cluster:
    """A client of a cluster with lists of objects by the last part of their path."""

    def __init__(self, **lists: list[dict[str, Any]]) -> None:
        self.lists = lists

    async def get(self, path: str, *_: object) -> dict[str, Any]:
        name = path.rpartition("/")[2]
        if "monitoring.coreos.com" in path and name not in self.lists:
            raise ApiError(404, "NotFound", "", "GET", path)
        kind = {"prometheuses": "Prometheus"}.get(name, name[:-1].capitalize())
        return {"kind": f"{kind}List", "items": self.lists.get(name, [])}


@pytest.mark.parametrize(
    ("lists", "waiting"),
    [
        ({"deployments": [item("Deployment", "a", UP)]}, ()),
        ({"deployments": [item("Deployment", "a", {**UP, "observedGeneration": 1})]}, ("deployment/a",)),
        ({"deployments": [item("Deployment", "a", {**UP, "updatedReplicas": 0})]}, ("deployment/a",)),
        ({"statefulsets": [item("StatefulSet", "a", {**UP, "readyReplicas": 0})]}, ("statefulset/a",)),
        # Somebody else's in the same namespace.
        ({"deployments": [item("Deployment", "a", {}, annotations={})]}, ()),
        (
            {"daemonsets": [item("DaemonSet", "a", {"observedGeneration": 2, "desiredNumberScheduled": 2})]},
            ("daemonset/a",),
        ),
        ({"daemonsets": [item("DaemonSet", "a", {"observedGeneration": 2})]}, ()),
        # The operator has not come to it yet, has not come to its change, or its pods are not up.
        ({"prometheuses": [item("Prometheus", "a", {})]}, ("prometheus/a",)),
        ({"prometheuses": [item("Prometheus", "a", conditions(seen=1))]}, ("prometheus/a",)),
        ({"prometheuses": [item("Prometheus", "a", conditions("False"))]}, ("prometheus/a",)),
        ({"prometheuses": [item("Prometheus", "a", conditions())]}, ()),
    ],
)
async def test_what_is_not_ready_yet(lists: dict[str, Any], waiting: tuple[str, ...]) -> None:
    client: Any = Cluster(**lists)
    assert (await look(client, "monitoring", "stack")).waiting == waiting


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (pod("a", UNPULLED), "a: ErrImagePull e.com/x:1: lookup e.com on 10.0.0.1:53: no such host"),
        (pod("a", {"image": "x", "state": {"waiting": {"reason": "ContainerCreating"}}}), ""),
        (pod("a", {"image": "x", "state": {"running": {}}}), ""),
        (pod("a", KILLED), "a: CrashLoopBackOff x: it ended with exit code 137 (OOMKilled); see its log"),
        ({"metadata": {"name": "a"}, "status": {"conditions": [UNPLACED]}}, "a: Unschedulable: 0/3 nodes"),
    ],
)
def test_what_a_pod_waits_for(found: dict[str, Any], says: str) -> None:
    assert reason(found) == says


@contextmanager
def waiting(client: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[ReleaseReady, Operation, Said]]:
    monkeypatch.setattr(release, "_EVERY", 0.01)
    said = Said()
    resource = ReleaseReady(None)  # type: ignore[arg-type]

    async def reached(*_: object) -> Cluster:
        return client

    monkeypatch.setattr(resource, "client", reached)
    yield resource, Operation("urn", said, asyncio.Event()), said


PLACE = {"kubeconfig": "/k", "clusterIdentity": "1", "clusterName": "c"}
INPUTS = {**PLACE, "namespace": "monitoring", "name": "stack", "revision": 1}


async def test_a_release_that_does_not_come_up_fails_with_the_pods_that_are_to_blame(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lists = {"deployments": [item("Deployment", "a", {}), item("Deployment", "b", UP)], "pods": [pod("a-1", UNPULLED)]}
    monkeypatch.setattr(release, "_QUIET", 0.0)
    with waiting(Cluster(**lists), monkeypatch) as (resource, op, said):
        with pytest.raises(ProviderError) as raised:
            await resource.create(op, {**INPUTS, "timeout": 0.2})
        message = str(raised.value)
        assert "release monitoring/stack is not ready after 0 s: a-1: ErrImagePull e.com/x:1" in message
        assert "load the images into them (with runtime kind: loadImages)" in message
        # Each once: in a pipe every one is a line.
        assert said.statuses == ["1 of 2 ready: a-1: ErrImagePull e.com/x:1: lookup e.com on 10.0.0.1:53: no such host"]
        [warning] = said.messages
        assert warning.startswith("waiting up to 0 s for a-1: ErrImagePull")


async def test_it_waits_until_it_has_come_up(monkeypatch: pytest.MonkeyPatch) -> None:
    deployment = item("Deployment", "a", {})
    with waiting(Cluster(deployments=[deployment]), monkeypatch) as (resource, op, said):
        begun = asyncio.create_task(resource.create(op, {**INPUTS, "timeout": 30}))
        await asyncio.sleep(0.05)
        assert not begun.done()
        deployment["status"] = UP
        assert await begun == ("monitoring/stack", {**INPUTS, "timeout": 30})
        assert said.statuses == ["0 of 1 ready", "1 of 1 ready"]


async def test_a_cancelled_wait_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with waiting(Cluster(deployments=[item("Deployment", "a", {})]), monkeypatch) as (resource, op, _):
        begun = asyncio.create_task(resource.update(op, "monitoring/stack", INPUTS, {**INPUTS, "timeout": 30}))
        await asyncio.sleep(0.05)
        op.stop.set()
        with pytest.raises(ProviderError, match="cancelled while waiting for deployment/a"):
            await begun


async def test_a_preview_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with waiting(Cluster(deployments=[item("Deployment", "a", {})]), monkeypatch) as (resource, op, _):
        preview = Operation(op.urn, op.report, op.stop, preview=True)
        assert await resource.create(preview, {**INPUTS, "timeout": 30}) == ("", {**INPUTS, "timeout": 30})


def test_another_revision_is_waited_for_anew() -> None:
    resource = ReleaseReady(None)  # type: ignore[arg-type]
    inputs = {**INPUTS, "timeout": 30}
    assert resource.diff(inputs, inputs) == []
    [found] = resource.diff(inputs, {**inputs, "revision": 2})
    assert (found.path, found.kind) == ("revision", "update")


def test_a_chart_that_is_not_there_is_told() -> None:
    with pytest.raises(SpecError, match=r"the chart .*/srv/nowhere.* is not there; write the path of a chart's"):
        declared(prometheusStack={"chart": "/srv/nowhere"})
