"""Node groups with bounds: cluster-autoscaler resizes them by its own interface, and that is nobody's drift."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from kumulus.kube.messages import message_classes
from kumulus.model.quantity import equal
from tests.e2e.external_grpc import CloudProvider, stand_in
from tests.support import listeners, processes
from tests.support.pods import PODS, is_ready, is_running
from tests.support.project import NODES, Project

pytestmark = pytest.mark.e2e
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
ZONE, KIND, POOL = "us-central1-a", "e2-standard-4", "web-us-central1-a"
Object = dict[str, Any]


def group(replicas: int = 2, **fields: Any) -> Object:
    template = {"taints": [{"key": "only", "value": "web", "effect": "NoSchedule"}]}
    placement = [{"availabilityZone": ZONE, "replicas": replicas}]
    bounds = {"minReplicas": 1, "maxReplicas": 6}
    return {"name": "web", "instanceType": KIND, "placement": placement, "nodeTemplate": template, **bounds, **fields}


def stack(project: Project, binary: Path, *groups: Object, **section: Any) -> None:
    asked = {"name": "cluster-autoscaler", "binary": str(binary), **section}
    project.write_stack({"nodeGroups": list(groups) or [group()], "autoscaler": asked}, stack="scaled")


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stand_in(tmp_path_factory.mktemp("binary"))


@pytest.fixture(scope="module")
def cluster(binary: Path, module_project: Project) -> Iterator[Project]:
    """Two nodes, which all tests but the last of them leave."""
    stack(module_project, binary)
    with listeners.none_amiss(module_project.home):
        module_project.up()
        yield module_project


def provider(project: Project, **options: bool) -> CloudProvider:
    return CloudProvider(project.cluster() / "cluster-autoscaler" / "cloud-config.yaml", **options)


def names(project: Project) -> set[str]:
    return {node["metadata"]["name"] for node in project.api().list(NODES)}


def numbered(*numbers: int) -> set[str]:
    return {f"{POOL}-{number}" for number in numbers}


def refused(cloud: CloudProvider, call: str, **fields: Any) -> grpc.StatusCode:
    with pytest.raises(grpc.RpcError) as caught:
        cloud.ask(call, **fields)
    code: grpc.StatusCode = caught.value.code()
    return code


def test_a_template_is_the_node_that_comes_of_it_and_has_its_price(cluster: Project) -> None:
    with provider(cluster) as cloud:
        node = message_classes()["Node"].FromString(cloud.ask("NodeGroupTemplateNodeInfo", id=POOL).nodeBytes)
        [real] = [each for each in cluster.api().list(NODES) if each["metadata"]["name"] == f"{POOL}-0"]
        assert dict(node.metadata.labels) == real["metadata"]["labels"]
        for part in ("capacity", "allocatable"):
            found = {name: quantity.string for name, quantity in getattr(node.status, part).items()}
            assert found.keys() == real["status"][part].keys()
            assert all(equal(found[name], written) for name, written in real["status"][part].items())
        assert [(each.key, each.value, each.effect) for each in node.spec.taints] == [("only", "web", "NoSchedule")]
        ready = {each.type: each.status for each in node.status.conditions}
        assert ready == {each["type"]: each["status"] for each in real["status"]["conditions"]}

        known = {"name": f"{POOL}-0", "labels": real["metadata"]["labels"]}
        times = {"startTimestamp": {"seconds": 1000}, "endTimestamp": {"seconds": 1000 + 7200}}
        price = cloud.ask("PricingNodePrice", node=known, **times).price
        assert price == pytest.approx(2 * 0.13402284, rel=1e-3)
        assert cloud.ask("NodeGroupForNode", node=known).nodeGroup.id == POOL
        assert cloud.ask("NodeGroupForNode", node={"name": "other"}).nodeGroup.id == ""
        pod = message_classes()["Pod"]
        asked = pod(spec={"containers": [{"resources": {"requests": {"cpu": {"string": "1"}}}}]})
        of_pod = cloud.ask("PricingPodPrice", pod_bytes=asked.SerializeToString(), **times).price
        # A quarter of the machine's four CPUs.
        assert of_pod == pytest.approx(price / 4)
        assert cloud.ask("GPULabel").label == "nvidia.com/gpu.product"
        assert dict(cloud.ask("GetAvailableGPUTypes").gpuTypes) == {}
        defaults = {"scaleDownUtilizationThreshold": 0.4, "scaleDownUnneededDuration": {"seconds": 30}}
        options = cloud.ask("NodeGroupGetOptions", id=POOL, defaults=defaults).nodeGroupAutoscalingOptions
        assert options.scaleDownUtilizationThreshold == 0.4
        assert options.scaleDownUnneededDuration.seconds == 30


def test_who_has_no_certificate_resizes_nothing(cluster: Project) -> None:
    with provider(cluster) as cloud:
        assert cloud.ask("NodeGroupTargetSize", id=POOL).targetSize == 2
    with provider(cluster, certified=False) as stranger, pytest.raises(grpc.RpcError) as caught:
        stranger.ask("NodeGroupIncreaseSize", id=POOL, delta=1)
    assert caught.value.code() == grpc.StatusCode.UNAVAILABLE
    assert names(cluster) == numbered(0, 1)


def test_machines_that_take_their_time_are_on_their_way_and_a_killed_provider_forgets_them(
    binary: Path, cluster: Project
) -> None:
    stack(cluster, binary, registrationDelay="1h")
    cluster.up()
    with provider(cluster) as cloud:
        cloud.ask("NodeGroupIncreaseSize", id=POOL, delta=3)
        assert cloud.ask("NodeGroupTargetSize", id=POOL).targetSize == 5
        states = [each.status.instanceState for each in cloud.ask("NodeGroupNodes", id=POOL).instances]
        assert sorted(states) == [1, 1, 2, 2, 2]
        cloud.ask("NodeGroupDecreaseTargetSize", id=POOL, delta=-1)
        assert cloud.ask("NodeGroupTargetSize", id=POOL).targetSize == 4
        assert refused(cloud, "NodeGroupDecreaseTargetSize", id=POOL, delta=-3) == grpc.StatusCode.FAILED_PRECONDITION
        # cluster-autoscaler no longer waits for one: it deletes it by its ID, which it takes for the node's name too.
        late = next(
            each.id for each in cloud.ask("NodeGroupNodes", id=POOL).instances if each.status.instanceState == 2
        )
        fake = {"name": late, "providerID": late}
        assert cloud.ask("NodeGroupForNode", node=fake).nodeGroup.id == POOL
        cloud.ask("NodeGroupDeleteNodes", id=POOL, nodes=[fake])
        assert cloud.ask("NodeGroupTargetSize", id=POOL).targetSize == 3
        assert late not in {each.id for each in cloud.ask("NodeGroupNodes", id=POOL).instances}
    processes.kill(cluster.processes()["scaled/node-groups"])
    assert "node-groups is stopped and will be started" in cluster.foresee("--refresh").messages["scaled-control-plane"]
    cluster.up("--refresh")
    with provider(cluster) as cloud:
        assert cloud.ask("NodeGroupTargetSize", id=POOL).targetSize == 2
    assert names(cluster) == numbered(0, 1)
    stack(cluster, binary)
    cluster.up()


def fault(project: Project, *arguments: str) -> None:
    done = project.kumulus("fault", *arguments, "-s", "scaled")
    assert done.returncode == 0, done.stdout + done.stderr


def ready(project: Project) -> dict[str, bool]:
    return {node["metadata"]["name"]: is_ready(node) for node in project.api().list(NODES)}


def test_a_fault_holds_on_the_nodes_that_there_are_and_on_those_that_come(cluster: Project) -> None:
    with provider(cluster) as cloud:
        cloud.ask("NodeGroupDeleteNodes", id=POOL, nodes=[{"name": f"{POOL}-0"}])
        fault(cluster, "inject", "down", "--kind", "not-ready", "--group", "web")
        assert ready(cluster) == {f"{POOL}-1": False}
        assert cluster.foresee("--refresh").steps == ()
        cloud.ask("NodeGroupIncreaseSize", id=POOL, delta=1)
        cluster.api().until(NODES, lambda them: set(them) == numbered(0, 1))
        assert ready(cluster) == {f"{POOL}-0": False, f"{POOL}-1": False}
        cloud.ask("NodeGroupDeleteNodes", id=POOL, nodes=[{"name": f"{POOL}-1"}])
    fault(cluster, "clear", "down")
    assert ready(cluster) == {f"{POOL}-0": True}
    assert cluster.foresee("--refresh").steps == ()
    with provider(cluster) as cloud:
        cloud.ask("NodeGroupIncreaseSize", id=POOL, delta=1)
    cluster.api().until(NODES, lambda them: set(them) == numbered(0, 1))


def test_it_grows_and_shrinks_a_group_between_its_bounds_without_drift(cluster: Project, binary: Path) -> None:
    with provider(cluster) as cloud:
        cloud.ask("Refresh")
        [found] = cloud.ask("NodeGroups").nodeGroups
        assert (found.id, found.minSize, found.maxSize) == (POOL, 1, 6)
        cloud.ask("NodeGroupIncreaseSize", id=POOL, delta=2)
        assert cloud.ask("NodeGroupTargetSize", id=POOL).targetSize == 4
        made = cluster.api().until(NODES, lambda them: len(them) == 4 and all(map(is_ready, them.values())))
        assert set(made) == numbered(0, 1, 2, 3)
        ids = {each.id for each in cloud.ask("NodeGroupNodes", id=POOL).instances}
        assert ids == {node["spec"]["providerID"] for node in made.values()}

        # One in the middle goes: neither a plan nor a refresh wants it back.
        cloud.ask("NodeGroupDeleteNodes", id=POOL, nodes=[{"name": f"{POOL}-1"}])
        assert names(cluster) == numbered(0, 2, 3)
        assert cluster.foresee().steps == ()
        assert cluster.foresee("--refresh").steps == ()
        # A change of the template reaches the nodes that there are; their number stays, whatever `replicas` says.
        labels = {"metadata": {"labels": {"team": "search"}}}
        stack(cluster, binary, group(5, nodeTemplate={**group()["nodeTemplate"], **labels}))
        assert "3 nodes changed" in cluster.preview().text
        cluster.up("--refresh")
        assert names(cluster) == numbered(0, 2, 3)
        assert all(node["metadata"]["labels"]["team"] == "search" for node in cluster.api().list(NODES))

        # The lowest free number comes first, as the template is by then.
        cloud.ask("Refresh")
        cloud.ask("NodeGroupIncreaseSize", id=POOL, delta=1)
        cluster.api().until(NODES, lambda them: set(them) == numbered(0, 1, 2, 3))
        [new] = [node for node in cluster.api().list(NODES) if node["metadata"]["name"] == f"{POOL}-1"]
        assert new["metadata"]["labels"]["team"] == "search"
        assert cluster.foresee("--refresh").steps == ()

        assert refused(cloud, "NodeGroupIncreaseSize", id=POOL, delta=3) == grpc.StatusCode.FAILED_PRECONDITION
        doomed = [{"name": name} for name in numbered(0, 1, 2, 3)]
        assert refused(cloud, "NodeGroupDeleteNodes", id=POOL, nodes=doomed) == grpc.StatusCode.FAILED_PRECONDITION
        assert refused(cloud, "NodeGroupDeleteNodes", id=POOL, nodes=[{"name": "x"}]) == grpc.StatusCode.NOT_FOUND
        assert refused(cloud, "NodeGroupTargetSize", id="other") == grpc.StatusCode.NOT_FOUND
        assert names(cluster) == numbered(0, 1, 2, 3)

    # Below its bounds there is drift, which an update mends; without bounds the pool has its replicas.
    for name in numbered(0, 1, 2, 3):
        cluster.api().delete(f"{NODES}/{name}")
    cluster.up("--refresh")
    assert names(cluster) == numbered(0)
    bare = {key: value for key, value in group(3).items() if key not in ("minReplicas", "maxReplicas")}
    cluster.write_stack({"nodeGroups": [bare]})
    assert "+2 nodes (1 → 3)" in cluster.preview().text
    cluster.up()
    assert names(cluster) == numbered(0, 1, 2)
    assert "kumulus-cluster-autoscaler" not in {role["metadata"]["name"] for role in cluster.api().list(ROLES)}
    assert not {"scaled/cluster-autoscaler", "scaled/node-groups"} & cluster.processes().keys()
    cluster.destroy()
    assert cluster.processes() == {}
    assert not cluster.cluster().exists()


def test_a_real_cluster_autoscaler_makes_room_for_pods(tmp_path: Path, project: Project) -> None:
    real = shutil.which("cluster-autoscaler")
    if real is None:
        pytest.skip("no cluster-autoscaler on PATH")
    quick = {"scan-interval": "2s", "scale-down-unneeded-time": "5s", "scale-down-delay-after-add": "5s"}
    stack(project, Path(real), group(1), options={**quick, "expander": "price"})
    project.up()
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "3"}}}
    labels = {"app": "web"}
    spec = {"tolerations": [{"operator": "Exists"}], "containers": [container]}
    template = {"metadata": {"labels": labels}, "spec": spec}
    body = {"replicas": 4, "selector": {"matchLabels": labels}, "template": template}
    api = project.api()
    api.create(DEPLOYMENTS, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": body})
    api.until(PODS, lambda them: len(them) == 4 and all(map(is_running, them.values())), 180)
    assert len(names(project)) == 4
    assert project.foresee("--refresh").steps == ()
    api.merge(f"{DEPLOYMENTS}/web", {"spec": {"replicas": 0}})
    api.until(NODES, lambda them: len(them) == 1, 300)
    project.destroy()
    assert project.processes() == {}
