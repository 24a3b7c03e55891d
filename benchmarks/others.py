"""Other ways to create nodes, for comparison: ``kubectl create``, sequential requests, one Pulumi resource per node."""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from benchmarks.control_plane import ControlPlane, control_plane, pools
from benchmarks.creation import FLEET
from benchmarks.fleet import until_ready
from benchmarks.report import Row
from kumulus import toolchain
from kumulus.nodes.pools.single import Bodies
from tests.support.project import Project

_KEMU_RATE = 5.0
_KEMU_BURST = 10
_KEMU_SAMPLE = 100
_SINGLE = (250, 500)


async def kubectl_create() -> list[Row]:
    """2,550 nodes by ``kubectl create -f`` of one file."""
    async with control_plane() as plane:
        with tempfile.NamedTemporaryFile("wb", suffix=".json") as file:
            items = list(_manifests(FLEET))
            file.write(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}).encode())
            file.flush()
            started = time.monotonic()
            process = await asyncio.create_subprocess_exec(
                str(toolchain.find("kubectl")),
                *("--kubeconfig", plane.observed.kubeconfig, "create", "-f", file.name),
                stdout=asyncio.subprocess.DEVNULL,
            )
            if await process.wait():
                raise RuntimeError("kubectl create failed")
            await until_ready(plane.client, FLEET)
            seconds = time.monotonic() - started
    return [Row("2,550 nodes by `kubectl create -f`", "", f"{seconds:.1f} s", None, {"kubectl_s": seconds})]


async def kemu() -> list[Row]:
    """KEMU's way: one request after the other at client-go's default of 5 a second after a burst of 10."""
    async with control_plane() as plane:
        started = time.monotonic()
        for index, node in enumerate(_manifests(_KEMU_SAMPLE)):
            due = started + max(0, index - _KEMU_BURST) / _KEMU_RATE
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            await plane.client.create("/api/v1/nodes", node)
        seconds = time.monotonic() - started
    whole = seconds + (FLEET - _KEMU_SAMPLE) / _KEMU_RATE
    return [
        Row(
            "2,550 nodes KEMU's way (one by one, 5 requests a second)",
            "",
            f"{whole:.0f} s, extrapolated from {seconds:.1f} s for {_KEMU_SAMPLE}",
            None,
            {"kemu_sample_s": seconds, "kemu_s": whole},
        )
    ]


async def one_resource_a_node() -> list[Row]:
    """One pulumi-kubernetes ``Node`` for each node: 250, then 250 more."""
    async with control_plane() as plane:
        return await asyncio.to_thread(_single_resources, plane)


def _single_resources(plane: ControlPlane) -> list[Row]:
    folder = Path(tempfile.mkdtemp(prefix="kumulus-bench-"))
    project = Project(folder / "single", _single_program(folder, plane.observed.kubeconfig))
    rows = []
    try:
        toolchain.install_plugins(project.pulumi_home)
        project.write_config({}, "single")
        for nodes in _SINGLE:
            (project.directory / "nodes.json").write_text(json.dumps(list(_manifests(nodes))))
            seconds = project.up(timeout=900).seconds
            state = project.backend_file().stat().st_size / 1e6
            rows.append(
                Row(
                    f"One pulumi-kubernetes `Node` a node: to {nodes} nodes",
                    "",
                    f"{seconds:.1f} s, state {state:.1f} MB",
                    None,
                    {"single_s": seconds, "state_mb": state},
                )
            )
    finally:
        project.close()
        shutil.rmtree(folder, ignore_errors=True)
    return rows


def _single_program(folder: Path, kubeconfig: str) -> Path:
    """A program that declares each node of ``nodes.json`` as a resource of its own."""
    program = folder / "single-program"
    program.mkdir()
    settings = {
        "name": "single",
        "runtime": {"name": "python", "options": {"toolchain": "pip", "virtualenv": ".venv"}},
        "stackConfigDir": "stacks",
        "plugins": {"providers": []},
    }
    (program / "Pulumi.yaml").write_text(yaml.safe_dump(settings))
    (program / "__main__.py").write_text(
        "import json, pathlib, pulumi, pulumi_kubernetes as k8s\n"
        f"provider = k8s.Provider('emulated', kubeconfig={kubeconfig!r})\n"
        "for node in json.loads(pathlib.Path('nodes.json').read_text()):\n"
        "    options = pulumi.ResourceOptions(provider=provider)\n"
        "    k8s.core.v1.Node(node['metadata']['name'], metadata=node['metadata'], spec=node['spec'], opts=options)\n"
    )
    return program


def _manifests(nodes: int) -> Iterator[dict[str, Any]]:
    for pool in pools(nodes):
        bodies = Bodies(pool)
        for ordinal in range(pool.replicas):
            yield bodies.manifest(ordinal)
