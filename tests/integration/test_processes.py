"""Pods that are processes, on a real control plane: what they get, how they end, and who reaches them."""

import base64
import contextlib
import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

from kumulus import toolchain
from tests.integration.conftest import PODS, Plane, plane_at
from tests.support import examples, listeners
from tests.support.api import Object, Refused

pytestmark = pytest.mark.integration
IMAGE = "example.com/team/tool"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
SECRETS = "/api/v1/namespaces/default/secrets"
SERVICES = "/api/v1/namespaces/default/services"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
PYTHON = Path("/usr/bin/python3")
EXPORTER = "kube-state-metrics"
# Answers what it was asked, and as a webhook refuses what has a label; by TLS if it has a certificate.
SERVER = """\
#!/usr/bin/python3
import http.server, json, os, ssl
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.answer({"path": self.path, "name": os.environ["HOSTNAME"]})
    def do_POST(self):
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        refused = "refused" in (review["request"]["object"]["metadata"].get("labels") or {})
        answer = {"uid": review["request"]["uid"], "allowed": not refused, "status": {"message": "the guard says no"}}
        self.answer({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer})
    def answer(self, document):
        body = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
server = http.server.ThreadingHTTPServer(("", 443 if os.path.exists("/certificates") else 80), Answer)
if os.path.exists("/certificates"):
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain("/certificates/tls.crt", "/certificates/tls.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""
# Says what it has been given, then does what its arguments say.
SHELL = """\
#!/bin/sh
echo "arguments $@"; echo "greeting $GREETING of $POD at $ADDRESS"; echo "id $(id -u) in $(pwd) on $(hostname)"
cat /etc/words/greeting; echo; ls /; ls /root /home 2>&1; wc -c < /var/run/secrets/kubernetes.io/serviceaccount/token
touch /usr/mine 2>&1
eval "$@"
"""


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A control plane whose pods of three images are processes."""
    folder = tmp_path_factory.mktemp("programs")
    for name, text in (("shell", SHELL), ("server", SERVER)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    programs = {IMAGE: str(folder / "shell"), f"{IMAGE}/server": str(folder / "server")}
    with contextlib.suppress(toolchain.ToolMissing):
        toolchain.find(EXPORTER)
        programs[f"registry.k8s.io/{EXPORTER}/{EXPORTER}"] = EXPORTER
    with plane_at(tmp_path_factory.mktemp("home"), processes=programs) as made:
        # The API server applies a policy some moments after it has taken it: the cluster is not there before.
        assert made.api.create(f"{PODS}?dryRun=All", pod("tried"))["spec"]["nodeName"] == "local"
        yield made


def pod(name: str, *arguments: str, image: str = f"{IMAGE}:v1", **spec: Any) -> Object:
    container = {"name": "main", "image": image, "args": list(arguments), **spec.pop("container", {})}
    return {
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 5, **spec},
    }


def of(found: Mapping[str, Object], name: str) -> Object:
    """The status of a pod's only container."""
    statuses: list[Object] = found.get(name, {}).get("status", {}).get("containerStatuses") or [{"state": {}}]
    return statuses[0]


def kubectl(plane: Plane, *arguments: str) -> str:
    """What kubectl prints."""
    command = [str(toolchain.find("kubectl")), "--kubeconfig", plane.observed.kubeconfig, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def kubelet_of(plane: Plane) -> int:
    """The node's kubelet: the first of its processes, as those of pods are its children, and orphans while they end."""
    pids = plane.processes()["local-node"]
    there = [each for each in psutil.process_iter(["create_time"]) if each.pid in pids]
    return min(there, key=lambda each: float(each.info["create_time"])).pid


def refusal(plane: Plane) -> str:
    """Why a ConfigMap with the label `refused` is not taken, once the API server has taken up the webhook."""
    for _ in range(1000):
        try:
            plane.api.create(CONFIG_MAPS, {"metadata": {"generateName": "r-", "labels": {"refused": ""}}})
        except Refused as error:
            return str(error)
    return "it is taken"


def certificate(plane: Plane, folder: Path, host: str) -> str:
    """Make a Secret with a certificate for a host, which is its own authority; returns that."""
    how = "-x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout tls.key -out tls.crt"
    command = ["openssl", "req", *how.split(), "-subj", f"/CN={host}", "-addext", f"subjectAltName=DNS:{host}"]
    subprocess.run(command, cwd=folder, capture_output=True, check=True)
    data = {name: base64.b64encode((folder / name).read_bytes()).decode() for name in ("tls.crt", "tls.key")}
    plane.api.create(SECRETS, {"metadata": {"name": host.partition(".")[0]}, "data": data})
    return data["tls.crt"]


def ready(plane: Plane, name: str) -> Object:
    """The pod, once it is ready."""
    found = plane.api.until(PODS, lambda found: bool(of(found, name).get("ready")))
    return found[name]


def test_a_program_has_its_arguments_variables_files_and_account_and_none_of_the_users_files(local: Plane) -> None:
    local.api.create(CONFIG_MAPS, {"metadata": {"name": "words"}, "data": {"greeting": "hello"}})
    variables = [
        {"name": "GREETING", "valueFrom": {"configMapKeyRef": {"name": "words", "key": "greeting"}}},
        {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
    ]
    # Relative paths start at the container's root.
    mount = {"name": "words", "mountPath": "etc/words"}
    volume = {"name": "words", "configMap": {"name": "words"}}
    container = {"env": variables, "volumeMounts": [mount], "workingDir": "../tmp"}
    made = pod("first", "exit", "3", restartPolicy="Never", container=container, volumes=[volume])
    assert local.api.create(PODS, made)["spec"]["nodeName"] == "local"
    found = local.api.until(PODS, lambda found: found.get("first", {}).get("status", {}).get("phase") == "Failed")
    status = of(found, "first")
    assert status["state"]["terminated"]["exitCode"] == 3
    said = kubectl(local, "logs", "first")
    address = found["first"]["status"]["podIP"]
    for each in ("arguments exit 3", f"greeting hello of first at {address}", "id 65532 in /tmp on first", "hello\n"):
        assert each in said
    assert "cannot access '/root'" in said
    assert "Read-only file system" in said
    assert not Path("/usr/mine").exists()


def test_a_program_that_ends_is_started_again_at_once_and_then_later(local: Plane) -> None:
    local.api.create(PODS, pod("again", "exit", "1"))

    def waits(found: Mapping[str, Object]) -> bool:
        return bool(of(found, "again")["state"].get("waiting", {}).get("reason") == "CrashLoopBackOff")

    found = local.api.until(PODS, waits)
    assert of(found, "again")["restartCount"] == 1
    assert of(found, "again")["lastState"]["terminated"]["exitCode"] == 1
    local.api.delete(f"{PODS}/again")
    local.api.until(PODS, lambda found: "again" not in found)


def test_what_a_pod_waits_for_is_said_and_taken_when_it_comes(local: Plane) -> None:
    volume = {"name": "late", "secret": {"secretName": "late"}}
    container = {"volumeMounts": [{"name": "late", "mountPath": "/late"}]}
    local.api.create(
        PODS, pod("waits", "cat", "/late/word", restartPolicy="Never", container=container, volumes=[volume])
    )
    found = local.api.until(PODS, lambda found: "not found" in json.dumps(of(found, "waits")))
    assert of(found, "waits")["state"]["waiting"]["reason"] == "CreateContainerConfigError"
    data = {"word": base64.b64encode(b"at last").decode()}
    local.api.create(SECRETS, {"metadata": {"name": "late"}, "data": data})
    local.api.until(PODS, lambda found: found["waits"]["status"]["phase"] == "Succeeded")
    assert "at last" in kubectl(local, "logs", "waits")


@pytest.mark.parametrize(
    ("name", "spec", "said"),
    [
        ("host", {"hostNetwork": True}, "no network, processes or IPC of this machine"),
        ("path", {"volumes": [{"name": "all", "hostPath": {"path": "/"}}]}, "hostPath is no volume of a process"),
    ],
)
def test_what_a_process_cannot_have_is_refused_by_name(local: Plane, name: str, spec: Object, said: str) -> None:
    local.api.create(PODS, pod(name, "true", **spec))
    found = local.api.until(PODS, lambda found: "message" in of(found, name)["state"].get("waiting", {}))
    assert said in of(found, name)["state"]["waiting"]["message"]
    local.api.delete(f"{PODS}/{name}")


def test_other_pods_are_emulated_as_before(local: Plane) -> None:
    assert "nodeName" not in local.api.create(PODS, pod("other", image=f"{IMAGE}s:v1"))["spec"]
    local.api.delete(f"{PODS}/other")


@pytest.fixture(scope="module")
def guard(local: Plane, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A pod and its Service, which answer by TLS: the authority of their certificate."""
    if not PYTHON.exists():
        pytest.skip(f"no {PYTHON}")
    probe = {"httpGet": {"path": "/", "port": 443, "scheme": "HTTPS"}, "periodSeconds": 1}
    mount = {"name": "certificates", "mountPath": "/certificates"}
    volume = {"name": "certificates", "secret": {"secretName": "guard"}}
    authority = certificate(local, tmp_path_factory.mktemp("guard"), "guard.default.svc")
    container = {"readinessProbe": probe, "volumeMounts": [mount]}
    local.api.create(
        PODS, pod("guard", image=f"{IMAGE}/server@sha256:{'0' * 64}", container=container, volumes=[volume])
    )
    ready(local, "guard")
    local.api.create(
        SERVICES, {"metadata": {"name": "guard"}, "spec": {"selector": {"app": "guard"}, "ports": [{"port": 443}]}}
    )
    slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
    local.api.until(slices, lambda found: any(each.get("endpoints") for each in found.values()))
    return authority


def test_a_service_and_a_webhook_reach_a_program_that_listens_everywhere_and_nobody_else_does(
    local: Plane, guard: str
) -> None:
    answered = json.loads(kubectl(local, "get", "--raw", f"{SERVICES}/https:guard:443/proxy/asked"))
    assert answered == {"path": "/asked", "name": "guard"}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    hook = {
        "name": "guard.example.com",
        "clientConfig": {"service": {"name": "guard", "namespace": "default"}, "caBundle": guard},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    local.api.create(WEBHOOKS, {"metadata": {"name": "guard"}, "webhooks": [hook]})
    assert "the guard says no" in refusal(local)
    local.api.create(CONFIG_MAPS, {"metadata": {"name": "allowed"}})
    local.api.delete(f"{WEBHOOKS}/guard")
    kubelet = kubelet_of(local)
    ours = {each.pid for each in psutil.Process(kubelet).children(recursive=True)}
    assert ours
    assert listeners.of({kubelet, *ours}) == set()


def test_an_aggregated_api_is_answered_by_a_pod_that_is_a_process(local: Plane, guard: str) -> None:
    group = "guard.example.com"
    service = {"name": "guard", "namespace": "default"}
    spec = {"group": group, "version": "v1", "service": service, "caBundle": guard}
    priorities = {"groupPriorityMinimum": 1000, "versionPriority": 10}
    body = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "spec": {**spec, **priorities}}
    services = "/apis/apiregistration.k8s.io/v1/apiservices"
    local.api.create(services, {**body, "metadata": {"name": f"v1.{group}"}})

    def available(found: Mapping[str, Object]) -> bool:
        conditions = found[f"v1.{group}"].get("status", {}).get("conditions", [])
        return [each["status"] for each in conditions if each["type"] == "Available"] == ["True"]

    local.api.until(services, available)
    answered = json.loads(kubectl(local, "get", "--raw", f"/apis/{group}/v1/asked"))
    assert answered == {"path": f"/apis/{group}/v1/asked", "name": "guard"}
    local.api.delete(f"{services}/v1.{group}")


def test_kube_state_metrics_by_its_own_manifests_exports_the_nodes(local: Plane) -> None:
    manifests = str(examples.module(f"k8s.io/{EXPORTER}/v2", EXPORTER) / "examples" / "standard")
    kubectl(local, "apply", "-k", manifests)
    kubectl(local, "rollout", "status", f"deploy/{EXPORTER}", "--namespace=kube-system", "--timeout=50s")
    metrics = f"/api/v1/namespaces/kube-system/services/{EXPORTER}:http-metrics/proxy/metrics"
    assert 'kube_node_info{node="local"' in kubectl(local, "get", "--raw", metrics)
    kubectl(local, "delete", "-k", manifests)


def test_a_pod_ends_with_its_object_and_all_of_them_with_their_kubelet(local: Plane) -> None:
    kubelet = kubelet_of(local)
    others = psutil.Process(kubelet).children(recursive=True)
    local.api.create(PODS, pod("sleeps", "exec", "sleep", "1000"))
    ready(local, "sleeps")
    its = [each for each in psutil.Process(kubelet).children(recursive=True) if each not in others]
    assert its
    local.api.delete(f"{PODS}/sleeps")
    local.api.until(PODS, lambda found: "sleeps" not in found)
    assert psutil.wait_procs(its, timeout=10)[1] == []
    local.api.create(PODS, pod("stays", "exec", "sleep", "1000"))
    ready(local, "stays")
    left = psutil.Process(kubelet).children(recursive=True)
    psutil.Process(kubelet).kill()
    assert psutil.wait_procs(left, timeout=10)[1] == []
