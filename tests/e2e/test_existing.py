"""The runtime existing, on a control plane that is another's: with RBAC, and a user whom docs/rbac is applied to.

The tests go through the life of one stack, in their order.
"""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from kumulus import toolchain
from tests.integration.conftest import JOBS, LEASES, Plane, plane_at
from tests.support import processes
from tests.support.api import Api, Refused
from tests.support.elsewhere import HOST, Elsewhere, StandIn, settled, standing_in
from tests.support.pods import PODS, is_ready, is_running
from tests.support.project import NODES, ROOT, Project, node_group
from tests.support.tools import require

pytestmark = pytest.mark.e2e

MINE = "kumulus.io/pool=a100-use1"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
POOLS = "/apis/karpenter.sh/v1/nodepools"
MAPS = "/api/v1/namespaces/kube-system/configmaps"
MADE = "karpenter.sh/nodepool"
RBAC = [ROOT / "docs" / "rbac" / name for name in ("nodes.yaml", "kwok.yaml", "tenants.yaml", "karpenter.yaml")]
GROUP = node_group("a100", 6, "use1", gpus=8)


def kwok_charts() -> dict[str, Any]:
    """KWOK's charts from its Go module, where their repository is out of reach."""
    folder = toolchain.kept("kwok-charts")
    return {
        "chart": str(folder / "kwok"),
        "stageFastChart": str(folder / "stage-fast"),
        "image": f"example.com/kwok:v{toolchain.version('kwok')}",
    }


def seconds(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()


@dataclass
class Shared:
    """Another's cluster, and a project of a user there."""

    plane: Plane
    elsewhere: Elsewhere
    project: Project
    stand_in: StandIn
    config: Path
    cluster: dict[str, Any]
    before: dict[str, str]

    def write(self, **changes: Any) -> None:
        self.cluster |= changes
        self.project.write_stack(self.cluster, stack="shared")

    def login(self, **changes: Any) -> None:
        user = self.elsewhere.user(self.elsewhere.token("kumulus", "stack"))
        self.config.write_text(json.dumps({**user, **changes}))

    def ready(self, count: int) -> None:
        def all_ready(nodes: Any) -> bool:
            mine = [node for name, node in nodes.items() if name.startswith("a100-")]
            states = [c["status"] for node in mine for c in node["status"]["conditions"] if c["type"] == "Ready"]
            return len(mine) == count and states == ["True"] * count

        self.elsewhere.api.until(NODES, all_ready)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    root = tmp_path_factory.mktemp("shared")
    with plane_at(root / "plane") as plane:
        # From here on it is a cluster without KWOK.
        processes.kill(plane.processes()["kwok-controller"])
        elsewhere = Elsewhere(Path(plane.observed.kubeconfig))
        elsewhere.apply(*RBAC)
        elsewhere.add_node(HOST)
        project = Project(tmp_path_factory.mktemp("project"))
        project.install_plugins()
        config = root / "config"
        cluster = {
            "runtime": "existing",
            "existing": {"kubeconfig": str(config), "context": "team"},
            "kwokCharts": {**kwok_charts(), "shards": 2},
            "nodeGroups": [GROUP],
        }
        with standing_in(elsewhere, root / "stand-in") as stand_in:
            made = Shared(plane, elsewhere, project, stand_in, config, cluster, elsewhere.objects())
            made.login()
            made.write()
            yield made
        project.close()
        elsewhere.close()


def test_a_preview_says_which_cluster_is_used_and_leaves_it_alone(shared: Shared) -> None:
    seen = shared.project.foresee()
    assert "uses the cluster of context 'team'" in seen.messages["shared-control-plane"]
    assert seen.by_name["a100-use1"].op == "create"
    assert settled(shared.elsewhere, shared.before, 0) == (set(), set())


def test_up_brings_kwok_and_nodes_with_the_permissions_of_the_docs_alone(shared: Shared) -> None:
    result = shared.project.pulumi("up", "--yes", "--skip-preview", timeout=100)
    assert result.code == 0, f"{result.text}\n{shared.stand_in.logs()}"
    shared.ready(6)
    shards = {
        node["metadata"]["name"]: node["metadata"]["labels"]["kumulus.io/shard"]
        for node in shared.elsewhere.api.list(NODES, labelSelector=MINE)
    }
    assert sorted(shards.values()) == ["0", "0", "0", "1", "1", "1"]
    # Each is held by the controller of its shard, for as long as the stack says.
    leases = shared.elsewhere.api.until(LEASES, lambda found: set(shards) <= set(found))
    holders = {shards[name]: leases[name]["spec"]["holderIdentity"] for name in shards}
    assert all(leases[name]["spec"]["holderIdentity"] == holders[shard] for name, shard in shards.items())
    assert len(set(holders.values())) == 2
    assert {leases[name]["spec"]["leaseDurationSeconds"] for name in shards} == {40}


def test_a_resize_moves_no_node_to_another_shard(shared: Shared) -> None:
    def placed() -> dict[str, tuple[str, str]]:
        nodes = [node["metadata"] for node in shared.elsewhere.api.list(NODES, labelSelector=MINE)]
        return {node["name"]: (node["uid"], node["labels"]["kumulus.io/shard"]) for node in nodes}

    before = placed()
    shared.write(nodeGroups=[node_group("a100", 9, "use1", gpus=8)])
    shared.project.up()
    after = placed()
    assert len(after) == 9
    assert {name: after[name] for name in before} == before
    # What the next test looks at comes with it.
    shared.write(nodeGroups=[GROUP], faults=[{"name": "down", "kind": "not-ready", "target": {"count": 1}}])
    shared.project.up()
    assert placed() == before


def test_kumulus_own_stages_come_before_those_of_the_chart(shared: Shared) -> None:
    pod = {
        "metadata": {"annotations": {"pod-complete.stage.kwok.x-k8s.io/delay": "3s"}},
        "spec": {
            "restartPolicy": "Never",
            "tolerations": [{"key": "kwok.x-k8s.io/node", "operator": "Exists"}],
            "nodeSelector": {"kumulus.io/pool": "a100-use1"},
            "containers": [{"name": "main", "image": "none"}],
        },
    }
    shared.elsewhere.api.create(JOBS, {"metadata": {"name": "one"}, "spec": {"template": pod}})
    done = shared.elsewhere.api.until(JOBS, lambda jobs: bool(jobs["one"]["status"].get("succeeded")))
    status = done["one"]["status"]
    assert seconds(status["completionTime"]) - seconds(status["startTime"]) >= 2
    nodes = shared.elsewhere.api.list(NODES, labelSelector=MINE)
    states = [c["status"] for node in nodes for c in node["status"]["conditions"] if c["type"] == "Ready"]
    assert sorted(states) == ["False", *["True"] * 5]
    shared.elsewhere.api.request("DELETE", f"{JOBS}/one", {"propagationPolicy": "Foreground"})
    shared.write(faults=[])
    shared.project.up()
    shared.ready(6)


def test_another_stack_finds_kwok_and_leaves_it_as_it_is(shared: Shared) -> None:
    # By a kubeconfig's content, which is nobody else's to read.
    token = shared.elsewhere.token("kumulus", "stack")
    content = json.dumps(shared.elsewhere.user(token), indent=1)
    there = {"context": "team"}
    found = {**shared.cluster, "name": "second", "existing": there, "nodeGroups": [{**GROUP, "name": "b"}]}
    shared.project.write_stack(found, stack="second")
    place = "kumulus:cluster.existing.kubeconfig"
    result = shared.project.pulumi("config", "set", "--secret", "--path", place, content, stack="second")
    assert result.code == 0, result.text
    before = shared.elsewhere.objects()
    result = shared.project.up(stack="second")
    assert "KWOK is in the cluster already (kube-system/kwok-controller): it is used and left as it is" in result.text
    more, less = settled(shared.elsewhere, before, 0)
    assert less == set()
    assert {path.rpartition("/")[2] for path in more if "/v1/nodes/" in path} == {f"b-use1-{n}" for n in range(6)}
    assert not [path for path in more if "deployments" in path or "secrets" in path]
    assert token not in f"{result.text}{shared.project.backend_file('second').read_text()}"
    assert token not in shared.project.preview("--diff", "--refresh").text
    shared.project.destroy(stack="second")
    assert settled(shared.elsewhere, before) == (set(), set())
    shared.write()


def test_a_stacks_tenants_come_with_the_permissions_of_the_docs_alone_and_go_with_it(shared: Shared) -> None:
    before = shared.elsewhere.objects()
    tenants = [{"name": "guest", "quota": {"pods": 1}}]
    shared.project.write_stack({**shared.cluster, "name": "third", "nodeGroups": [], "tenants": tenants}, stack="third")
    shared.project.up(stack="third")
    result = shared.project.pulumi("stack", "output", "tenants", "--json", "--show-secrets", stack="third")
    guest = Api(json.loads(result.stdout)["guest"]["kubeconfig"])
    pods = "/api/v1/namespaces/guest/pods"
    body = {"metadata": {"name": "one"}, "spec": {"containers": [{"name": "c", "image": "none"}]}}
    guest.create(pods, body)
    # A quota holds from when its controller has first counted.
    shared.elsewhere.api.until(
        "/api/v1/namespaces/guest/resourcequotas",
        lambda found: any((each.get("status") or {}).get("used", {}).get("pods") == "1" for each in found.values()),
    )
    with pytest.raises(Refused, match="exceeded quota"):
        guest.create(pods, {**body, "metadata": {"name": "two"}})
    assert len(guest.list(NODES)) > 6
    with pytest.raises(Refused, match="403"):
        guest.list("/api/v1/namespaces/default/pods")
    guest.close()
    shared.project.destroy(stack="third")
    assert settled(shared.elsewhere, before) == (set(), set())
    shared.write()


def test_what_is_in_a_namespace_is_saved_and_put_back_and_nothing_else(shared: Shared) -> None:
    before, api = shared.elsewhere.objects(), shared.elsewhere.api
    where = "/api/v1/namespaces/saved"
    save = ("snapshot", "save", "full", "-s", "shared")
    said = shared.project.kumulus(*save)
    assert (said.returncode, "--namespace NAME" in said.stderr) == (1, True), said.stderr
    api.create("/api/v1/namespaces", {"metadata": {"name": "saved"}})
    api.until(f"{where}/serviceaccounts", lambda found: "default" in found)
    said = shared.project.kumulus(*save, "-n", "saved")
    assert said.returncode == 1
    assert "cannot list resource" in said.stderr, "the right that is missing is named"
    subject = {"kind": "ServiceAccount", "namespace": "kumulus", "name": "stack"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"}
    bindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/saved/rolebindings"
    api.create(bindings, {"metadata": {"name": "stack"}, "roleRef": role, "subjects": [subject]})
    node = api.list(NODES, labelSelector=MINE)[0]["metadata"]["name"]
    spec = {"containers": [{"name": "c", "image": "none"}], "nodeName": node}
    api.create(f"{where}/pods", {"metadata": {"name": "alone"}, "spec": spec})
    api.create(f"{where}/configmaps", {"metadata": {"name": "settings"}, "data": {"a": "1"}})
    said = shared.project.kumulus(*save, "-n", "saved")
    assert said.returncode == 0, said.stderr
    assert "1 pods" in said.stdout
    api.delete(f"{where}/pods/alone?gracePeriodSeconds=0")
    api.merge(f"{where}/configmaps/settings", {"data": {"a": "2"}})
    api.create("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "theirs"}, "data": {}})
    theirs = api.get("/api/v1/namespaces/default/configmaps/theirs")
    said = shared.project.kumulus("snapshot", "restore", "full", "-s", "shared", "--yes")
    assert said.returncode == 0, said.stderr
    assert api.get(f"{where}/pods/alone")["spec"]["nodeName"] == node
    assert api.get(f"{where}/configmaps/settings")["data"] == {"a": "1"}
    assert api.get("/api/v1/namespaces/default/configmaps/theirs") == theirs
    assert shared.project.foresee("--refresh").steps == ()
    api.delete("/api/v1/namespaces/default/configmaps/theirs")
    api.delete("/api/v1/namespaces/saved")
    assert settled(shared.elsewhere, before) == (set(), set())


def test_a_cluster_that_does_not_answer_ends_each_command_soon(shared: Shared) -> None:
    """One that accepts connections and is silent: worse than one that is gone."""

    def recorded() -> list[str]:
        # The check that a destroy may begin is gone with the first that does; the next `up` makes it again.
        resources = shared.project.state("shared")["resources"]
        return [each["urn"] for each in resources if "DestroyCheck" not in each["urn"]]

    before = recorded()
    (server,) = shared.plane.processes()["kube-apiserver"]
    os.kill(server, signal.SIGSTOP)
    try:
        # A preview takes no lock, and waits while the update does.
        preview = shared.project.start("preview", stack="shared")
        up = shared.project.pulumi("up", "--refresh", "--yes", "--skip-preview", stack="shared", timeout=120)
        destroy = ("destroy", "--yes", "--skip-preview")
        results = [up, preview.result(120), shared.project.pulumi(*destroy, stack="shared", timeout=120)]
    finally:
        os.kill(server, signal.SIGCONT)
    for result in results:
        assert result.code != 0
        assert "is not reachable" in result.text, result.text
        assert "`pulumi stack rm --force` forgets" in result.text
        assert result.seconds < 60
    assert recorded() == before


def test_karpenter_comes_as_a_deployment_with_the_permissions_of_the_docs_and_goes_with_all_that_it_made(
    shared: Shared,
) -> None:
    require("karpenter")
    api, before = shared.elsewhere.api, shared.elsewhere.objects()
    asked = {
        "name": "karpenter",
        "zones": ["us-central1-a"],
        "instanceTypes": ["e2-standard-4", "e2-highmem-4"],
        "image": "karpenter:x",
    }
    # Somebody else's is refused before anything is done.
    theirs = {"metadata": {"name": "kumulus-karpenter"}, "rules": []}
    api.create(ROLES, theirs)
    shared.write(autoscaler=asked)
    refused = shared.project.pulumi("preview", stack="shared")
    assert refused.code != 0
    assert "ClusterRole kumulus-karpenter was made by somebody else" in refused.text
    api.delete(f"{ROLES}/kumulus-karpenter")

    # A fault of what it is offered is there as it is.
    cheap = {"name": "gone", "kind": "stock-out", "offers": {"instanceTypes": ["e2-standard-4"]}}
    shared.write(faults=[cheap])
    shared.project.up(stack="shared")
    shared.project.preview("--expect-no-changes")
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "3"}}}
    spec = {"containers": [container], "nodeSelector": {MADE: "default"}}
    for number in range(3):
        api.create(PODS, {"metadata": {"name": f"web-{number}"}, "spec": spec})
    api.until(PODS, lambda pods: len(pods) == 3 and all(map(is_running, pods.values())), timeout=180)
    nodes = api.until(NODES, lambda them: len(them) == 3 and all(map(is_ready, them.values())), 60, labelSelector=MADE)
    assert {node["metadata"]["labels"]["node.kubernetes.io/instance-type"] for node in nodes.values()} == {
        "e2-highmem-4"
    }
    # What it makes is no drift, and what somebody changes of it is.
    shared.project.preview("--refresh", "--expect-no-changes")
    api.merge(f"{POOLS}/default", {"spec": {"limits": {"cpu": "1"}}})
    api.delete(f"{MAPS}/karpenter")
    assert "missing" in shared.project.pulumi("preview", "--refresh", "--diff", stack="shared").text
    shared.project.up("--refresh", stack="shared")
    assert api.get(f"{MAPS}/karpenter")["data"].keys() == {"instance-types.json"}

    # Pods are still on its nodes when it goes.
    shared.cluster.pop("autoscaler")
    shared.cluster.pop("faults")
    shared.write()
    result = shared.project.up(stack="shared")
    for number in range(3):
        with suppress(Refused):
            api.request("DELETE", f"{PODS}/web-{number}", {"gracePeriodSeconds": 0})
    assert settled(shared.elsewhere, before) == (set(), set()), result.text


def test_destroy_leaves_the_cluster_as_it_was(shared: Shared) -> None:
    result = shared.project.destroy(stack="shared")
    assert settled(shared.elsewhere, shared.before) == (set(), set()), result.text
    assert not shared.project.cluster("shared").exists()
