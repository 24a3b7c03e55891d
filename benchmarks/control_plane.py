"""A fresh control plane for each measurement, so that no measurement is affected by the one before."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kumulus import toolchain
from kumulus.host import processes
from kumulus.kube import Client, load_kubeconfig
from kumulus.model.pools import CLUSTER_LABEL, GROUP_LABEL, POOL_LABEL, ZONE_LABEL, Pool, Taint
from kumulus.nodes.errors import ProviderError
from kumulus.runtimes.base import Observed, RecordedControlPlane, WantedControlPlane
from kumulus.runtimes.kwok import kwokctl
from kumulus.runtimes.kwok.layout import Layout
from kumulus.runtimes.kwok.runtime import KwokRuntime
from tests.support.said import Said

# Controllers continue to fill their caches for a while after the control plane answers.
_SETTLING_S = 4.0
_SCALING_S = 600.0
CAPACITY = {"cpu": "96", "memory": "1360Gi", "ephemeral-storage": "3Ti", "pods": "110", "nvidia.com/gpu": "8"}


@dataclass(frozen=True)
class ControlPlane:
    """A running control plane and how to reach it."""

    observed: Observed
    client: Client

    @property
    def pki(self) -> Path:
        return Path(self.observed.directory) / "pki"


@asynccontextmanager
async def control_plane(
    name: str = "bench", options: dict[str, Any] | None = None, nodes: int | None = None
) -> AsyncIterator[ControlPlane]:
    """Start a control plane of the kwok runtime; it is always removed at the end.

    Args:
        options: as the stack file's ``kwok:`` section.
        nodes: how many it is sized for; None where that is not known.
    """
    home = tempfile.mkdtemp(prefix="kumulus-bench-")
    runtime = KwokRuntime()
    wanted = WantedControlPlane(name, "benchmarks", home, runtime.default_version(), dict(options or {}), nodes)
    try:
        observed = await runtime.create(wanted, Said(), asyncio.Event())
        try:
            async with Client(load_kubeconfig(observed.kubeconfig)) as client:
                await asyncio.sleep(_SETTLING_S)
                yield ControlPlane(observed, client)
        finally:
            await runtime.delete(RecordedControlPlane.of(wanted, observed), Said())
    finally:
        shutil.rmtree(home, ignore_errors=True)


@asynccontextmanager
async def stock_control_plane(name: str = "stock", settling: float = _SETTLING_S) -> AsyncIterator[ControlPlane]:
    """Start a control plane with kwokctl's own defaults, from the same binaries, with QPS limits off.

    Args:
        settling: seconds that its controllers have before it counts as started.
    """
    home = Path(tempfile.mkdtemp(prefix="kumulus-bench-"))
    layout = Layout.of(str(home), name)
    layout.home.mkdir(exist_ok=True)
    binaries = {
        "--etcd-binary": "etcd",
        "--kube-apiserver-binary": "kube-apiserver",
        "--kube-controller-manager-binary": "kube-controller-manager",
        "--kube-scheduler-binary": "kube-scheduler",
        "--kwok-controller-binary": "kwok",
    }
    settings = ["--runtime", "binary", "--disable-qps-limits", "--wait", "90s", "--kubeconfig", ""]
    found = [text for flag, tool in binaries.items() for text in (flag, str(toolchain.find(tool)))]
    try:
        await kwokctl.run(layout, "create", "cluster", *settings, *found)
        observed = Observed("", str(layout.kubeconfig), "", str(layout.directory), {})
        async with Client(load_kubeconfig(layout.kubeconfig)) as client:
            await asyncio.sleep(settling)
            yield ControlPlane(observed, client)
    finally:
        with suppress(ProviderError):
            await kwokctl.run(layout, "delete", "cluster")
        processes.end([pid for pids in processes.running(layout.directory).values() for pid in pids])
        shutil.rmtree(home, ignore_errors=True)


async def scale(plane: ControlPlane, *what: str, replicas: int) -> None:
    """Run ``kwokctl scale``, which ends when the objects are created.

    Args:
        what: the resource, and what else the command takes.

    Raises:
        ProviderError: it failed, or took more than ten minutes.
    """
    layout = Layout(Path(plane.observed.directory))
    await kwokctl.run(layout, "scale", *what, "--replicas", str(replicas), timeout=_SCALING_S)


def pools(nodes: int, cluster: str = "bench", count: int = 9) -> list[Pool]:
    """Spread nodes over pools as gcp-large has them: three groups in three zones."""
    made = []
    for index in range(count):
        group, zone = f"group{index // 3}", f"use{index % 3 + 1}"
        name = f"{group}-{zone}"
        labels = {
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/role": "agent",
            "type": "kwok",
            "node.kubernetes.io/instance-type": group,
            ZONE_LABEL: zone,
            CLUSTER_LABEL: cluster,
            GROUP_LABEL: group,
            POOL_LABEL: name,
            "datastrophic.io/gpu-type": "nvidia-a100-80gb",
        }
        replicas = nodes // count + (1 if index < nodes % count else 0)
        taint = Taint("kwok.x-k8s.io/node", "fake", "NoSchedule")
        made.append(Pool(name, group, zone, "", replicas, labels, {}, (taint,), CAPACITY, CAPACITY))
    return made
