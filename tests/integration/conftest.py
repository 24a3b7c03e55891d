"""One real control plane for all tests of this folder, and pools on it, driven as by the plugin's adapter."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kumulus import toolchain
from kumulus.kube import Client, load_kubeconfig, namespaces
from kumulus.model.pools import POOL_LABEL
from kumulus.nodes.catalog.faults import fault_kinds
from kumulus.provider.connections import Connections
from kumulus.provider.resources.base import Operation, Properties, ReadResult
from kumulus.provider.resources.fault import FaultResource
from kumulus.provider.resources.node_pool import NodePool
from kumulus.runtimes.base import Observed, RecordedControlPlane, WantedControlPlane
from kumulus.runtimes.kwok.priority import CpuYield
from kumulus.runtimes.kwok.runtime import KwokRuntime
from kumulus.runtimes.kwok.storage import Storages
from tests.support import processes, versions
from tests.support.api import Api, Object, Refused
from tests.support.project import ROOT
from tests.support.said import Said

if TYPE_CHECKING:
    from playwright.sync_api import Browser

KUMULUS = [sys.executable, str(ROOT / "kumulus")]
NODES = "/api/v1/nodes"
PODS = "/api/v1/namespaces/default/pods"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
TOOLS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok", "kwokctl")
KWOK_TAINT = {"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}


@dataclass
class Plane:
    """The control plane under test."""

    runtime: KwokRuntime
    wanted: WantedControlPlane
    observed: Observed
    api: Api

    @property
    def directory(self) -> Path:
        return Path(self.observed.directory)

    @property
    def identity(self) -> str:
        return self.observed.identity

    @property
    def place(self) -> Properties:
        """What resources are told of their cluster."""
        return {"kubeconfig": self.observed.kubeconfig, "clusterIdentity": self.identity, "clusterName": "test"}

    @property
    def environment(self) -> dict[str, str]:
        """Variables of commands for which this control plane is the stack of its name."""
        return {**os.environ, "KUMULUS_HOME": self.wanted.home}

    def kumulus(self, *words: str, **more: Any) -> subprocess.CompletedProcess[str]:
        """Run a command of ours."""
        options: dict[str, Any] = {"env": self.environment, "cwd": ROOT, "stdin": subprocess.DEVNULL, **more}
        return subprocess.run([*KUMULUS, *words], capture_output=True, text=True, check=False, **options)

    async def read(self) -> Observed | None:
        return await self.runtime.read(RecordedControlPlane.of(self.wanted, self.observed), Said())

    async def repair(self) -> Observed:
        return await self.runtime.repair(self.wanted, self.identity, Said())

    def processes(self) -> dict[str, list[int]]:
        """Pids by component, as the process table has them."""
        found = processes.components(Path(self.wanted.home))
        return {
            name.rpartition("/")[2]: pids for name, pids in found.items() if name.startswith(f"{self.wanted.name}/")
        }


def wanted(
    home: Path, name: str = "test", owner: str = "the tests", version: str = "", **options: Any
) -> WantedControlPlane:
    """The specification of a control plane, of the default Kubernetes version unless another is named."""
    return WantedControlPlane(name, owner, str(home), version or KwokRuntime().default_version(), options)


@contextmanager
def plane_at(home: Path, version: str = "", **options: Any) -> Iterator[Plane]:
    """A control plane below a directory, ready for pods; it is removed completely at the end.

    Args:
        version: of Kubernetes, such as ``v1.35.4``; the default one if empty.
    """
    runtime, asked = KwokRuntime(), wanted(home, version=version, **options)
    try:
        observed = asyncio.run(runtime.create(asked, Said(), asyncio.Event()))
        api = Api(Path(observed.kubeconfig))
        # Pods are rejected until the controller manager has created it.
        api.until("/api/v1/namespaces/default/serviceaccounts", lambda found: "default" in found)
        yield Plane(runtime, asked, observed, api)
        api.close()
        asyncio.run(runtime.delete(RecordedControlPlane.of(asked, observed), Said()))
    finally:
        processes.kill(pid for pids in processes.components(home).values() for pid in pids)


def remove_namespaces(plane: Plane, *names: str) -> None:
    """Remove namespaces with everything in them, and wait until they are gone."""

    async def remove() -> None:
        async with Client(load_kubeconfig(Path(plane.observed.kubeconfig))) as client:
            await asyncio.gather(*(namespaces.remove(client, f"{namespaces.NAMESPACES}/{name}") for name in names))

    # Where a test's own event loop is running, a second one needs a thread.
    removing = threading.Thread(target=lambda: asyncio.run(remove()))
    removing.start()
    removing.join()
    plane.api.until(namespaces.NAMESPACES, lambda found: not found.keys() & set(names))


@pytest.fixture
async def client(plane: Plane) -> AsyncIterator[Client]:
    async with Client(load_kubeconfig(Path(plane.observed.kubeconfig)), patience=10) as made:
        yield made


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test marked `every_version` runs once on the control plane of each Kubernetes version on offer."""
    if metafunc.definition.get_closest_marker("every_version"):
        # The default one is None, as for all other tests, and the last: these go on with its control plane.
        default, *others = versions.on_offer()
        each = [pytest.param(other, marks=versions.needs(other)) for other in others]
        metafunc.parametrize("plane", [*each, pytest.param(None, id=default)], indirect=True, scope="session")


@pytest.fixture(scope="session")
def default_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    for tool in TOOLS:
        toolchain.find(tool)
    with plane_at(tmp_path_factory.mktemp("home")) as made:
        yield made


@pytest.fixture(scope="session")
def plane(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """That of the default Kubernetes version, which runs on while others come and go."""
    if version := getattr(request, "param", None):
        with plane_at(tmp_path_factory.mktemp("home"), version) as made:
            yield made
    else:
        yield request.getfixturevalue("default_plane")


@dataclass
class Pools:
    """Pools on the control plane, made, read, changed and deleted through the resource ``NodePool``."""

    plane: Plane
    resource: NodePool
    made: dict[str, Properties] = field(default_factory=dict)

    @classmethod
    def on(cls, plane: Plane, connections: Connections) -> Pools:
        return cls(plane, NodePool(connections, CpuYield().yielding, Storages().of))

    def name(self) -> str:
        return f"p{uuid.uuid4().hex[:6]}-z"

    def inputs(self, replicas: int, name: str | None = None, **template: Any) -> Properties:
        """Checked inputs of a pool; its template has a label, an annotation, a taint and GPUs unless set otherwise."""
        name = name or self.name()
        properties = {
            **self.plane.place,
            "name": name,
            "replicas": replicas,
            "annotations": {"example.com/note": "first"},
            "taints": [KWOK_TAINT],
            "capacity": {"cpu": "4", "memory": "16Gi", "pods": "110", "nvidia.com/gpu": "8"},
            **template,
            "labels": {
                "kumulus.io/cluster": "test",
                POOL_LABEL: name,
                "kubernetes.io/os": "linux",
                **template.get("labels", {"team": "search"}),
            },
        }
        checked = self.resource.check({}, properties, "/")
        assert checked.failures == []
        return checked.inputs

    async def create(self, inputs: Properties, said: Said | None = None, **options: Any) -> Properties:
        self.made[str(inputs["name"])] = inputs
        return (await self.resource.create(operation(said, **options), inputs))[1]

    async def update(self, inputs: Properties, old: Properties, said: Said | None = None, **options: Any) -> Properties:
        return await self.resource.update(operation(said, **options), "id", old, inputs)

    async def read(self, inputs: Properties, outputs: Properties | None = None) -> ReadResult | None:
        return await self.resource.read(operation(), "id", outputs or inputs, inputs)

    async def drift(self, inputs: Properties) -> Properties:
        """The drift that a read reports."""
        found = await self.read(inputs)
        assert found is not None
        drift: Properties = found.outputs.get("drift", {})
        return drift

    async def delete(self, inputs: Properties) -> None:
        await self.resource.delete(operation(), "id", inputs)

    def nodes(self, inputs: Properties) -> dict[str, Object]:
        """The nodes that carry the pool's label, by name."""
        found = self.plane.api.list(NODES, labelSelector=f"{POOL_LABEL}={inputs['name']}")
        return {node["metadata"]["name"]: node for node in found}

    def uids(self, inputs: Properties) -> dict[str, str]:
        return {name: node["metadata"]["uid"] for name, node in self.nodes(inputs).items()}


def operation(said: Said | None = None, **options: Any) -> Operation:
    """The context of a call; ``stop``, ``preview`` and ``timeout`` as for :class:`Operation`."""
    urn = "urn:pulumi:test::kumulus::kumulus:index:NodePool::pool"
    return Operation(urn, said or Said(), options.pop("stop", None) or asyncio.Event(), **options)


@pytest.fixture
async def pools(plane: Plane) -> AsyncIterator[Pools]:
    connections = Connections()
    found = Pools.on(plane, connections)
    yield found
    for inputs in found.made.values():
        await found.delete(inputs)
    await connections.close()


@dataclass
class Faults:
    """Faults on the control plane, begun, changed and ended through the resource ``FaultResource``."""

    plane: Plane
    resource: FaultResource
    made: dict[str, Properties] = field(default_factory=dict)

    def inputs(self, name: str, nodes: dict[str, str], kind: str = "", **node: Any) -> Properties:
        effects = {**(fault_kinds()[kind].node.to_plain() if kind else {}), **node}
        properties = {
            **self.plane.place,
            "name": name,
            "kind": kind,
            "nodes": nodes,
            "node": effects,
        }
        checked = self.resource.check({}, properties, "/")
        assert checked.failures == []
        return checked.inputs

    async def begin(self, inputs: Properties, said: Said | None = None, **options: Any) -> Properties:
        self.made[str(inputs["name"])] = inputs
        return (await self.resource.create(operation(said, **options), inputs))[1]

    async def change(self, old: Properties, inputs: Properties) -> Properties:
        return await self.resource.update(operation(), "id", old, inputs)

    async def end(self, name: str) -> None:
        await self.resource.delete(operation(), "id", self.made.pop(name))


@pytest.fixture
async def faults(plane: Plane) -> AsyncIterator[Faults]:
    connections = Connections()
    found = Faults(plane, FaultResource(connections))
    yield found
    for name in list(found.made):
        await found.end(name)
    await connections.close()


@pytest.fixture
def workloads(plane: Plane) -> Iterator[Callable[[str, Object], Object]]:
    """Create pods and jobs that are removed after the test."""
    made: list[str] = []

    def create(path: str, body: Object) -> Object:
        made.append(f"{path}/{body['metadata']['name']}?propagationPolicy=Background&gracePeriodSeconds=0")
        return plane.api.create(path, body)

    yield create
    for path in made:
        with suppress(Refused):
            plane.api.delete(path)


def pod(name: str, pool: str, cpu: str = "100m") -> Object:
    """A pod for a node of a pool."""
    return {"metadata": {"name": name, "labels": {"test": pool}}, "spec": pod_spec(pool, cpu)}


def pod_spec(pool: str, cpu: str = "100m") -> Object:
    return {
        "nodeSelector": {POOL_LABEL: pool},
        "tolerations": [{"key": KWOK_TAINT["key"], "operator": "Exists"}],
        "containers": [{"name": "c", "image": "none", "resources": {"requests": {"cpu": cpu}}}],
    }


def job(name: str, pool: str, delay: str | None, parallelism: int = 1, cpu: str = "100m") -> Object:
    """A Job whose pods complete after a delay, or at once without one."""
    annotations = {"pod-complete.stage.kwok.x-k8s.io/delay": delay} if delay else {}
    template = {
        "metadata": {"labels": {"test": pool, "job": name}, "annotations": annotations},
        "spec": {**pod_spec(pool, cpu), "restartPolicy": "Never"},
    }
    return {
        "metadata": {"name": name},
        "spec": {"parallelism": parallelism, "completions": parallelism, "template": template},
    }


def conditions(node: Object) -> dict[str, str]:
    """A node's conditions: their status by type."""
    return {condition["type"]: condition["status"] for condition in node["status"]["conditions"]}


def ready(node: Object) -> bool:
    return conditions(node).get("Ready") == "True"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium for the tests of a module."""
    from tests.support.browser import chromium

    with chromium() as found:
        yield found
