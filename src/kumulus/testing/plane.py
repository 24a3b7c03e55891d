"""A control plane with nodes, in a temporary folder of its own: started, filled and removed by the core's own parts."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from kumulus.host import processes
from kumulus.kube import ApiError, Client, Unreachable
from kumulus.kwok import usage
from kumulus.kwok.lifecycle_stages import stage_objects
from kumulus.kwok.stages import API_VERSION
from kumulus.model.identity import Owner, drawn
from kumulus.model.pools import Pool
from kumulus.model.slices import RESOURCE_API, device_class_expression, device_class_spec
from kumulus.nodes.errors import ProviderError
from kumulus.nodes.faults import operations
from kumulus.nodes.faults.new_pods import wait_until_managed
from kumulus.nodes.faults.records import Record
from kumulus.nodes.faults.stages import reread
from kumulus.nodes.pools import record
from kumulus.nodes.pools.converge import converge
from kumulus.nodes.pools.observe import observe
from kumulus.nodes.pools.result import explain
from kumulus.nodes.reporter import Reporter
from kumulus.runtimes.base import Observed, RecordedControlPlane, WantedControlPlane
from kumulus.runtimes.kwok.layout import Layout
from kumulus.runtimes.kwok.priority import CpuYield
from kumulus.runtimes.kwok.runtime import KwokRuntime
from kumulus.runtimes.kwok.storage import Storages
from kumulus.runtimes.place import owner as owner_of
from kumulus.stackfile.fault_targets import ResolvedFault
from kumulus.stackfile.kwok_options import local_options
from kumulus.stackfile.load import LoadedCluster
from kumulus.stackfile.resource_slices import device_classes, extended_names
from kumulus.testing import control_plane, guard, launching
from kumulus.testing.errors import ClusterError
from kumulus.testing.loop import in_daemon_thread
from kumulus.testing.manifests import apply
from kumulus.testing.wanted import tools
from kumulus.toolchain import supply
from kumulus.toolchain.errors import ToolchainError

# gRPC's handlers of a fork write into the output of programs that a test starts, or end them.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

PREFIX = "kumulus-test-"
"""How the temporary folder of a cluster begins."""
# With fewer nodes, the work is done before the controllers could be made to yield.
_MANY = 100
CLUSTERS, EXPERIMENTS, NAMESPACES = "clusters", "experiments", "namespaces"
"""The folders in it: the control plane's, experiments' results, and kubeconfigs that name a namespace."""


class PlaneReporter(Reporter):
    """Passes progress on to a function that takes lines."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say

    def status(self, message: str, *, last: bool = False) -> None:
        """See :meth:`Reporter.status`."""
        if last:
            self._say(message)

    def info(self, message: str) -> None:
        """See :meth:`Reporter.info`."""
        self._say(message)

    def warn(self, message: str) -> None:
        """See :meth:`Reporter.warn`."""
        self._say(message)


@dataclass
class Plane:
    """A control plane that is up."""

    folder: Path
    """The temporary folder, in which is all that the cluster keeps."""
    loaded: LoadedCluster
    """What was asked for."""
    observed: Observed
    """The control plane."""
    client: Client
    """Of its API server, for the event loop that started it."""
    owner: Owner
    """What its nodes, records and faults are marked with."""
    pools: dict[str, Pool]
    """As they are wanted now, by name."""
    report: Reporter
    """Takes lines of progress."""
    storages: Storages = field(default_factory=Storages)
    """Its etcd, to which many nodes are written."""
    cpu: CpuYield = field(default_factory=CpuYield)
    """Has its controllers yield meanwhile."""
    kept: bool = False
    """Whether it is left standing when it is stopped."""

    @property
    def layout(self) -> Layout:
        """Its files."""
        return Layout(Path(self.observed.directory))

    async def converge(self, pool: Pool) -> None:
        """Make a pool's nodes as they are wanted."""
        client, stop = self.client, asyncio.Event()
        wanted = await record.write(client, pool, self.owner)
        seen = await observe(client, wanted, before=self.pools.get(pool.name, pool).replicas)
        kubeconfig = self.observed.kubeconfig
        storage_of = partial(self.storages.of, kubeconfig, client)
        many = len(seen.missing) + len(seen.extra) >= _MANY
        with self.cpu.yielding(kubeconfig) if many else nullcontext():
            result = await converge(client, wanted, seen, stop, self.report, storage_of)
        if not result.complete:
            raise ClusterError(f"pool {pool.name}: {result.describe()}: {'; '.join(result.problems)}")
        if unmanaged := await wait_until_managed(client, [*map(pool.node_name, seen.missing)], stop):
            raise ClusterError(f"pool {pool.name}: {unmanaged}")
        self.pools[pool.name] = pool

    async def begin(self, fault: ResolvedFault, *, declared: bool = False) -> Record:
        """Begin a fault; returns it as it is on record."""
        wanted = Record(
            name=fault.name,
            kind=fault.kind,
            nodes=fault.nodes,
            node=fault.node,
            pods=fault.pods,
            offers=fault.offers,
            declared=declared,
            owner=self.owner,
        )
        began, applied = await operations.begin(self.client, wanted)
        if left := applied.left():
            raise ClusterError(f"the fault {fault.name}: {left}")
        return began

    async def stop(self) -> None:
        """Remove the cluster with everything of it, unless it is to be left standing."""
        await self.client.close()
        if not self.kept:
            await asyncio.to_thread(remove, self.folder)


async def start(loaded: LoadedCluster, ends_with: int | None, report: Reporter) -> Plane:
    """Start a control plane, and its nodes, and wait until they take pods.

    Args:
        ends_with: the process that it ends with; None for none.
    """
    await in_daemon_thread(partial(provide, loaded))
    folder = await asyncio.to_thread(lambda: Path(tempfile.mkdtemp(prefix=PREFIX)).resolve())
    try:
        if ends_with is not None:
            guard.begin(folder, ends_with)
        return await _start(folder, loaded, report)
    except BaseException as error:
        await asyncio.to_thread(remove, folder)
        if isinstance(error, ProviderError | guard.NotGuarded):
            # A stack's clusters are below KUMULUS_HOME, which the error names; this one is in a temporary folder.
            raise ClusterError(str(error).replace("KUMULUS_HOME", "TMPDIR")) from None
        if isinstance(error, ApiError | Unreachable | operations.FaultRefused):
            raise ClusterError(f"the cluster does not come up: {explain(error)}") from None
        raise


def provide(loaded: LoadedCluster) -> None:
    """Get the programs that a cluster needs, if they are missing."""
    try:
        supply.provide(tools(loaded), loaded.spec.kubernetesVersion)
    except ToolchainError as error:
        raise ClusterError(str(error)) from None


def remove(folder: Path) -> None:
    """End every process of a cluster, and remove its folder; also when its start or its removal was cut off."""
    guard.dismiss(folder)
    # A command that was cut off leaves its lock next to the cluster.
    for directory in filter(Path.is_dir, (folder / CLUSTERS).glob("*")):
        layout = Layout(directory)
        wanted = RecordedControlPlane(
            layout.name, layout.note().get("owner", ""), str(directory), str(layout.kubeconfig), ""
        )
        launching.end([pid for pids in processes.running(directory).values() for pid in pids])
        # What was just being started when kwokctl was ended is found by its name only a moment later.
        while True:
            asyncio.run(KwokRuntime().delete(wanted, PlaneReporter(lambda line: None)))
            if not processes.running(directory):
                break
    for name in (CLUSTERS, EXPERIMENTS, NAMESPACES):
        shutil.rmtree(folder / name, ignore_errors=True)
    with suppress(OSError):
        folder.rmdir()


async def _start(folder: Path, loaded: LoadedCluster, report: Reporter) -> Plane:
    runtime, identity = KwokRuntime(), drawn()
    nodes = sum(pool.replicas for pool in loaded.pools)
    wanted = WantedControlPlane(
        name=loaded.cluster_name,
        owner=owner_of(loaded.cluster_name, "urn:kumulus:testing", os.getcwd(), identity),
        home=str(folder),
        kubernetes_version=loaded.spec.kubernetesVersion or runtime.default_version(),
        options=_options(loaded),
        nodes=nodes,
    )
    async with control_plane.started(wanted, report) as (observed, client):
        owner = Owner(identity, loaded.cluster_name)
        plane = Plane(folder, loaded, observed, client, owner, {}, report)
        pools = [replace(pool, labels={**pool.labels, **owner.labels}) for pool in loaded.pools]
        await asyncio.gather(*map(plane.converge, pools))
        await _apply_declared(plane)
    return plane


def _options(loaded: LoadedCluster) -> dict[str, Any]:
    """The runtime's options: those of the spec, and what its other sections require."""
    asked = loaded.spec.runtime_options(Path.cwd())
    return {"etcdFsync": False, **asked, **local_options(loaded), "stageObjects": True}


async def _apply_declared(plane: Plane) -> None:
    """Put into effect what the spec declares besides nodes: lifecycles, usage, device classes and faults."""
    spec = plane.loaded.spec
    lifecycles = [each.lifecycle() for each in spec.podLifecycles]
    objects = [
        {"apiVersion": API_VERSION, "kind": "Stage", "metadata": each.metadata, "spec": dict(each.spec)}
        for each in stage_objects(lifecycles, events=spec.kwok.events == "kubelet")
    ]
    if spec.podUsage:
        used = usage.resource_usage([each.usage() for each in spec.podUsage])
        metadata = {"name": usage.NAME}
        objects.append({"apiVersion": API_VERSION, "kind": "ClusterResourceUsage", "metadata": metadata, "spec": used})
    sections = [group.resourceSlices for group in spec.nodeGroups]
    extended = extended_names(sections)
    for name, driver in device_classes(sections).items():
        selected = device_class_spec(device_class_expression(driver, name), extended.get(name, ""))
        objects.append(
            {"apiVersion": RESOURCE_API, "kind": "DeviceClass", "metadata": {"name": name}, "spec": selected}
        )
    await apply(plane.client, objects, "default")
    if any(each["kind"] == "Stage" for each in objects):
        await reread(plane.client)
    for fault in plane.loaded.faults:
        await plane.begin(fault, declared=True)
