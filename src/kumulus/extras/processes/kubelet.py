"""``python -m kumulus.extras.processes.kubelet``, in a cluster's directory: the kubelet of the node `local`."""

import asyncio
import json
import os
import platform
import shutil
import signal
import ssl
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kumulus.extras.processes.addition import MARK
from kumulus.extras.processes.containers import NODE, Manifest
from kumulus.extras.processes.egress import SOCKET, Egress
from kumulus.extras.processes.running import ProcessPod
from kumulus.kube import ApiError, Client, Unreachable, load_kubeconfig, objects
from kumulus.kube.objects import NODES
from kumulus.kube.watch import Events, News, follow
from kumulus.model.active_faults import WITHOUT_KWOK
from kumulus.model.durations import micro_timestamp, timestamp

SETTINGS = "local/settings.json"
TAINT = "kumulus.io/local"
_PODS = Path("local/pods")
_BEATS_EVERY = 10.0
_ADDRESSES = "10.1."
_PORT = 10250
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


class Kubelet:
    """The pods of the node, and what follows them."""

    def __init__(self, client: Client, programs: dict[str, str]) -> None:
        self._client = client
        self._programs = programs
        self.pods: dict[str, ProcessPod] = {}
        server = urlsplit(client.connection.server)
        self._api = (server.hostname or "127.0.0.1", server.port or 443)
        self._next = 1

    async def follow(self) -> None:
        """Run the node's pods until cancelled."""
        selector = {"fieldSelector": f"spec.nodeName={NODE}"}
        pods: AsyncGenerator[News[dict[str, Any]], None] = follow(self._client, "/api/v1/pods", selector)
        async with aclosing(pods) as news:
            async for each in news:
                for event in each.events if isinstance(each, Events) else ():
                    self._happened(event.key, event.item if event.kind != "DELETED" else None)

    def _happened(self, key: str, pod: Manifest | None) -> None:
        there = self.pods.get(key)
        if there and (pod is None or pod["metadata"]["uid"] != there.pod["metadata"]["uid"]):
            there.end(0, delete=False)
            del self.pods[key]
            there = None
        if pod is None:
            return
        ending = "deletionTimestamp" in pod["metadata"]
        if there is None and (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
            folder = (_PODS / pod["metadata"]["uid"]).absolute()
            there = self.pods[key] = ProcessPod(self._client, pod, folder, self._address(), self._api, self._programs)
        if there and ending:
            there.end(pod["metadata"].get("deletionGracePeriodSeconds") or 0, delete=True)
        elif there:
            there.pod = pod

    def _address(self) -> str:
        taken = {each.address for each in self.pods.values()}
        while True:
            self._next = self._next % 65000 + 1
            address = f"{_ADDRESSES}{self._next >> 8}.{self._next & 255}"
            if address not in taken and self._next & 255:
                return address

    async def close(self) -> None:
        """End every process of every pod; the objects stay, and are run again by the next kubelet."""
        await asyncio.gather(*(each.end(0, delete=False) for each in self.pods.values()))


def node() -> dict[str, Any]:
    """The node as an object. It offers nothing to a scheduler: its pods are put there as they are created."""
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    os_and_arch = {"kubernetes.io/os": "linux", "kubernetes.io/arch": machine}
    labels = {**MARK, WITHOUT_KWOK: "true", "kubernetes.io/hostname": NODE, **os_and_arch}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": NODE, "labels": labels},
        "spec": {"taints": [{"key": TAINT, "effect": "NoSchedule"}]},
    }


def _status() -> dict[str, Any]:
    now = timestamp()
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now}
    return {
        "capacity": {"pods": "110"},
        "allocatable": {"pods": "110"},
        # By this name the API server asks for logs: kumulus.extras.processes.egress.
        "addresses": [{"type": "InternalDNS", "address": NODE}, {"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": _PORT}},
        "conditions": [ready],
    }


async def _beating(client: Client) -> None:
    """Keep the node there and Ready."""
    while True:
        try:
            await _beat(client)
            await asyncio.sleep(_BEATS_EVERY)
        except (ApiError, Unreachable):
            await asyncio.sleep(1.0)


async def _beat(client: Client) -> None:
    # First the lease: KWOK leaves a node alone, with its pods, whose lease somebody else holds.
    renewed = micro_timestamp()
    spec = {"holderIdentity": NODE, "leaseDurationSeconds": 40, "renewTime": renewed}
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": NODE}, "spec": spec}
    await objects.create_or_merge(client, _LEASES, lease)
    if await objects.find(client, f"{NODES}/{NODE}") is None:
        await client.create(NODES, node())
    await client.merge_patch(f"{NODES}/{NODE}/status", {"status": _status()})


async def _serve(programs: dict[str, str], kubeconfig: Path, certificate: ssl.SSLContext) -> int:
    ended = asyncio.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(each, ended.set)
    async with Client(load_kubeconfig(kubeconfig)) as client:
        kubelet = Kubelet(client, programs)
        server = await asyncio.start_unix_server(Egress(client, kubelet.pods, certificate).answer, SOCKET)
        tasks = [asyncio.create_task(each) for each in (kubelet.follow(), _beating(client), ended.wait())]
        async with server:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        await kubelet.close()
        for task in done:
            # What ended it, if it was not a signal.
            task.result()
    return 0


def main(directory: Path) -> int:
    """Run the node's pods until a signal ends the process; returns an exit code."""
    os.umask(0o077)
    shutil.rmtree(_PODS, ignore_errors=True)
    Path(SOCKET).unlink(missing_ok=True)
    certificate = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.load_cert_chain(directory / "pki" / "admin.crt", directory / "pki" / "admin.key")
    programs = json.loads(Path(SETTINGS).read_text())["programs"]
    return asyncio.run(_serve(programs, directory / "kubeconfig.yaml", certificate))


if __name__ == "__main__":
    sys.exit(main(Path.cwd()))
