"""A large cluster captured, a clone of the capture, and the clone captured again.

The cost of a capture for the source's API server is measured as the CPU seconds of its process during the capture,
less what it uses in the same time without requests (for the node leases), as a share of all of this machine's CPU time
in that period. Go's garbage collector works for seconds at a time and at least every two minutes, so it affects some
captures and not others. Five captures are therefore measured as one, against an equally long time without captures.
"""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks import company, scheduler_reads
from benchmarks.report import Row
from benchmarks.usage import until_at_rest, usage
from kumulus.kube import Client, load_kubeconfig
from kumulus.stackfile.nodes_file import without_nodes, written
from kumulus.toolchain import plugins
from tests.support.project import ROOT, Project
from tests.support.tools import missing

NODES, PODS = 4000, 40_000
_MOST_S, _MOST_MB, _MOST_SHARE = 60.0, 300.0, 0.05
_STANDING_S, _PATIENCE_S, _SETTLED_S = 130.0, 900.0, 60.0
_FILES = ("stack.yaml", "workload.yaml", "left-out.md")
_SHOWN, _TIMES = 5, 5


@dataclass(frozen=True)
class Command:
    """How a `kumulus` command ended."""

    seconds: float
    """From its start to its end."""
    memory: float
    """Peak resident memory, in MB."""
    cpu: float
    """Its own CPU seconds."""
    said: str
    """Its output."""


def size() -> tuple[int, int]:
    """How many nodes and pods; `KUMULUS_BENCH_CAPTURE=100x1000` overrides the full size."""
    chosen = os.environ.get("KUMULUS_BENCH_CAPTURE")
    if not chosen:
        return NODES, PODS
    nodes, _, pods = chosen.partition("x")
    return int(nodes), int(pods)


async def captured() -> list[Row]:
    """Capture, clone, capture again."""
    if missing("kueue"):
        return []
    return await asyncio.to_thread(_measure)


@contextmanager
def source(nodes: int, pods: int) -> Iterator[Project]:
    """A company's cluster of that size as the stack `source`; removed at the end, with everything created from it."""
    folder = Path(tempfile.mkdtemp(prefix="kumulus-bench-"))
    project = Project(folder)
    plugins.install(project.pulumi_home)
    try:
        cluster, named = without_nodes(company.cluster(nodes))
        (project.stacks / "source.nodes.json").write_text(written(named))
        project.write_stack(cluster, "source", nodes="stacks/source.nodes.json")
        _said(f"source up in {project.up(timeout=_PATIENCE_S).seconds:.1f} s")
        began = time.monotonic()
        asyncio.run(company.fill(project.kubeconfig("source"), pods, nodes))
        _said(f"{pods:,} pods in {time.monotonic() - began:.1f} s")
        yield project
    finally:
        project.close()
        shutil.rmtree(folder, ignore_errors=True)


def command(project: Project, *arguments: str) -> Command:
    """Run a `kumulus` command, which has to succeed."""
    began = time.monotonic()
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(
            [sys.executable, ROOT / "kumulus", *arguments],
            cwd=project.directory,
            env={**project.environment, "PWD": str(project.directory)},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        said = out.read().decode()
    if process.returncode:
        raise RuntimeError(f"kumulus {' '.join(arguments)}: {said}")
    # The kernel counts in KiB.
    return Command(time.monotonic() - began, used.ru_maxrss / 1e3 * 1.024, used.ru_utime + used.ru_stime, said)


def _measure() -> list[Row]:
    nodes, pods = size()
    with source(nodes, pods) as project:
        captured, share, cores = _captured(project)
        one = asyncio.run(_digest(project.kubeconfig("source")))
        cloned = command(project, "clone", "one", "-s", "clone")
        _said(cloned.said)
        different = _settled(project, one)
        command(project, "capture", "-s", "clone", "--to", "two", "--rate", "1000")
        files = [name for name in _FILES if not _same(project.directory, name)]
    for line in [*different[:_SHOWN], *(f"{name} is another file" for name in files)]:
        _said(line)
    what = f"A cluster of {nodes:,} nodes and {pods:,} pods, with Kueue's queues,"
    return [
        Row(
            f"{what} captured at the default rate",
            f"within {_MOST_S:.0f} s, {_MOST_MB:.0f} MB, {_MOST_SHARE:.0%} of the CPU for the API server",
            f"{captured.seconds:.1f} s, {captured.memory:.0f} MB; the API server {share:.1%} of the machine's CPU "
            f"({cores:.2f} cores), the command {captured.cpu:.1f} s of CPU",
            captured.seconds <= _MOST_S and captured.memory <= _MOST_MB and share <= _MOST_SHARE,
            {
                "seconds": captured.seconds,
                "memory_mb": captured.memory,
                "share": share,
                "server_cores": cores,
                "cpu_s": captured.cpu,
            },
        ),
        Row(
            f"{what} cloned, and the clone captured",
            "every field that a scheduler reads is equal; the same files, byte for byte",
            f"{len(different):,} of {len(one):,} objects differ; "
            f"{'other files: ' + ', '.join(files) if files else 'the same files'}; the clone took "
            f"{cloned.seconds:.0f} s",
            not different and not files,
            {"different": float(len(different)), "objects": float(len(one)), "clone_s": cloned.seconds},
        ),
    ]


def _settled(project: Project, one: dict[str, object]) -> list[str]:
    """What differs in the clone once its controllers have tainted the unhealthy nodes."""
    ends = time.monotonic() + _SETTLED_S
    while True:
        different = scheduler_reads.differences(one, asyncio.run(_digest(project.kubeconfig("clone"))))
        if not different or time.monotonic() > ends:
            return different
        time.sleep(1)


def _captured(project: Project) -> tuple[Command, float, float]:
    """The slowest capture, the share of the machine's CPU that the API server used for all, and how many cores."""
    directory = str(project.cluster("source"))
    until_at_rest(directory)
    standing = _used(directory)
    time.sleep(_STANDING_S)
    before = _used(directory)
    rest = (before - standing) / _STANDING_S
    done = [command(project, "capture", "-s", "source", "--to", "one") for _ in range(_TIMES)]
    cores = max(0.0, (_used(directory) - before) / sum(each.seconds for each in done) - rest)
    slowest = max(done, key=lambda each: each.seconds)
    _said(f"{slowest.said.strip()}: {done}, at rest {rest:.3f} cores, {cores:.3f} for it")
    return slowest, cores / (psutil.cpu_count() or 1), cores


def _used(directory: str) -> float:
    return usage(directory).cpu["kube-apiserver"]


async def _digest(kubeconfig: Path) -> dict[str, object]:
    async with Client(load_kubeconfig(kubeconfig)) as client:
        return await scheduler_reads.digest(client)


def _same(directory: Path, name: str) -> bool:
    return (directory / "one" / name).read_bytes() == (directory / "two" / name).read_bytes()


def _said(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
