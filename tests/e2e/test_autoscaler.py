"""Karpenter in a stack: nodes come for pods that find none, and go again; what it makes is nobody's drift."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kumulus.extras.scaling.machines import delays
from kumulus.model.distributions import distribution_of
from kumulus.model.quantity import equal
from tests.e2e.conftest import FAILED
from tests.support import listeners, processes
from tests.support.api import Refused
from tests.support.pods import PODS, is_ready, is_running
from tests.support.project import NODES, ROOT, Project
from tests.support.tools import require

pytestmark = pytest.mark.e2e
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
NODEPOOLS = "/apis/karpenter.sh/v1/nodepools"
CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
EVENTS = "/api/v1/namespaces/default/events"
RECORDS = "/api/v1/namespaces/kube-system/configmaps"
MADE = "karpenter.sh/nodepool"
KIND, ZONE = "e2-standard-4", "us-central1-a"
AUTOSCALER = {"name": "karpenter", "zones": [ZONE], "instanceTypes": [KIND]}
SILENT = 20.0
DELAY = {"uniform": {"from": "4s", "to": "9s"}}
GROUP = {"name": "mine", "instanceType": KIND, "placement": [{"availabilityZone": ZONE, "replicas": 1}]}
Object = dict[str, Any]


@pytest.fixture(autouse=True, scope="module")
def karpenter() -> None:
    require("karpenter")


def brought_up(project: Project, autoscaler: Object) -> Project:
    """A stack with one node that no pod of these tests tolerates, and Karpenter."""
    project.write_stack({"nodeGroups": [GROUP], "autoscaler": autoscaler}, stack="scaled")
    project.up()
    return project


@pytest.fixture(scope="module")
def kept() -> Iterator[list[Project]]:
    """The project of the tests that leave no node of the autoscaler's, once there is one."""
    found: list[Project] = []
    yield found
    for project in found:
        project.close()


@pytest.fixture
def shared(
    kept: list[Project], tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Project]:
    """One that is brought up, and the next test goes on with it unless this one fails."""
    if not kept:
        kept.append(Project(tmp_path_factory.mktemp("shared")))
        brought_up(kept[0], AUTOSCALER)
    yield kept[0]
    if request.node.stash.get(FAILED, False):
        kept.pop().close()


def scale(project: Project, replicas: int) -> None:
    """Pods of three CPUs, of which a node of four takes one."""
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "3"}}}
    labels = {"app": "web"}
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
    }
    api = project.api()
    if any(each["metadata"]["name"] == "web" for each in api.list(DEPLOYMENTS)):
        api.merge(f"{DEPLOYMENTS}/web", {"spec": {"replicas": replicas}})
    else:
        body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
        api.create(DEPLOYMENTS, body)


def running(project: Project, pods: int) -> Mapping[str, Object]:
    """The autoscaler's nodes, once so many pods run on them."""
    api = project.api()
    found = api.until(PODS, lambda them: len(them) == pods and all(map(is_running, them.values())), timeout=180)
    used = {pod["spec"]["nodeName"] for pod in found.values()}
    return api.until(
        NODES, lambda them: used <= them.keys() and all(map(is_ready, them.values())), 60, labelSelector=MADE
    )


def placed(project: Project, pods: int) -> Mapping[str, Object]:
    """The autoscaler's nodes, once so many pods have one of them that is there; whether KWOK runs them is not asked."""
    api = project.api()

    def all_placed() -> bool:
        there = {node["metadata"]["name"] for node in api.list(NODES, labelSelector=MADE)}
        found = [pod["spec"].get("nodeName") for pod in api.list(PODS) if not pod["metadata"].get("deletionTimestamp")]
        return len(found) == pods and set(found) <= there

    api.until(PODS, lambda _: all_placed(), timeout=180)
    return api.until(NODES, lambda them: all(map(is_ready, them.values())), 60, labelSelector=MADE)


@pytest.mark.parametrize("beside", [[], ["etcd", "kube-apiserver"]], ids=["alone", "with its API server"])
def test_killed_in_a_scale_out_it_is_brought_back_and_finishes(shared: Project, beside: list[str]) -> None:
    scale(shared, 2)
    there = placed(shared, 2)
    # Machines that take longer than any test: whenever the kill strikes, those that are asked for now are on their way.
    # The other setting restarts Karpenter, so that it knows of the delay before it is asked for any.
    slow = {**AUTOSCALER, "registrationDelay": "1h", "batchIdleDuration": "2s"}
    shared.write_stack({"nodeGroups": [GROUP], "autoscaler": slow})
    shared.up()
    scale(shared, 12)
    shared.api().until(CLAIMS, lambda them: any(map(on_its_way, them.values())), 120)
    found = shared.processes()
    processes.kill(found["scaled/karpenter"])
    # It struck: of what was asked for nothing is there.
    waiting = {claim["metadata"]["uid"] for claim in shared.api().list(CLAIMS) if on_its_way(claim)}
    assert waiting
    assert {node["metadata"]["name"] for node in shared.api().list(NODES, labelSelector=MADE)} == set(there)
    assert sum("nodeName" not in pod["spec"] for pod in shared.api().list(PODS)) == 10
    processes.kill([pid for name in beside for pid in found[f"scaled/{name}"]])

    shared.write_stack({"nodeGroups": [GROUP], "autoscaler": AUTOSCALER})
    if not beside:
        foreseen = shared.foresee("--refresh")
        assert "karpenter is stopped and will be started" in foreseen.messages["scaled-control-plane"]
    said = shared.up("--refresh").text
    assert "on their way when the autoscaler ended" in said
    made = placed(shared, 12)
    assert set(there) <= set(made)
    # No claim waits for a machine that does not come, and none has two.
    claims = shared.api().until(CLAIMS, lambda them: not any(map(on_its_way, them.values())), 60)
    assert not {claim["metadata"]["uid"] for claim in claims.values()} & waiting
    assert {claim["status"]["nodeName"] for claim in claims.values()} == set(made)
    assert shared.foresee("--refresh").steps == ()
    emptied(shared)


def on_its_way(claim: Object) -> bool:
    """Whether the machine of a claim is launched, and its node is not there."""
    said = {each["type"]: each["status"] for each in claim.get("status", {}).get("conditions", [])}
    return said.get("Launched") == "True" and said.get("Registered") != "True"


def kinds_of(nodes: Mapping[str, Object]) -> Counter[str]:
    return Counter(node["metadata"]["labels"]["node.kubernetes.io/instance-type"] for node in nodes.values())


def command(project: Project, *arguments: str) -> str:
    """What `kumulus fault` says."""
    done = project.kumulus("fault", *arguments, "-s", "scaled")
    return done.stdout + done.stderr


def test_it_meets_stock_outs_and_prices_that_change(project: Project) -> None:
    cheap, dear = "e2-standard-4", "e2-highmem-4"
    pools = [{"name": "default", "spec": {"disruption": {"consolidateAfter": "Never"}}}]
    offered = {**AUTOSCALER, "instanceTypes": [cheap, dear], "nodePools": pools}
    cluster = brought_up(project, offered)
    said = command(
        cluster, "inject", "costly", "--kind", "price-change", "--instance-type", cheap, "--price-factor", "3"
    )
    assert f"price-change: 3 times the price: {cheap}" in said
    scale(cluster, 1)
    assert kinds_of(running(cluster, 1)) == {dear: 1}
    assert "costly is over" in command(cluster, "clear", "costly")
    scale(cluster, 2)
    assert kinds_of(running(cluster, 2)) == {dear: 1, cheap: 1}

    gone = {"name": "gone", "kind": "stock-out", "offers": {"instanceTypes": [cheap]}}
    cluster.write_stack({"nodeGroups": [GROUP], "autoscaler": offered, "faults": [gone]})
    assert f"stock-out: none available: {cheap}" in cluster.preview().text
    cluster.up()
    assert cluster.foresee("--refresh").steps == ()
    assert json.loads(offerings_of(cluster))[0]["soldOut"] is True
    # The claim of a pod that takes nothing else fails, and says why; from then on Karpenter knows.
    cluster.api().create("/api/v1/namespaces/default/pods", only_on(cheap))
    cluster.api().until(EVENTS, lambda them: any(map(out_of_stock, them.values())), 120)
    cluster.api().delete("/api/v1/namespaces/default/pods/picky")
    cluster.api().until(PODS, lambda them: "picky" not in them, 60)
    scale(cluster, 3)
    assert kinds_of(running(cluster, 3)) == {dear: 2, cheap: 1}

    # A change of the pools keeps what the fault made of the offerings.
    pools = [{"name": "second", "spec": {"disruption": {"consolidateAfter": "1h"}}}, *pools]
    cluster.write_stack({"nodeGroups": [GROUP], "autoscaler": {**offered, "nodePools": pools}, "faults": [gone]})
    cluster.up()
    assert json.loads(offerings_of(cluster))[0]["soldOut"] is True
    cluster.write_stack({"nodeGroups": [GROUP], "autoscaler": {**offered, "nodePools": pools}})
    assert "stock-out ends; over: none available" in cluster.preview().text
    cluster.up()
    assert offerings_of(cluster) == ""
    assert kinds_of(running(cluster, 3)) == {dear: 2, cheap: 1}


def test_a_cloud_takes_spot_machines_back_and_has_a_quota(project: Project) -> None:
    pools = [{"name": "default", "spec": {"disruption": {"consolidateAfter": "Never"}}}]
    offered = {**AUTOSCALER, "capacityTypes": ["spot"], "nodePools": pools}
    cluster = brought_up(project, offered)
    assert "no spot machine that it selects is there" in command(
        cluster, "inject", "early", "--kind", "spot-interruption"
    )
    scale(cluster, 2)
    placed(cluster, 2)

    # No pod may be evicted, so that no machine is drained before it is gone.
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    spec = {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "web"}}}
    cluster.api().create(
        budgets, {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "all"}, "spec": spec}
    )
    said = command(cluster, "inject", "taken", "--kind", "spot-interruption", "--count", "1", "--notice", "10s")
    assert "1 of the spot machines go after a notice of 10s; 1 machine" in said
    record = json.loads(cluster.api().get(f"{RECORDS}/kumulus-fault-taken")["data"]["record"])
    [node] = record["machines"]
    cluster.api().until(NODES, lambda them: node not in them, 120)
    assert datetime.now(UTC) >= datetime.fromisoformat(record["since"]) + timedelta(seconds=10)
    # Its pod is failed by Kubernetes, and another has a machine.
    cluster.api().until(PODS, lambda them: all(pod["spec"].get("nodeName") != node for pod in them.values()), 180)
    placed(cluster, 2)
    assert "taken is over" in command(cluster, "clear", "taken")

    # Declared, it takes one at once, and whether it is declared still makes no difference to that.
    fault = {"name": "later", "kind": "spot-interruption", "target": {"count": 1}, "notice": "1h"}
    cluster.write_stack({"nodeGroups": [GROUP], "autoscaler": offered, "faults": [fault]})
    assert "1 of the spot machines go after a notice of 1h; 1 machine" in cluster.preview().text
    cluster.up()
    assert cluster.foresee("--refresh").steps == ()
    [node] = [name for name, when in reclaimed(cluster).items() if when]
    claims = cluster.api().list(CLAIMS)
    assert [each["status"]["nodeName"] for each in claims if each["metadata"].get("deletionTimestamp")] == [node]
    cluster.write_stack({"nodeGroups": [GROUP], "autoscaler": offered})
    assert "spot-interruption ends" in cluster.preview().text
    cluster.up()
    assert not any(reclaimed(cluster).values())
    # Karpenter goes on with what it was told: drained, the machine goes before any notice ends.
    cluster.api().delete(f"{budgets}/all")
    cluster.api().until(NODES, lambda them: node not in them, 120)
    placed(cluster, 2)

    # One more machine than there are, that of the node group among them. This comes last: Karpenter does not ask within
    # three minutes again for what met a quota.
    most = len(cluster.api().list(NODES)) + 1
    said = command(cluster, "inject", "limit", "--kind", "quota", "--limit", f"nodes={most}", "--instance-type", "e2-*")
    assert f"quota: at most {most} nodes: e2-*" in said
    scale(cluster, 8)
    cluster.api().until(EVENTS, lambda them: any(map(out_of_stock, them.values())), 120)
    cluster.api().until(NODES, lambda them: len(them) == most and all(map(is_ready, them.values())), 120)
    assert not all(pod["spec"].get("nodeName") for pod in cluster.api().list(PODS))
    assert "limit is over" in command(cluster, "clear", "limit")
    assert offerings_of(cluster) == ""


def reclaimed(project: Project) -> dict[str, str]:
    """When each of the autoscaler's nodes is taken back, by its name; empty where it is not."""
    found = (node["metadata"] for node in project.api().list(NODES, labelSelector=MADE))
    return {each["name"]: each.get("annotations", {}).get("kumulus.io/reclaimed-at", "") for each in found}


def only_on(kind: str) -> Object:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "3"}}}
    spec = {"nodeSelector": {"node.kubernetes.io/instance-type": kind}, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "picky"}, "spec": spec}


def out_of_stock(event: Object) -> bool:
    return bool(event["reason"] == "InsufficientCapacityError" and "can be had" in event["message"])


def offerings_of(project: Project) -> str:
    [made] = project.api().list("/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses")
    return str(made["metadata"].get("annotations", {}).get("kumulus.io/offerings", ""))


def test_its_nodes_are_as_a_node_groups_of_the_type_and_no_drift(shared: Project) -> None:
    scale(shared, 2)
    made = running(shared, 2)
    [ours] = [node for node in shared.api().list(NODES) if MADE not in node["metadata"]["labels"]]
    for node in made.values():
        assert differences(ours, node) == set()
    # Neither plan nor refresh has anything to say of them.
    assert shared.foresee().steps == ()
    assert shared.foresee("--refresh").steps == ()
    shared.up("--refresh")
    assert set(made) <= {node["metadata"]["name"] for node in shared.api().list(NODES)}
    assert (heard := listeners.of(shared.processes()["scaled/karpenter"]))
    assert listeners.amiss(heard) == []

    scale(shared, 0)
    shared.api().until(CLAIMS, lambda them: not them, 180)
    shared.api().until(NODES, lambda them: not them, 60, labelSelector=MADE)


def emptied(project: Project) -> None:
    """No pod, and no machine of the autoscaler's, which would take back one after the other by itself."""
    api = project.api()
    scale(project, 0)
    for claim in api.list(CLAIMS):
        with suppress(Refused):
            api.delete(f"{CLAIMS}/{claim['metadata']['name']}")
    api.until(CLAIMS, lambda them: not them, 120)
    api.until(NODES, lambda them: not them, 60, labelSelector=MADE)


def differences(ours: Object, theirs: Object) -> set[str]:
    """Where a node of the autoscaler says otherwise than one of a node group, what is each one's own left out."""
    found = set()
    labels, others = (node["metadata"]["labels"] for node in (ours, theirs))
    own = {"kubernetes.io/hostname", "kumulus.io/group", "kumulus.io/pool", "kumulus.io/stack-id"}
    found |= {f"label {key}" for key in labels.keys() - own if others.get(key) != labels[key]}
    for part in ("capacity", "allocatable"):
        mine, its = ours["status"][part], theirs["status"][part]
        assert mine.keys() == its.keys()
        found |= {f"{part} {key}" for key in mine if not equal(mine[key], its[key])}
    info, its = (dict(node["status"]["nodeInfo"]) for node in (ours, theirs))
    for key in ("bootID", "machineID", "systemUUID"):
        assert info.pop(key)
        assert its.pop(key)
    found |= {f"nodeInfo {key}" for key in info.keys() | its.keys() if info.get(key) != its.get(key)}

    def conditions(node: Object) -> dict[str, tuple[str, str, str]]:
        return {
            each["type"]: (each["status"], each["reason"], each["message"]) for each in node["status"]["conditions"]
        }

    found |= {"conditions"} if conditions(ours) != conditions(theirs) else set()
    found |= {"phase"} if ours["status"]["phase"] != theirs["status"]["phase"] else set()
    mark = "kwok.x-k8s.io/node"
    if ours["metadata"]["annotations"][mark] != theirs["metadata"]["annotations"][mark]:
        found.add("annotation")
    return found


def test_it_sits_out_a_silent_api_server_and_a_pod_that_no_type_fits(shared: Project) -> None:
    [pid] = shared.processes()["scaled/karpenter"]
    pods = "/api/v1/namespaces/default/pods"
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "64"}}}
    spec = {"containers": [container]}
    shared.api().create(pods, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "huge"}, "spec": spec})
    shared.api().until(EVENTS, lambda them: any(map(fits_nowhere, them.values())), 120)
    assert shared.api().list(CLAIMS) == []

    scale(shared, 6)
    shared.api().until(CLAIMS, lambda them: len(them) >= 1, 120)
    server = shared.processes()["scaled/kube-apiserver"]
    for each in server:
        os.kill(each, signal.SIGSTOP)
    try:
        time.sleep(SILENT)
    finally:
        for each in server:
            os.kill(each, signal.SIGCONT)
    shared.api().until(PODS, lambda them: sum("nodeName" in pod["spec"] for pod in them.values()) == 6, timeout=180)
    assert shared.processes()["scaled/karpenter"] == [pid]
    assert "nodeName" not in shared.api().get(f"{pods}/huge")["spec"]
    shared.api().delete(f"{pods}/huge")
    emptied(shared)


def fits_nowhere(event: Object) -> bool:
    said = event["reason"] == "FailedScheduling" and "no instance type" in event["message"]
    return bool(said and event["involvedObject"]["name"] == "huge")


def experiment(project: Project, name: str, **described: Any) -> list[str]:
    """A command line that runs an experiment with another pool, whose machines take some seconds each."""
    file = project.directory / f"{name}.yaml"
    pool = {"name": "other", "spec": {"disruption": {"consolidateAfter": "Never"}}}
    autoscaler = {"nodePools": [pool], "registrationDelay": DELAY}
    # Its pods would tolerate the taint of the group's node.
    web = {"name": "web", "kind": "Deployment", "workers": 3, "requests": {"cpu": "3"}, "nodeSelector": {MADE: "other"}}
    made = {"name": name, "autoscaler": autoscaler, "workloads": [{**web, **described}]}
    # Pods without a node are waited for, however long Karpenter takes on a busy machine.
    file.write_text(json.dumps({**made, "settle": "3m", "timeout": "5m"}))
    where = ["--kubeconfig", str(project.kubeconfig()), "--results", str(project.directory / "results")]
    return [sys.executable, str(ROOT / "kumulus"), "experiment", "run", str(file), *where]


def given(project: Project) -> tuple[dict[str, Object], Object]:
    """The autoscaler's pools and delays."""
    [made] = project.api().list("/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses")
    drawn = made["metadata"].get("annotations", {}).get("kumulus.io/registration-delays")
    pools = {each["metadata"]["name"]: each["spec"] for each in project.api().list(NODEPOOLS)}
    return pools, {"drawn": drawn, **made.get("spec", {})}


def test_an_experiment_has_pools_of_its_own_and_the_stacks_are_put_back(shared: Project) -> None:
    before = given(shared)
    assert list(before[0]) == ["default"]
    # Killed while it waits for a workload that comes late.
    with subprocess.Popen(experiment(shared, "late", arrival={"after": "5m"}), env=shared.environment) as run:
        try:
            shared.api().until(NODEPOOLS, lambda them: set(them) == {"other"}, 120)
        finally:
            run.kill()
    assert "the autoscaler has the stack's pools again" in command(shared, "list")
    assert given(shared) == before

    line = experiment(shared, "whole")
    done = subprocess.run(line, env=shared.environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert given(shared) == before
    assert shared.foresee("--refresh").steps == ()
    [report] = (shared.directory / "results").glob("whole/*/report.json")
    measures = json.loads(report.read_text())["results"]["tests"][0]["details"]["measures"]
    # Three machines take as long as was drawn for the first three.
    drawn = delays(distribution_of(DELAY), "whole/0")["registrationDelays"][:3]
    assert max(drawn) > min(drawn) + 0.5
    assert measures["timeToSchedule.max"] >= max(drawn)
    assert measures["timeToSchedule.min"] >= min(drawn)


def test_without_the_section_all_that_it_made_goes(shared: Project) -> None:
    scale(shared, 2)
    running(shared, 2)
    pools = [{"name": "second", "spec": {"disruption": {"consolidateAfter": "Never"}}}]
    shared.write_stack({"nodeGroups": [GROUP], "autoscaler": {**AUTOSCALER, "nodePools": pools}})
    said = shared.preview().text
    assert "karpenter has its pools changed" in said
    [pid] = shared.processes()["scaled/karpenter"]
    shared.up()
    assert shared.processes()["scaled/karpenter"] == [pid]
    shared.api().until("/apis/karpenter.sh/v1/nodepools", lambda them: set(them) == {"second"}, 120)

    shared.write_stack({"nodeGroups": [GROUP]})
    assert "karpenter goes, with the nodes that it has made" in shared.preview().text
    shared.up()
    api = shared.api()
    assert [node["metadata"]["labels"].get("kumulus.io/group") for node in api.list(NODES)] == ["mine"]
    assert "scaled/karpenter" not in shared.processes()
    kinds = api.until(DEFINITIONS, lambda them: not any("karpenter" in name for name in them), 60)
    assert not any("karpenter" in name for name in kinds)
    shared.destroy()
    assert shared.processes() == {}
    assert not shared.cluster().exists()
