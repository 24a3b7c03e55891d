"""The limit: a compiled load generator that posts the same bodies to a fresh control plane."""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path

from benchmarks.control_plane import ControlPlane, pools
from kumulus.nodes.pools.single import MEDIA_TYPE, Bodies
from kumulus.toolchain import golang

_SOURCE = Path(__file__).parent / "loadgen"


async def build(folder: Path) -> Path:
    """Build the load generator; returns its path."""
    binary = folder / "loadgen"
    go, note = golang.on_path("1.26")
    if go is None:
        raise RuntimeError(f"the load generator needs Go 1.26 on PATH ({note})")
    process = await asyncio.create_subprocess_exec(str(go), "build", "-o", str(binary), ".", cwd=_SOURCE)
    if await process.wait():
        raise RuntimeError("the load generator cannot be built; go's own message stands above")
    return binary


async def post(plane: ControlPlane, binary: Path, nodes: int, connections: int) -> float:
    """Post this many nodes; returns the rate in nodes a second.

    Args:
        plane: a control plane without nodes.
        binary: the load generator.
        nodes: how many.
        connections: how many requests at once.
    """
    with tempfile.NamedTemporaryFile() as file:
        for pool in pools(nodes):
            encode = Bodies(pool)
            for ordinal in range(pool.replicas):
                body = encode.of(ordinal)
                file.write(len(body).to_bytes(4, "big") + body)
        file.flush()
        process = await asyncio.create_subprocess_exec(
            str(binary),
            *("-server", plane.observed.server, "-ca", str(plane.pki / "ca.crt")),
            *("-cert", str(plane.pki / "admin.crt"), "-key", str(plane.pki / "admin.key")),
            *("-bodies", file.name, "-media-type", MEDIA_TYPE, "-connections", str(connections)),
            stdout=asyncio.subprocess.PIPE,
        )
        out, _ = await process.communicate()
    result = json.loads(out)
    if result["failed"]:
        raise RuntimeError(f"{result['failed']} of {result['requests']} posts failed")
    return float(result["rate"])
