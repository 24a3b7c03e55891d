"""Clusters for tests: starts, resets, leases, memory, and many workers at once; episodes of agents on a pool."""

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import psutil

from benchmarks import bare_api_server
from benchmarks.control_plane import scale, stock_control_plane
from benchmarks.fleet import until_ready
from benchmarks.report import Row
from kumulus import toolchain
from kumulus.extras.kind_image import image
from kumulus.gym import Environment, problems
from kumulus.gym.problem_file import standard_cluster
from kumulus.host import processes
from kumulus.kube import objects
from kumulus.runtimes.kind import commands
from kumulus.testing import AsyncCluster, Cluster, Pool
from kumulus.testing.reset import Reset
from tests.support.docker import trouble
from tests.support.kinds import crd

_NODES, _MORE, _PODS, _KINDS = 30, 130, 200, 3
_RUNS, _LEASES = 5, 10
_SETTLING_S = 5.0
# Without it, the API server refuses pods.
_ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/default"
_MOST_START_S, _MOST_RESET_S, _MOST_LEASE_S, _MOST_MB = 3.0, 1.0, 0.3, 200.0
_WORKERS, _TESTS, _MOST_GB, _MOST_PART = 8, 40, 8.0, 0.25
_ENVIRONMENTS, _SEED, _STEPS, _LEAST_EPISODES = 4, 1, 10, 1000
_LOOKS = ("kubectl get nodes", "kubectl get pods -A -o wide", "kubectl get events -A", "kubectl describe pods -A")
_ROOT = Path(__file__).resolve().parents[1]
_SMALL_TESTS = f"""
import pytest

POD = {{"apiVersion": "v1", "kind": "Pod", "metadata": {{"name": "one"}},
       "spec": {{"containers": [{{"name": "c", "image": "none"}}]}}}}

@pytest.mark.parametrize("number", range({_TESTS}))
def test_a_pod_runs(kumulus, number):
    kumulus.apply(POD)
    kumulus.wait(lambda: [pod.phase for pod in kumulus.pods()] == ["Running"])
"""


async def clusters() -> list[Row]:
    """Starts, resets and the memory of a cluster of 30 nodes; then leases from a pool, and many workers."""
    async with AsyncCluster(nodes=_NODES):
        # What is made once on a machine is there now; and programs' code is shared, as by all clusters but the first.
        starts, theirs, bare, cpu, memory = (list[float]() for _ in range(5))
        resets = list[Reset]()
        for _ in range(_RUNS):
            began = time.monotonic()
            async with AsyncCluster(nodes=_NODES) as cluster:
                starts.append(time.monotonic() - began)
                assert all(node.ready for node in await cluster.nodes())
                cpu.append(sum(sum(each.cpu_times()[:2]) for each in _processes(cluster)))
                # The controller manager is still at its start.
                await asyncio.sleep(_SETTLING_S)
                # What would be free again without them.
                memory.append(sum(each.memory_full_info().uss for each in _processes(cluster)) / 1e6)
                await _used(cluster)
                resets.append(await cluster.reset())
            # In turn, as other work on the machine comes and goes.
            theirs.append(await _of_kwokctl())
            bare.append(await bare_api_server.seconds())
        kind = await asyncio.to_thread(_of_kind)
    start, kwokctl, least, spent, own = (statistics.median(each) for each in (starts, theirs, bare, cpu, memory))
    beside_kind = f"`kind create cluster`, once: {kind:.0f} s" if kind else "no Docker here for kind"
    reset = statistics.median(each.seconds for each in resets)
    return [
        Row(
            f"`Cluster(nodes={_NODES})` until all are Ready and take pods",
            f"{_MOST_START_S:.0f} s",
            f"{start:.1f} s ({spent:.1f} s of CPU), median of {_RUNS}: {start / kwokctl:.2f} times `kwokctl create "
            f"cluster` and `scale` ({kwokctl:.1f} s), {start / least:.2f} times an API server and etcd alone "
            f"({least:.1f} s); {beside_kind}",
            start <= _MOST_START_S,
            {"start_s": start, "start_cpu_s": spent, "kwokctl_s": kwokctl, "bare_s": least, "kind_s": kind},
        ),
        Row(
            f"`reset()` after a test that made {_MORE - _NODES} nodes, {_PODS} pods and {_KINDS} CRDs",
            f"{_MOST_RESET_S:.0f} s",
            f"{reset:.2f} s, median of {_RUNS}; {resets[0].removed:,} objects removed",
            reset <= _MOST_RESET_S,
            {"reset_s": reset, "removed": float(resets[0].removed)},
        ),
        Row(
            f"A cluster of {_NODES} nodes next to another: its own memory, not shared with others",
            f"{_MOST_MB:.0f} MB",
            f"{own:.0f} MB, median of {_RUNS}",
            own <= _MOST_MB,
            {"own_mb": own},
        ),
        await asyncio.to_thread(_leased),
        await asyncio.to_thread(_side_by_side),
    ]


async def episodes() -> list[Row]:
    """Episodes of agents that look about and then do what is recorded as the solution, on several clusters at once."""
    return [await asyncio.to_thread(_episodes)]


def _episodes() -> Row:
    wanted = problems()
    with Pool(size=_ENVIRONMENTS, spec=standard_cluster()) as pool, ThreadPoolExecutor(_ENVIRONMENTS) as workers:

        def several(number: int) -> int:
            with pool.lease() as cluster:
                return sum(_episode(cluster, name) for name in wanted[number::_ENVIRONMENTS])

        began = time.monotonic()
        steps = sum(workers.map(several, range(_ENVIRONMENTS)))
        took = time.monotonic() - began
    rate = len(wanted) / took * 3600
    return Row(
        f"Episodes of `kumulus.gym` with {_ENVIRONMENTS} environments: `reset`, {_STEPS} steps, `verify`",
        f"{_LEAST_EPISODES:,} an hour",
        f"{rate:,.0f} an hour: {len(wanted)} problems in {took:.0f} s, all solved; "
        f"{steps / len(wanted):.1f} steps each",
        rate >= _LEAST_EPISODES,
        {"episodes_per_hour": rate, "seconds": took, "episodes": len(wanted), "steps": steps},
    )


def _episode(cluster: Cluster, name: str) -> int:
    """One episode; returns its steps."""
    with Environment(name, cluster) as environment:
        environment.reset(_SEED)
        solution = environment.drawn.solution
        looks = [_LOOKS[at % len(_LOOKS)] for at in range(_STEPS - len(solution))]
        steps = 0
        for command in [*looks, *solution]:
            observation, _, done = environment.step(command)
            steps = observation.step
            if done:
                break
        assert environment.verify().solved, name
        return steps


def _leased() -> Row:
    """Leases of a warm cluster."""
    took = []
    with Pool(size=2, nodes=_NODES) as pool:
        for _ in range(_LEASES):
            began = time.monotonic()
            with pool.lease() as cluster:
                took.append(time.monotonic() - began)
                assert not cluster.pods()
    lease = statistics.median(took)
    return Row(
        f"A lease from a warm pool of clusters of {_NODES} nodes",
        f"{_MOST_LEASE_S} s",
        f"{lease:.3f} s, median of {_LEASES}; at most {max(took):.2f} s",
        lease <= _MOST_LEASE_S,
        {"lease_s": lease, "longest_lease_s": max(took)},
    )


def _side_by_side() -> Row:
    """Small tests by several workers of pytest-xdist, and by one."""
    one, _ = _tests(1)
    many, most = _tests(_WORKERS)
    return Row(
        f"{_TESTS} small tests by {_WORKERS} workers with a cluster each",
        f"{_MOST_GB:.0f} GB, {_MOST_PART} of one worker's time",
        f"{most:.1f} GB; {many / one:.2f} of one worker's time ({many:.0f} s against {one:.0f} s)",
        most <= _MOST_GB and many <= _MOST_PART * one,
        {"workers_s": many, "one_worker_s": one, "most_gb": most},
    )


def _tests(workers: int) -> tuple[float, float]:
    """Seconds for the tests, and the most memory of all their processes at one time, in GB."""
    with tempfile.TemporaryDirectory(prefix="kumulus-bench-") as folder:
        (Path(folder) / "test_small.py").write_text(_SMALL_TESTS)
        (Path(folder) / "pytest.ini").write_text(f"[pytest]\nkumulus_nodes = {_NODES}\n")
        environment = {**os.environ, "PYTHONPATH": str(_ROOT / "src"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        environment["TMPDIR"] = folder
        plugins = ["-p", "xdist", "-p", "kumulus.testing.plugin", "-p", "no:cacheprovider"]
        began, most = time.monotonic(), 0.0
        run = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-q", *plugins, "-n", str(workers)],
            cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        while run.poll() is None:
            most = max(most, _memory_gb(folder, run.pid))
            time.sleep(0.5)
        took = time.monotonic() - began
        assert run.stdout is not None
        output = run.stdout.read()
        assert f"{_TESTS} passed" in output, output
        return took, most


def _memory_gb(folder: str, pid: int) -> float:
    """The memory of the processes whose files are in a folder, and of a process and its children; shared parts once."""
    total = 0
    for process in psutil.process_iter(["cmdline"]):
        try:
            if folder in " ".join(process.info["cmdline"] or []) or pid in (process.pid, process.ppid()):
                total += process.memory_full_info().pss
        except psutil.Error:
            continue
    return total / 1e9


async def _used(cluster: AsyncCluster) -> None:
    """Do what a test does that is hard to undo."""
    await cluster.resize(_MORE)
    await cluster.apply([crd(f"thing{index}s.example.com", scope="Namespaced") for index in range(_KINDS)])
    labels = {"app": "web"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "none"}]}}
    spec = {"replicas": _PODS, "selector": {"matchLabels": labels}, "template": pod}
    await cluster.apply({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec})

    async def running() -> bool:
        return sum(each.phase == "Running" for each in await cluster.pods()) == _PODS

    await cluster.wait(running, timeout=120)


async def _of_kwokctl() -> float:
    """Seconds that kwokctl takes for as many nodes that take pods, with its own defaults and the same programs."""
    began = time.monotonic()
    async with stock_control_plane(settling=0) as plane:
        await scale(plane, "node", replicas=_NODES)
        await until_ready(plane.client, _NODES)
        while True:
            if await objects.find(plane.client, _ACCOUNT) is not None:
                return time.monotonic() - began
            await asyncio.sleep(0.02)


def _of_kind() -> float:
    """Seconds that kind takes until a cluster's only node is Ready, of an image that is there; 0 without Docker."""
    if trouble():
        return 0.0
    made = ["--name=kumulus-bench", f"--image={image.ensure().name}", "--wait=300s"]
    with tempfile.TemporaryDirectory(prefix="kumulus-bench-") as folder:
        variables = commands.environment({**os.environ, "KUBECONFIG": f"{folder}/kubeconfig"}).variables
        kind = partial(subprocess.run, env=variables, check=True, capture_output=True)
        began = time.monotonic()
        try:
            kind([toolchain.find("kind"), "create", "cluster", *made])
            return time.monotonic() - began
        finally:
            kind([toolchain.find("kind"), "delete", "cluster", made[0]])


def _processes(cluster: AsyncCluster) -> list[psutil.Process]:
    found = processes.running(cluster.kubeconfig.parent)
    return [psutil.Process(pid) for pids in found.values() for pid in pids]
