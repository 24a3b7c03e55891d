"""Where situations are carried out: on kind's kubelets, and on emulated nodes of the same shapes."""

import asyncio
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.fidelity.situations import IMAGE, SHAPE, SITUATION, Object, situations
from kumulus.extras.kind_image import containers, image
from kumulus.extras.schedulers import process
from kumulus.runtimes.base import RecordedControlPlane, WantedControlPlane
from kumulus.runtimes.kind.kind_config import EMPTY
from kumulus.runtimes.kind.runtime import KindRuntime
from kumulus.testing import Cluster
from tests.support import engine
from tests.support.api import Api
from tests.support.docker import docker
from tests.support.pods import TOLERATE_ALL, is_ready
from tests.support.said import Said

_NODES, _PODS = "/api/v1/nodes", "/api/v1/namespaces/kube-system/pods"
_CLASSES, _DEVICES = "/apis/scheduling.k8s.io/v1/priorityclasses", "/apis/resource.k8s.io/v1/deviceclasses"
_GPU = "example.com/gpu"
_SHAPES = {"control-plane": 0, "a": 8, "b": 4, "c": 0}
"""GPUs by the shape of a node."""
_CONFIG = {
    **EMPTY,
    "nodes": [{"role": "worker" if len(shape) == 1 else shape, "labels": {SHAPE: shape}} for shape in _SHAPES],
}
_COMMANDS = ("sh", "sleep", "tail", "head", "test", "touch", "false")
# What the API server or kind writes of a node, and no shape has.
_OWN = ("kubernetes.io/hostname",)


@dataclass
class Place:
    """A cluster."""

    name: str
    """"kind" or "emulated"."""
    kubeconfig: Path
    """Of the cluster."""
    nodes: Mapping[str, str]
    """The names of its nodes by their shapes."""
    about: Object = field(default_factory=dict)
    """What the nodes are like, and what else is on them, so that others can be made like them."""

    @contextmanager
    def scheduler(self, name: str) -> Iterator[None]:
        """Have another scheduler in the cluster, started as experiments start it; none for an empty name."""
        with tempfile.TemporaryDirectory() as folder:
            running = asyncio.run(process.start(name, self.kubeconfig, Path(folder) / name)) if name else None
            try:
                yield
            finally:
                if running is not None:
                    asyncio.run(running.stop())

    def lose(self, node: str) -> None:
        """Silence a node's kubelet; ending it would have the next one forget the GPUs."""
        docker("exec", node, "systemctl", "kill", "--kill-who=main", "--signal=STOP", "kubelet")

    def back(self, node: str) -> None:
        """Let it go on."""
        docker("exec", node, "systemctl", "kill", "--kill-who=main", "--signal=CONT", "kubelet")


@contextmanager
def kind() -> Iterator[Place]:
    """A kind cluster of a control plane and three workers, with a Docker engine of its own where none runs."""
    busybox = shutil.which("busybox")
    if busybox is None:
        raise SystemExit("a shell for the containers is missing; install it: apt install busybox-static")
    runtime = KindRuntime()
    with engine.engine() as host, tempfile.TemporaryDirectory() as home:
        if host:
            os.environ["DOCKER_HOST"] = host
        options = {"nodeImage": image.ensure().name, "kindConfig": _CONFIG}
        wanted = WantedControlPlane("kumulus-fidelity", "benchmarks.fidelity", home, "", options)
        observed = asyncio.run(runtime.create(wanted, Said(), asyncio.Event()))
        try:
            api = Api(Path(observed.kubeconfig))
            ready = api.until(_NODES, lambda found: len(found) == len(_SHAPES) and all(map(is_ready, found.values())))
            nodes = {each["metadata"]["labels"][SHAPE]: name for name, each in ready.items()}
            _load(Path(busybox), Path(home), nodes.values())
            for shape, gpus in _SHAPES.items():
                if gpus:
                    api.merge(f"{_NODES}/{nodes[shape]}/status", {"status": {"capacity": {_GPU: str(gpus)}}})
            api.until(_NODES, lambda found: sum(_GPU in each["status"]["allocatable"] for each in found.values()) == 2)
            api.until(_PODS, lambda found: all(each["status"]["phase"] == "Running" for each in found.values()))
            _prepare(api)
            yield Place("kind", Path(observed.kubeconfig), nodes, _about(api))
        finally:
            asyncio.run(runtime.delete(RecordedControlPlane.of(wanted, observed), Said()))


def _load(busybox: Path, folder: Path, nodes: Any) -> None:
    """Give every node an image with a shell."""
    archive = folder / "image.tar"
    links = {f"usr/bin/{name}": "busybox" for name in _COMMANDS}
    containers.write(archive, [containers.ContainerImage(IMAGE, {"usr/bin/busybox": busybox}, links)], folder)
    for node in nodes:
        command = ["docker", "exec", "--interactive", node, "ctr", "--namespace=k8s.io", "images", "import", "-"]
        with archive.open("rb") as content:
            subprocess.run(command, stdin=content, check=True, stdout=subprocess.DEVNULL)


def _prepare(api: Api) -> None:
    for name, value in {"fidelity-high": 1000, "fidelity-low": -10}.items():
        api.create(_CLASSES, {"metadata": {"name": name}, "value": value})
    api.create(_DEVICES, {"metadata": {"name": "none"}, "spec": {}})


def _about(api: Api) -> Object:
    """The shapes of the nodes, and what the pods of the system request on each."""
    nodes = {each["metadata"]["name"]: each for each in api.list(_NODES)}
    shapes, system = {}, []
    for each in nodes.values():
        labels = each["metadata"]["labels"]
        shapes[labels[SHAPE]] = {
            "labels": {key: value for key, value in labels.items() if key not in _OWN},
            "taints": each["spec"].get("taints", []),
            **{key: each["status"][key] for key in ("capacity", "allocatable")},
        }
    for pod in api.list("/api/v1/pods"):
        requests = [each.get("resources", {}).get("requests", {}) for each in pod["spec"]["containers"]]
        shape = nodes[pod["spec"]["nodeName"]]["metadata"]["labels"][SHAPE]
        system.append({"shape": shape, "requests": requests})
    info = next(iter(nodes.values()))["status"]["nodeInfo"]
    versions = {key: info[key] for key in ("kubeletVersion", "containerRuntimeVersion", "kernelVersion")}
    return {"shapes": shapes, "system": system, "versions": versions}


class Emulated(Place):
    """A cluster of emulated nodes, whose kubelets are silenced by a fault."""

    def __init__(self, cluster: Cluster, nodes: Mapping[str, str], about: Object) -> None:
        super().__init__("emulated", cluster.kubeconfig, nodes, about)
        self._cluster, self._lost = cluster, dict[str, ExitStack]()

    def lose(self, node: str) -> None:
        """See :meth:`Place.lose`."""
        self._lost[node] = ExitStack()
        self._lost[node].enter_context(self._cluster.fault("unreachable", nodes=[node]))

    def back(self, node: str) -> None:
        """See :meth:`Place.back`."""
        if node in self._lost:
            self._lost.pop(node).close()


@contextmanager
def emulated(about: Object, starts: Mapping[str, Any]) -> Iterator[Place]:
    """An emulated cluster.

    Args:
        about: what its nodes are like, as of the other place.
        starts: how long the pods of situations take to start, in the form of a stack file.
    """
    with Cluster(specification(about["shapes"], starts)) as cluster, ExitStack() as faults:
        for each in situations():
            if each.fault:
                selected = {"labels": {SITUATION: each.slug}}
                faults.enter_context(cluster.fault(**{**each.fault, "pods": selected}))
        api = Api(cluster.kubeconfig)
        nodes = {each["metadata"]["labels"][SHAPE]: each["metadata"]["name"] for each in api.list(_NODES)}
        for number, pod in enumerate(about["system"]):
            requested = [
                {"name": f"c{place}", "image": "none", "resources": {"requests": each}}
                for place, each in enumerate(pod["requests"])
            ]
            spec = {"nodeName": nodes[pod["shape"]], "containers": requested, "tolerations": TOLERATE_ALL}
            api.create(_PODS, {"metadata": {"name": f"system-{number}"}, "spec": spec})
        _prepare(api)
        yield Emulated(cluster, nodes, about)


def specification(shapes: Mapping[str, Any], starts: Mapping[str, Any]) -> Object:
    """The stack of nodes of these shapes, with what the situations declare of their pods, and how long they start."""
    groups = []
    for shape, of in shapes.items():
        template = {"metadata": {"labels": of["labels"]}, "taints": of["taints"]}
        template |= {key: of[key] for key in ("capacity", "allocatable")}
        placement = [{"availabilityZone": "z", "replicas": 1}]
        groups.append({"name": shape, "placement": placement, "nodeTemplate": template})
    lives = [
        {"name": each.slug, "selector": {"labels": {SITUATION: each.slug}}, **life}
        for each in situations()
        if (life := {**(each.lifecycle or {}), **({"imagePull": starts[each.name]} if each.name in starts else {})})
    ]
    kwok = {"heartbeatFactor": 1, "events": "kubelet"}
    return {"name": "fidelity", "kwok": kwok, "nodeGroups": groups, "podLifecycles": lives}
