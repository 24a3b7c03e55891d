"""A cluster that is not the stack's own: a control plane with RBAC, a node, and users of few rights.

No container can run here. So for each Deployment of a kwok-controller or of Karpenter that a stack creates,
:class:`StandIn` runs the program as a process, with the Deployment's own configuration, service account and arguments.
The pod itself is emulated on the node `host`, which stands in for a real one.
"""

import base64
import json
import os
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from kumulus import toolchain
from kumulus.host import ports
from tests.support.api import Api, Object, Refused

ROOT = Path(__file__).resolve().parents[2]
HOST = "host"
NODES = "/api/v1/nodes"
_DEPLOYMENTS = "/apis/apps/v1/namespaces/kube-system/deployments"
_MAPS = "/api/v1/namespaces/kube-system/configmaps"
_MINE = "app.kubernetes.io/managed-by=kumulus"


class Elsewhere:
    """The cluster, for its administrator."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        self.api = Api(kubeconfig)

    @property
    def identity(self) -> str:
        """The UID of the namespace kube-system."""
        uid: str = self.api.get("/api/v1/namespaces/kube-system")["metadata"]["uid"]
        return uid

    def apply(self, *files: Path) -> None:
        """Apply manifests, as an administrator would."""
        arguments = [argument for file in files for argument in ("-f", str(file))]
        command = [str(toolchain.find("kubectl")), "--kubeconfig", str(self.kubeconfig), "apply", *arguments]
        answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert answer.returncode == 0, answer.stderr

    def token(self, namespace: str, account: str, seconds: int = 3600) -> str:
        """A token of a service account."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        asked = {"spec": {"expirationSeconds": seconds}}
        found: str = self.api.create(path, asked)["status"]["token"]
        return found

    def user(self, token: str, context: str = "team") -> dict[str, Any]:
        """A kubeconfig of a user with a token, which has another context as well."""
        admin = yaml.safe_load(self.kubeconfig.read_text())["clusters"][0]["cluster"]
        authority = (self.kubeconfig.parent / admin["certificate-authority"]).read_bytes()
        cluster = {"server": admin["server"], "certificate-authority-data": base64.b64encode(authority).decode()}
        other = {"server": "https://127.0.0.1:1"}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "nowhere",
            "contexts": [
                {"name": "nowhere", "context": {"cluster": "other", "user": "stack"}},
                {"name": context, "context": {"cluster": "shared", "user": "stack"}},
            ],
            "clusters": [{"name": "shared", "cluster": cluster}, {"name": "other", "cluster": other}],
            "users": [{"name": "stack", "user": {"token": token}}],
        }

    def add_node(self, name: str, **labels: str) -> None:
        """Create a node that looks as if a kubelet had registered it."""
        info = dict.fromkeys(
            ("architecture", "bootID", "kernelVersion", "kubeProxyVersion", "kubeletVersion", "machineID"), ""
        ) | dict.fromkeys(("operatingSystem", "osImage", "systemUUID"), "")
        node = {
            # In KWOK no selector matches a node without labels.
            "metadata": {
                "name": name,
                "labels": {"kubernetes.io/hostname": name, **labels},
                "annotations": {"kwok.x-k8s.io/node": "fake"},
            },
            "status": {
                "capacity": {"cpu": "8", "memory": "16Gi", "pods": "110"},
                "allocatable": {"cpu": "8", "memory": "16Gi", "pods": "110"},
                "nodeInfo": {**info, "containerRuntimeVersion": "containerd://1.7.2"},
            },
        }
        self.api.create(NODES, node)

    def objects(self) -> dict[str, str]:
        """The UID of every object of every kind in every namespace, by its path, except events and leases."""
        found: dict[str, str] = {}
        for base, resource in self._kinds():
            with suppress(Refused):
                for item in self.api.request("GET", f"{base}/{resource}")["items"] or []:
                    metadata = item["metadata"]
                    place = metadata.get("namespace", "")
                    found[f"{base}/{resource}/{place}/{metadata['name']}"] = metadata.get("uid", "")
        return found

    def _kinds(self) -> Iterator[tuple[str, str]]:
        groups = self.api.get("/apis")["groups"]
        bases = ["/api/v1", *(f"/apis/{group['preferredVersion']['groupVersion']}" for group in groups)]
        for base in bases:
            kinds: list[Object] = []
            # An API group is still listed for a moment after its last kind is removed.
            with suppress(Refused):
                kinds = self.api.get(base)["resources"]
            for kind in kinds:
                listed = "list" in kind["verbs"] and "/" not in kind["name"]
                if listed and kind["name"] not in ("events", "leases", "componentstatuses"):
                    yield base, kind["name"]

    def close(self) -> None:
        """Close the connection."""
        self.api.close()


@dataclass
class _Controller:
    process: subprocess.Popen[bytes]
    configuration: str


class StandIn:
    """Runs each kwok-controller and Karpenter that the cluster has a Deployment of, until it is closed.

    Args:
        folder: an empty folder for what the processes read and write.
    """

    def __init__(self, elsewhere: Elsewhere, folder: Path) -> None:
        self._elsewhere, self._folder = elsewhere, folder
        self._api = Api(elsewhere.kubeconfig)
        self._running: dict[str, _Controller] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def logs(self) -> str:
        """The last output of the processes."""
        return "\n".join(file.read_text(errors="replace")[-2000:] for file in self._folder.glob("*.log"))

    def close(self) -> None:
        """End the processes."""
        self._stop.set()
        self._thread.join(30)
        for name in list(self._running):
            self._end(name)
        self._api.close()

    def _work(self) -> None:
        while not self._stop.wait(0.3):
            with suppress(Refused, OSError, KeyError):
                self._look()

    def _look(self) -> None:
        found = self._api.list(_DEPLOYMENTS, labelSelector=_MINE)
        wanted = {each["metadata"]["name"]: each for each in found if each["spec"]["replicas"]}
        for name, deployment in wanted.items():
            template = deployment["spec"]["template"]
            configuration = template["metadata"]["annotations"]["kumulus.io/configuration"]
            known = self._running.get(name)
            if known is None or known.configuration != configuration or known.process.poll() is not None:
                self._end(name)
                self._running[name] = _Controller(self._start(name, template["spec"]), configuration)
        for name in set(self._running) - set(wanted):
            self._end(name)
        self._kubelet()

    def _start(self, name: str, spec: Object) -> subprocess.Popen[bytes]:
        """Start the program with what the pod would get: its files, its arguments and its service account."""
        maps = {volume["name"]: volume["configMap"]["name"] for volume in spec["volumes"]}
        (container,) = spec["containers"]
        if container["name"] == "karpenter":
            return self._start_karpenter(name, spec, container)
        arguments = []
        for argument in container["args"]:
            mounted = next((m for m in container["volumeMounts"] if argument == f"--config={m['mountPath']}"), None)
            if mounted is None:
                arguments.append(argument.replace("$(POD_IP)", "127.0.0.1"))
                continue
            file = self._folder / f"{name}-{mounted['name']}.yaml"
            file.write_text(self._api.get(f"{_MAPS}/{maps[mounted['name']]}")["data"][mounted["subPath"]])
            arguments.append(f"--config={file}")
        kubeconfig = self._kubeconfig(name, spec)
        port = _free_port()
        command = [str(toolchain.find("kwok")), *arguments, "--kubeconfig", str(kubeconfig)]
        environment = {**os.environ, "KWOK_WORKDIR": str(self._folder / "none"), "HOME": str(self._folder)}
        with (self._folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [*command, "--server-address", f"127.0.0.1:{port}"], stdout=log, stderr=log, env=environment
            )

    def _start_karpenter(self, name: str, spec: Object, container: Object) -> subprocess.Popen[bytes]:
        (mount,) = container["volumeMounts"]
        (volume,) = spec["volumes"]
        folder = self._folder / name
        folder.mkdir(exist_ok=True)
        for file, content in self._api.get(f"{_MAPS}/{volume['configMap']['name']}")["data"].items():
            (folder / file).write_text(content)
        given = {
            each["name"]: each.get("value", "").replace(mount["mountPath"], str(folder)) for each in container["env"]
        }
        given |= {"METRICS_PORT": str(_free_port()), "HEALTH_PROBE_PORT": str(_free_port())}
        environment = {**os.environ, **given, "KUBECONFIG": str(self._kubeconfig(name, spec))}
        with (self._folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen([str(toolchain.find("karpenter"))], stdout=log, stderr=log, env=environment)

    def _kubeconfig(self, name: str, spec: Object) -> Path:
        """Write a kubeconfig for the pod's service account."""
        file = self._folder / f"{name}.kubeconfig"
        user = self._elsewhere.user(self._elsewhere.token("kube-system", spec["serviceAccountName"]))
        file.write_text(json.dumps({**user, "current-context": "team"}))
        return file

    def _kubelet(self) -> None:
        """Act as the host's kubelet: run new pods, and remove those that are being deleted."""
        for pod in self._api.list("/api/v1/pods", fieldSelector=f"spec.nodeName={HOST}"):
            metadata = pod["metadata"]
            path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
            with suppress(Refused):
                if metadata.get("deletionTimestamp"):
                    self._api.request("DELETE", path, {"gracePeriodSeconds": 0})
                elif pod["status"]["phase"] == "Pending":
                    kinds = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
                    ready = [{"type": kind, "status": "True"} for kind in kinds]
                    self._api.merge(f"{path}/status", {"status": {"phase": "Running", "conditions": ready}})

    def _end(self, name: str) -> None:
        known = self._running.pop(name, None)
        if known is not None and known.process.poll() is None:
            known.process.kill()
            known.process.wait()


@contextmanager
def standing_in(elsewhere: Elsewhere, folder: Path) -> Iterator[StandIn]:
    """A stand-in for kubelets and controllers, ended at the end."""
    folder.mkdir(parents=True, exist_ok=True)
    made = StandIn(elsewhere, folder)
    try:
        yield made
    finally:
        made.close()


def settled(elsewhere: Elsewhere, wanted: Mapping[str, str], timeout: float = 120) -> tuple[set[str], set[str]]:
    """The objects in excess of a list and those missing from it, once objects that vanish by themselves are gone."""
    give_up = time.monotonic() + timeout
    while True:
        found = elsewhere.objects().items()
        more, less = set(found) - set(wanted.items()), set(wanted.items()) - set(found)
        if not (more or less) or time.monotonic() > give_up:
            return {path for path, _ in more}, {path for path, _ in less}
        time.sleep(0.2)


def _free_port() -> int:
    with ports.Claims() as claims:
        return claims.take()
