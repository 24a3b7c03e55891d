"""What whole commands cost at 10,000 nodes: previews compared with an empty program's, state, memory, destroy."""

import asyncio
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import yaml

from benchmarks.control_plane import CAPACITY
from benchmarks.report import Row
from benchmarks.usage import until_at_rest
from kumulus.provider.resources.cluster import ClusterResource
from kumulus.provider.resources.registry import resources
from tests.support.processes import repeated
from tests.support.project import Project

_NODES = 10_000
_GROUPS = ("a2", "a3", "b2")
_ZONES = ("use1", "use2", "use3")
_ROUNDS = 7
_LOOK_S = 0.3


async def large_stack() -> list[Row]:
    """Measure a stack of 10,000 nodes in nine pools with the real ``pulumi``."""
    return await asyncio.to_thread(_measure)


def _measure() -> list[Row]:
    folder = Path(tempfile.mkdtemp(prefix="kumulus-bench-"))
    empty, large = Project(folder / "empty", empty_program(folder)), Project(folder / "large")
    try:
        empty.write_config({}, "empty")
        empty.up()
        large.write_stack(cluster(_NODES), "large")
        with _plugin_memory() as memory:
            large.up(timeout=900)
        state = large.backend_file().stat().st_size / 1024
        # Alternately, so that the machine's load is the same for all three, and while the cluster is idle.
        bare, plain, refreshed = [], [], []
        (directory,) = (path for path in (large.home / "clusters").iterdir() if path.is_dir())
        for _ in range(_ROUNDS):
            until_at_rest(str(directory))
            bare.append(empty.preview().seconds)
            plain.append(large.preview("--expect-no-changes").seconds)
            refreshed.append(large.preview("--refresh", "--expect-no-changes").seconds)
        looked = asyncio.run(_looks(large))
        destroyed = large.destroy().seconds
    finally:
        large.close()
        empty.close()
        shutil.rmtree(folder, ignore_errors=True)
    over = statistics.median(b - a for a, b in zip(bare, plain, strict=True))
    refresh = statistics.median(b - a for a, b in zip(plain, refreshed, strict=True))
    figures = {
        "empty_preview_s": statistics.median(bare),
        "preview_s": statistics.median(plain),
        "refresh_preview_s": statistics.median(refreshed),
        "looked_s": looked,
    }
    return [
        Row(
            "`preview` without changes, 10,000 nodes, over an empty program's",
            "0.5 s more",
            f"{over:.2f} s more ({statistics.median(plain):.2f} s)",
            over <= 0.5,
            figures,
        ),
        Row(
            "`preview --refresh`, 10,000 nodes", "4 s more than without", f"{refresh:.1f} s more", refresh <= 4, figures
        ),
        Row(
            "What an `up` without changes takes to look whether its cluster answers, 10,000 nodes",
            "0.3 s",
            f"{looked:.2f} s",
            looked <= _LOOK_S,
            figures,
        ),
        Row("`destroy`, 10,000 nodes", "3 s", f"{destroyed:.1f} s", destroyed <= 3, {"destroy_s": destroyed}),
        Row(
            "The plugin's peak memory at 10,000 nodes",
            "200 MB",
            f"{max(memory):.0f} MB",
            max(memory) <= 200,
            {"plugin_mb": max(memory)},
        ),
        Row("Pulumi state at 10,000 nodes in 9 pools", "64 KB", f"{state:.0f} KB", state <= 64, {"state_kb": state}),
    ]


async def _looks(project: Project) -> float:
    """Median seconds by which the plugin's comparison with the cluster exceeds that with the recorded state."""
    recorded = next(each for each in project.state()["resources"] if each["type"] == ClusterResource.token)
    resource, outputs, inputs = resources()[ClusterResource.token], recorded["outputs"], recorded["inputs"]
    took = []
    for _ in range(_ROUNDS):
        begin = time.monotonic()
        assert await resource.compare(outputs, inputs) == []
        compared = time.monotonic()
        assert resource.diff(outputs, inputs) == []
        took.append(compared - begin - (time.monotonic() - compared))
    return statistics.median(took)


def empty_program(folder: Path) -> Path:
    """A Pulumi program that declares nothing, to measure the fixed cost of each command."""
    program = folder / "empty-program"
    program.mkdir()
    options = {"toolchain": "pip", "virtualenv": ".venv"}
    settings = {
        "name": "empty",
        "runtime": {"name": "python", "options": options},
        "stackConfigDir": "stacks",
        "plugins": {"providers": []},
    }
    (program / "Pulumi.yaml").write_text(yaml.safe_dump(settings))
    (program / "__main__.py").write_text("import pulumi\n")
    return program


def cluster(nodes: int) -> dict[str, Any]:
    """A stack file's cluster of that many nodes, in nine pools."""
    replicas, rest = divmod(nodes, len(_GROUPS) * len(_ZONES))
    groups = [
        {
            "name": group,
            "placement": [{"availabilityZone": zone, "replicas": replicas} for zone in _ZONES],
            "nodeTemplate": {"capacity": dict(CAPACITY)},
        }
        for group in _GROUPS
    ]
    groups[0]["placement"][0]["replicas"] += rest  # type: ignore[index]
    return {"nodeGroups": groups}


@contextmanager
def _plugin_memory() -> Iterator[list[float]]:
    """The plugin's resident memory in MB from time to time while the block runs, as the kernel counts it (VmHWM)."""
    seen = [0.0]

    def sample() -> None:
        for process in psutil.process_iter(["cmdline"]):
            command = process.info["cmdline"] or []
            if command[1:4] == ["-P", "-m", "kumulus.provider.plugin"]:
                seen.append(_high_water_mark(process.pid))

    with repeated(sample, 0.2):
        yield seen


def _high_water_mark(pid: int) -> float:
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    except OSError:
        pass
    return 0.0
