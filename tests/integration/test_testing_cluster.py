"""`kumulus.testing.Cluster` on real control planes: what it gives a test, and that nothing is left of it."""

import http.client
import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from kumulus.host import ports, processes
from kumulus.kube import ApiError
from kumulus.testing import AsyncCluster, Cluster, ClusterError, NotInTime, Pool
from kumulus.toolchain import cache
from tests.support.api import Api, Object, Refused
from tests.support.kinds import crd

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
NODES = "/api/v1/nodes"
STARTING = """
import sys, time
from kumulus.testing import Cluster
cluster = Cluster(nodes=2)
print("starting", flush=True)
with cluster, cluster.run(sys.executable, "-c", "import time; time.sleep(600)", str(cluster.folder)):
    print(cluster.folder, flush=True)
    time.sleep(600)
"""
# As docs/testing.md has it for these languages.
IN_A_SHELL = """
cluster=$("$KUMULUS" cluster up --nodes 1 --json --detach --ends-with $$ | cat)
echo "$cluster"
read end
"""
IN_NODE = """
const up = ["cluster", "up", "--nodes", "1", "--json", "--detach", "--ends-with", String(process.pid)]
const cluster = JSON.parse(require("child_process").execFileSync(process.env.KUMULUS, up))
console.log(JSON.stringify(cluster))
process.stdin.resume()
"""
PROGRAMS = [["sh", "-c", IN_A_SHELL], ["node", "-e", IN_NODE]]
# What no two moments have in common.
_MOMENT = {"uid", "resourceVersion", "managedFields", "resourceVersionMatch"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=30) as made:
        # The controller manager publishes it a moment after its start.
        made.wait(lambda: made.client.get("/apis/certificates.k8s.io/v1/clustertrustbundles")["items"])
        yield made


@pytest.fixture(scope="module")
def api(cluster: Cluster) -> Iterator[Api]:
    made = Api(cluster.kubeconfig)
    yield made
    made.close()


def everything(api: Api) -> dict[str, Object]:
    """Every object of every kind, by its path, without UIDs, times and resourceVersions; events are left out."""
    found: dict[str, Object] = {}
    groups = api.get("/apis")["groups"]
    for base in ("/api/v1", *(f"/apis/{group['preferredVersion']['groupVersion']}" for group in groups)):
        for kind in api.get(base)["resources"]:
            if "list" not in kind["verbs"] or "/" in kind["name"] or kind["name"] in ("events", "componentstatuses"):
                continue
            with suppress(Refused):
                for item in api.list(f"{base}/{kind['name']}"):
                    metadata = item["metadata"]
                    place = f"{base}/{kind['name']}/{metadata.get('namespace', '')}/{metadata['name']}"
                    found[place] = timeless(item)
    return found


def timeless(value: Any) -> Any:
    """A value without UIDs, times and resourceVersions."""
    if isinstance(value, dict):
        kept = {key: each for key, each in value.items() if key not in _MOMENT}
        return {key: timeless(each) for key, each in kept.items() if not key.endswith(("Time", "Timestamp"))}
    return [timeless(each) for each in value] if isinstance(value, list) else value


def definition(kind: str) -> Object:
    return crd(f"{kind.lower()}s.example.com", scope="Namespaced")


def deployment(replicas: int) -> dict[str, Any]:
    pod = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "none"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": pod},
    }


def pod(name: str, **metadata: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "image": "none"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata}, "spec": spec}


def refusing_everything() -> dict[str, Any]:
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"], "scope": "*"}
    webhook = {
        "name": "no.example.com",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [rule],
    }
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    return {**kind, "metadata": {"name": "no"}, "webhooks": [webhook]}


def test_all_nodes_are_ready_and_take_pods_at_once(cluster: Cluster) -> None:
    assert len(cluster.nodes()) == 30
    assert all(node.ready for node in cluster.nodes())
    cluster.apply(pod("one"))
    cluster.wait(lambda: [each.phase for each in cluster.pods("default")] == ["Running"])
    assert cluster.pods()[0].node in {node.name for node in cluster.nodes()}
    cluster.reset()


def test_reset_puts_back_every_object_whatever_holds_it(cluster: Cluster, api: Api) -> None:
    before = everything(api)
    cluster.resize(100)
    cluster.apply([definition("Gear"), definition("Wheel"), definition("Cart"), deployment(200)])
    cluster.apply({"apiVersion": "example.com/v1", "kind": "Gear", "metadata": {"name": "g", "finalizers": ["a.b/c"]}})
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "stuck"}})
    cluster.apply(pod("held", namespace="stuck", finalizers=["a.b/stay"]))
    cluster.wait(lambda: sum(each.phase == "Running" for each in cluster.pods()) == 201, timeout=120)
    cluster.client.delete("/api/v1/namespaces/stuck")
    cluster.client.patch(
        f"{NODES}/node-zone-1-1", {"spec": {"unschedulable": True}, "metadata": {"labels": {"a": "b"}}}
    )
    cluster.client.delete(f"{NODES}/node-zone-1-2")
    cluster.client.patch("/api/v1/namespaces/kube-system/configmaps/kube-root-ca.crt", {"data": {"ca.crt": "none"}})
    cluster.client.delete("/apis/rbac.authorization.k8s.io/v1/clusterroles/view")
    with cluster.fault("kernel-deadlock", nodes=3) as fault:
        assert all(node.conditions["KernelDeadlock"] == "True" for node in fault.nodes)
        cluster.apply(refusing_everything())
        cluster.wait(lambda: _refused(cluster), what="the webhook's refusal")

        done = cluster.reset()

        after = everything(api)
        assert after.keys() == before.keys()
        assert {path: (before[path], after[path]) for path in before if before[path] != after[path]} == {}
        assert "gears/default/g (with a.b/c)" in str(done)
        assert "pods/stuck/held (with a.b/stay)" in str(done)
        assert "validatingwebhookconfigurations/no (a webhook)" in str(done)
    # The fault is over; and what controllers still had to do has not brought anything back.
    assert not {each["metadata"]["name"] for each in api.list("/api/v1/pods")}
    cluster.apply([definition("Gear"), {"apiVersion": "example.com/v1", "kind": "Gear", "metadata": {"name": "g"}}])
    cluster.reset()
    assert everything(api).keys() == before.keys()


def _refused(cluster: Cluster) -> bool:
    try:
        cluster.client.create("/api/v1/namespaces/default/configmaps?dryRun=All", {"metadata": {"name": "x"}})
    except ApiError:
        return True
    return False


def test_reset_ends_work_that_controllers_have_just_begun(cluster: Cluster, api: Api) -> None:
    before = everything(api).keys()
    for _ in range(3):
        cluster.apply(deployment(150))
        cluster.wait(lambda: cluster.pods("default"), what="the first pod")
        cluster.reset()
        assert everything(api).keys() == before


def test_reset_goes_back_to_a_marked_point_and_then_to_the_start(cluster: Cluster, api: Api) -> None:
    at_start = everything(api)
    cluster.resize(40)
    cluster.apply([definition("Gear"), deployment(5)])
    cluster.wait(lambda: [each.phase for each in cluster.pods()] == ["Running"] * 5, timeout=120)
    cluster.mark("with five pods")
    marked = everything(api)
    cluster.client.delete("/apis/apps/v1/namespaces/default/deployments/web")
    cluster.client.delete("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gears.example.com")
    cluster.resize(35)
    cluster.apply(pod("other"))

    cluster.reset(to="with five pods")

    after = everything(api)
    assert after.keys() == marked.keys()
    assert {path: (marked[path], after[path]) for path in marked if marked[path] != after[path]} == {}
    cluster.apply({"apiVersion": "example.com/v1", "kind": "Gear", "metadata": {"name": "g"}})
    with pytest.raises(ClusterError, match=r"no point nowhere; mark it first, or reset to start, with five pods"):
        cluster.reset(to="nowhere")
    with pytest.raises(ClusterError, match="there is a point start already"):
        cluster.mark("start")
    cluster.reset()
    assert everything(api).keys() == at_start.keys()


def test_a_point_is_marked_once_controllers_have_done_what_they_had_to_do(cluster: Cluster, api: Api) -> None:
    """On a busy machine they pause; put back to what they had not finished, they would go on after each reset."""
    cluster.apply(deployment(1))
    cluster.wait(lambda: [each.phase for each in cluster.pods()] == ["Running"])
    (pid,) = processes.running(cluster.kubeconfig.parent)["kube-controller-manager"]
    os.kill(pid, signal.SIGSTOP)
    threading.Timer(1, os.kill, (pid, signal.SIGCONT)).start()
    cluster.client.patch("/apis/apps/v1/namespaces/default/deployments/web", {"spec": {"replicas": 2}})

    cluster.mark("with two pods")

    marked = everything(api)
    cluster.client.delete("/apis/apps/v1/namespaces/default/deployments/web")
    cluster.reset(to="with two pods")
    after = everything(api)
    assert {path: (marked[path], after.get(path)) for path in marked if marked[path] != after.get(path)} == {}
    assert len(cluster.pods()) == 2
    cluster.reset()


def test_a_point_is_marked_in_a_cluster_that_would_refuse_to_be_asked(cluster: Cluster, api: Api) -> None:
    quota = {"metadata": {"name": "full"}, "spec": {"hard": {"count/deployments.apps": "1"}}}
    cluster.apply([deployment(1), {"apiVersion": "v1", "kind": "ResourceQuota", **quota}])
    quotas = "/api/v1/namespaces/default/resourcequotas"
    api.until(quotas, lambda found: found["full"]["status"].get("used") == {"count/deployments.apps": "1"})

    cluster.mark("full")

    made = [each["metadata"]["name"] for each in api.list("/apis/apps/v1/deployments")]
    made += [each["metadata"]["name"] for each in api.list("/apis/apps/v1/replicasets")]
    assert len(made) == 2
    assert all(name.startswith("web") for name in made)
    cluster.reset()


def test_what_a_reset_writes_has_a_version_for_each_object(cluster: Cluster) -> None:
    """A watch goes on from the last version that it has seen: of two objects of one version, it may miss the second."""
    maps = "/api/v1/namespaces/default/configmaps"
    names = [f"kept-{number}" for number in range(20)]
    cluster.apply([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}} for name in names])
    cluster.mark("with maps")
    for name in names:
        cluster.client.delete(f"{maps}/{name}")
    cluster.reset(to="with maps")
    found = [each["metadata"] for each in cluster.client.get(maps)["items"] if each["metadata"]["name"] in names]
    assert len({each["resourceVersion"] for each in found}) == len(found) == len(names)
    cluster.reset()


def test_clusters_of_one_kind_have_their_own_keys_uids_and_times(cluster: Cluster) -> None:
    with Cluster(nodes=1) as other:
        namespaces = [
            {each["metadata"]["name"]: each["metadata"] for each in one.client.get("/api/v1/namespaces")["items"]}
            for one in (cluster, other)
        ]
        assert namespaces[0].keys() == namespaces[1].keys()
        for name in ("default", "kube-system"):
            assert namespaces[0][name]["uid"] != namespaces[1][name]["uid"]
            assert namespaces[0][name]["creationTimestamp"] < namespaces[1][name]["creationTimestamp"]
        roots = [one.client.get("/api/v1/namespaces/default/configmaps/kube-root-ca.crt") for one in (cluster, other)]
        authorities = [(one.kubeconfig.parent / "pki" / "ca.crt").read_text() for one in (cluster, other)]
        assert [each["data"]["ca.crt"] for each in roots] == authorities
        assert authorities[0] != authorities[1]
        trusting = ssl.create_default_context(cafile=other.kubeconfig.parent / "pki" / "ca.crt")
        own = cluster.kubeconfig.parent / "pki"
        trusting.load_cert_chain(own / "admin.crt", own / "admin.key")
        asking = http.client.HTTPSConnection("127.0.0.1", int(other.server.rpartition(":")[2]), context=trusting)
        asking.request("GET", "/api/v1/nodes")
        assert asking.getresponse().status == 401
        asking.close()


async def test_a_cluster_that_has_started_is_ready_in_every_part(cluster: Cluster) -> None:
    # It begins with what is kept of the other one, and its API server serves a second before it says that it is ready.
    # Without nodes, whose making takes as long, nothing else waits for that.
    async with AsyncCluster({}) as other:
        await other.client.get("/readyz", patience=0)
        parts = [set(processes.running(one.kubeconfig.parent)) for one in (cluster, other)]
        metrics: bytes = await other.client.request("GET", "/metrics", accept="text/plain", decode=bytes)
    assert parts[0] == parts[1]
    # KWOK would wait a second.
    counted = [line for line in metrics.decode().splitlines() if line.startswith("apiserver_request_total{")]
    assert any('resource="stages"' in line for line in counted)
    assert not [line for line in counted if 'resource="stages"' in line and 'code="429"' in line]


def test_what_is_kept_of_earlier_clusters_and_does_not_do_is_made_anew(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (kept,) = sorted((cache.root().parent / "clusters").glob("*.json"), key=lambda file: file.stat().st_mtime)[-1:]
    spoilt = json.loads(kept.read_text())
    spoilt["kwok"] = spoilt["kwok"].replace("--etcd-servers=", "--no-such-flag=")
    monkeypatch.setattr("kumulus.testing.template.file_of", lambda _: tmp_path / "kept.json")
    (tmp_path / "kept.json").write_text(json.dumps(spoilt))
    said: list[str] = []
    with Cluster(nodes=1, say=said.append) as made:
        assert [node.ready for node in made.nodes()] == [True]
    assert [line for line in said if "does not start, and is made anew" in line and "no-such-flag" in line]
    assert "no-such-flag" not in (tmp_path / "kept.json").read_text()


def test_what_a_fault_does_ends_with_its_block(cluster: Cluster) -> None:
    with cluster.fault(nodes=["node-zone-1-0"], kubelet="notReady") as fault:
        assert fault.names == ["node-zone-1-0"]
        cluster.wait(lambda: not fault.nodes[0].ready)
    cluster.wait(lambda: all(node.ready for node in cluster.nodes()))


def test_an_experiment_is_measured_and_reset_forgets_it(cluster: Cluster, api: Api) -> None:
    before = everything(api).keys()
    workload = {"name": "few", "jobs": 1, "workers": 2, "requests": {"cpu": "1"}}
    asked = {"name": "own", "settle": "1s", "timeout": "90s", "workloads": [workload]}
    assert cluster.experiment(asked)["results"]["status"] == "success"
    cluster.reset()
    assert everything(api).keys() == before
    with pytest.raises(ClusterError, match="workloads"):
        cluster.experiment({"name": "own"})


def test_a_program_has_the_clusters_kubeconfig_and_ends_with_its_block(cluster: Cluster, tmp_path: Path) -> None:
    wrote = tmp_path / "wrote"
    with cluster.run("sh", "-c", f'echo "$KUBECONFIG" > {wrote}; exec sleep 600') as program:
        cluster.wait(lambda: wrote.exists() and wrote.read_text() == f"{cluster.kubeconfig}\n")
        assert program.poll() is None
    assert program.returncode == -signal.SIGKILL
    with pytest.raises(ClusterError, match=r"no program bin/manager that can be run"), cluster.run("bin/manager"):
        pass


def test_a_client_of_a_library_that_is_not_there_says_what_to_install(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "lightkube", None)
    with pytest.raises(ClusterError, match="pip install lightkube"):
        _ = cluster.clients.lightkube


def test_a_mistake_is_named_with_its_remedy(cluster: Cluster, tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="kernel-deadlock"), cluster.fault("kernel-dedlock", nodes=1):
        pass
    with pytest.raises(ClusterError, match=r"no kind Gear of example.com/v1; apply its CustomResourceDefinition"):
        cluster.apply({"apiVersion": "example.com/v1", "kind": "Gear", "metadata": {"name": "g"}})
    with pytest.raises(ClusterError, match=r"absent\.yaml cannot be read"):
        cluster.apply(tmp_path / "absent.yaml")
    with pytest.raises(ClusterError, match="etcd, kube-apiserver"):
        cluster.logs("kubelet")
    with pytest.raises(NotInTime, match=r"no such pod[\s\S]*the last events:"):
        cluster.wait(lambda: _assert_pods(cluster), timeout=0.5)


def _assert_pods(cluster: Cluster) -> bool:
    assert cluster.pods("nowhere"), "no such pod"
    return True


def test_nothing_of_the_users_own_is_used_or_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cluster: Cluster
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    assert cluster.env["KUBECONFIG"].startswith(str(cluster.folder))
    assert len(cluster.nodes()) == 30
    assert list(tmp_path.iterdir()) == []


async def test_an_event_loop_has_a_cluster_of_its_own_and_nothing_is_left_of_it() -> None:
    async with AsyncCluster(nodes={"h100": 2}, podLifecycles=[{"name": "short", "run": "0s"}]) as cluster:
        nodes = await cluster.nodes("nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3")
        assert [node.object["status"]["capacity"]["nvidia.com/gpu"] for node in nodes] == ["8", "8"]
        brief = pod("brief")
        await cluster.apply({**brief, "spec": {**brief["spec"], "restartPolicy": "Never"}})

        async def ended() -> bool:
            return [each.phase for each in await cluster.pods()] == ["Succeeded"]

        await cluster.wait(ended)
        folder, port = cluster.folder, cluster.server.rpartition(":")[2]
    assert not folder.exists()
    assert _left(folder) == []
    assert not ports.in_use(int(port))


def test_a_cluster_of_a_pool_that_could_not_be_put_back_is_tried_again_for_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    struck: list[str] = []
    striking = {}
    for name in ("reset", "start"):
        as_ever = getattr(Cluster, name)

        def once(cluster: Cluster, name: str = name, as_ever: Callable[[Cluster], Cluster] = as_ever) -> Cluster:
            if len(struck) < 2:
                struck.append(name)
                raise ClusterError("no room")
            return as_ever(cluster)

        striking[name] = once
    with Pool(size=1, nodes=1) as pool:
        for name, once in striking.items():
            monkeypatch.setattr(Cluster, name, once)
        with pool.lease():
            pass
        with pytest.raises(ClusterError, match="no room"), pool.lease():
            pass
        with pool.lease(timeout=60) as cluster:
            assert len(cluster.nodes()) == 1
    assert struck == ["reset", "start"]


def test_a_pools_clusters_are_leased_as_new_and_one_at_a_time() -> None:
    with Pool(size=2, nodes=1) as pool:
        folders = []
        with pool.lease() as one, pool.lease() as other:
            assert one.folder != other.folder
            folders = [one.folder, other.folder]
            one.apply(pod("left", finalizers=["a.b/stay"]))
            with pytest.raises(ClusterError, match=r"no cluster became free within 0\.1 s"), pool.lease(timeout=0.1):
                pass
        with pool.lease() as one, pool.lease() as other:
            assert {one.folder, other.folder} == set(folders)
            assert one.pods() + other.pods() == []
            # One that is spoilt for good is replaced, not leased again.
            for pids in processes.running(one.kubeconfig.parent).values():
                processes.end(pids)
        with pool.lease() as one, pool.lease() as other:
            assert len(one.nodes()) == len(other.nodes()) == 1
            folders += [one.folder, other.folder]
    assert not any(_left(folder) or folder.exists() for folder in folders)


@pytest.mark.parametrize("moment", ["while it starts", "when it is up"])
def test_a_killed_process_leaves_no_cluster(moment: str, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "TMPDIR": str(tmp_path)}
    program = subprocess.Popen(
        [sys.executable, "-c", STARTING], env=environment, stdout=subprocess.PIPE, text=True, cwd=tmp_path
    )
    assert program.stdout is not None
    try:
        assert program.stdout.readline() == "starting\n"
        if moment == "when it is up":
            folder = Path(program.stdout.readline().strip())
            assert any("time.sleep" in each for each in _left(folder))
        else:
            _until(lambda: list(tmp_path.glob("kumulus-test-*/clusters/*/pki")))
            folder = next(tmp_path.glob("kumulus-test-*"))
        # It struck: there is something to leave behind.
        assert _left(folder)
    finally:
        program.send_signal(signal.SIGKILL)
        program.communicate()
    _until(lambda: not _left(folder) and not folder.exists())
    assert list(tmp_path.iterdir()) == []


def test_another_program_gets_a_cluster_as_one_json_object_and_takes_it_down(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "kumulus"), "cluster"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    up = subprocess.run(
        [*command, "up", "--nodes", "2", "--json", "--detach"],
        env=environment, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert up.returncode == 0, up.stderr
    found = json.loads(up.stdout)
    folder = Path(found["folder"])
    try:
        assert found["nodes"] == 2
        assert len(Api(Path(found["kubeconfig"])).list(NODES)) == 2
    finally:
        down = subprocess.run(
            [*command, "down", found["kubeconfig"]], capture_output=True, text=True, check=False, timeout=60
        )
    assert (down.returncode, down.stdout, down.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []
    assert _left(folder) == []
    (mine := tmp_path / "kumulus-test-of-mine").mkdir()
    (mine / "notes.txt").write_text("mine")
    for named in ("/etc", str(mine)):
        refused = subprocess.run([*command, "down", named], capture_output=True, text=True, check=False, timeout=60)
        assert (refused.returncode, refused.stderr.splitlines()[0]) == (1, f"error: {named} is no cluster's folder")
    assert (mine / "notes.txt").exists()
    again = subprocess.run([*command, "down", str(folder)], capture_output=True, text=True, check=False, timeout=60)
    assert (again.returncode, again.stderr) == (0, "")


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: str(each[0]))
def test_a_detached_cluster_ends_with_the_program_that_asked_for_it(program: list[str], tmp_path: Path) -> None:
    if shutil.which(program[0]) is None:
        pytest.skip(f"there is no {program[0]} on PATH")
    environment = {**os.environ, "TMPDIR": str(tmp_path), "KUMULUS": str(ROOT / "kumulus")}
    owner = subprocess.Popen(program, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    try:
        folder = Path(json.loads(owner.stdout.readline())["folder"])
        assert _left(folder)
    finally:
        owner.kill()
        owner.communicate()
    _until(lambda: not _left(folder))
    assert list(tmp_path.iterdir()) == []


def _left(folder: Path) -> list[str]:
    """The command lines of the processes that have to do with a folder."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        command = " ".join(process.info["cmdline"] or [])
        if str(folder) in command:
            found.append(command)
    return found


def _until(condition: Any) -> None:
    ends = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.05)
