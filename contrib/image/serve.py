"""What the container runs: a cluster, its API on port 6443 of every address, its kubeconfig in /kumulus/kubeconfig.

    NODES        how many nodes: 30, or by machine h100=100 l4=20; 3 if neither it nor STACK is set
    STACK        a stack file, mounted into the container
    KUBERNETES   a version, such as 1.36.4
    SERVER       the address in the kubeconfig, https://localhost:6443 if not set

With the argument `healthy`, it says by its exit code whether the API server answers.
"""

import asyncio
import base64
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import yaml

KUBECONFIG = Path("/kumulus/kubeconfig")
PORT = 6443
INTERRUPTED = 130
TOP = Path(__file__).resolve().parents[2]


def main(arguments: list[str]) -> int:
    """Serve until the container is stopped, or the cluster ends."""
    if arguments == ["healthy"]:
        return asyncio.run(_healthy())
    KUBECONFIG.unlink(missing_ok=True)
    command = [str(TOP / "kumulus"), "cluster", "up", "--json", *_wanted()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as cluster:
        # The cluster ends in order, and what runs here after it.
        signal.signal(signal.SIGTERM, lambda *_: cluster.terminate())
        assert cluster.stdout is not None
        if not (line := cluster.stdout.readline()):
            return _ended(cluster)
        found = json.loads(line)
        to = f"TCP:{urlsplit(found['server']).netloc}"
        with subprocess.Popen(["socat", f"TCP-LISTEN:{PORT},fork,reuseaddr", to]) as forward:
            fresh = KUBECONFIG.with_suffix(".new")
            fresh.write_text(_kubeconfig(Path(found["kubeconfig"])))
            fresh.rename(KUBECONFIG)
            print(f"{found['nodes']:,} nodes, Kubernetes {found['kubernetesVersion']}: {KUBECONFIG}", flush=True)
            code = _ended(cluster)
            forward.terminate()
        return code


def _ended(cluster: subprocess.Popen[str]) -> int:
    code = cluster.wait()
    # Whoever stops the container has not met an error.
    return 0 if code == INTERRUPTED else code


def _wanted() -> Iterator[str]:
    if os.environ.get("STACK"):
        yield os.environ["STACK"]
    for each in os.environ.get("NODES", "").split():
        yield from ("--nodes", each)
    if os.environ.get("KUBERNETES"):
        yield from ("--kubernetes", os.environ["KUBERNETES"])


def _kubeconfig(of: Path) -> str:
    """The cluster's kubeconfig for programs outside: with the certificates themselves, and another address."""
    document = yaml.safe_load(of.read_text())
    for part in (document["clusters"][0]["cluster"], document["users"][0]["user"]):
        for key in [key for key in part if key.startswith(("certificate-", "client-")) and not key.endswith("-data")]:
            part[f"{key}-data"] = base64.b64encode(Path(part.pop(key)).read_bytes()).decode()
    cluster = document["clusters"][0]["cluster"]
    # The certificate is for localhost, whatever the address from outside.
    cluster |= {"server": os.environ.get("SERVER") or f"https://localhost:{PORT}", "tls-server-name": "localhost"}
    return json.dumps(document, indent=2)


async def _healthy() -> int:
    from kumulus.kube import ApiError, Client, KubeconfigError, Unreachable, load_kubeconfig

    try:
        here = replace(load_kubeconfig(KUBECONFIG), server=f"https://127.0.0.1:{PORT}")
        async with Client(here, patience=0) as client:
            await client.get("/readyz")
    except (ApiError, KubeconfigError, OSError, Unreachable) as error:
        print(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
