"""An API server and its etcd alone, with the flags of controller-runtime's envtest: the least that a start can take."""

import asyncio
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from kumulus import toolchain
from kumulus.host import processes
from kumulus.host.ports import Claims
from kumulus.kube import ApiError, Client, Unreachable
from kumulus.runtimes.kwok import access
from kumulus.testing import keys


async def seconds() -> float:
    """Seconds from nothing until the API server is ready, its keys included."""
    folder, began = Path(tempfile.mkdtemp(prefix="kumulus-bench-")), time.monotonic()
    running: list[subprocess.Popen[bytes]] = []
    try:
        pki = folder / "pki"
        keys.make(pki)
        with Claims() as claims:
            etcd, peer, port = (claims.take() for _ in range(3))
            running += [
                _started(folder, command) for command in (_etcd(folder, etcd, peer), _api_server(pki, etcd, port))
            ]
            async with Client(access.connection(pki, f"https://127.0.0.1:{port}")) as client:
                while True:
                    try:
                        await client.get("/readyz", patience=0)
                        return time.monotonic() - began
                    except (ApiError, Unreachable):
                        assert all(each.poll() is None for each in running), f"see {folder}"
                        await asyncio.sleep(0.01)
    finally:
        processes.end([each.pid for each in running])
        for each in running:
            each.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _started(folder: Path, command: list[str]) -> subprocess.Popen[bytes]:
    with (folder / f"{Path(command[0]).name}.log").open("wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=log)


def _etcd(folder: Path, port: int, peer: int) -> list[str]:
    here, peers = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer}"
    flags = {
        "data-dir": str(folder / "etcd"),
        "listen-client-urls": here,
        "advertise-client-urls": here,
        "listen-peer-urls": peers,
        "unsafe-no-fsync": "true",
    }
    return [str(toolchain.find("etcd")), *(f"--{name}={value}" for name, value in flags.items())]


def _api_server(pki: Path, etcd: int, port: int) -> list[str]:
    flags = {
        "etcd-servers": f"http://127.0.0.1:{etcd}",
        "bind-address": "127.0.0.1",
        "secure-port": str(port),
        "cert-dir": str(pki),
        "tls-cert-file": str(pki / "admin.crt"),
        "tls-private-key-file": str(pki / "admin.key"),
        "client-ca-file": str(pki / "ca.crt"),
        "authorization-mode": "RBAC",
        "allow-privileged": "true",
        "disable-admission-plugins": "ServiceAccount",
        "service-cluster-ip-range": "10.0.0.0/24",
        "service-account-issuer": f"https://127.0.0.1:{port}",
        "service-account-key-file": str(pki / "admin.key"),
        "service-account-signing-key-file": str(pki / "admin.key"),
    }
    return [str(toolchain.find("kube-apiserver")), *(f"--{name}={value}" for name, value in flags.items())]
