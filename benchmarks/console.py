"""What the live view costs: `kumulus watch` at 10,000 nodes, with pods created and deleted."""

import asyncio
import os
import pty
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil

from benchmarks.control_plane import ControlPlane, control_plane
from benchmarks.fleet import Fleet
from benchmarks.report import Row

NODES = 10_000
SECONDS = 60.0
_ROOT = Path(__file__).resolve().parents[1]
_JOBS = "/apis/batch/v1/namespaces/default/jobs"
_A_SECOND = 20
_LIVES = "20s"
# The first lists and pictures are not typical of the load that follows.
_SETTLING = 20.0


async def view() -> list[Row]:
    """The CPU of the view while 20 pods a second start, each of which ends after 20 s."""
    async with control_plane() as plane:
        fleet = Fleet(plane)
        await fleet.become(NODES)
        await fleet.until_ready(NODES)
        churn = asyncio.create_task(_churn(plane))
        try:
            return [await _measured(plane)]
        finally:
            churn.cancel()
            await asyncio.gather(churn, return_exceptions=True)
            await fleet.close()


async def _churn(plane: ControlPlane) -> None:
    """Create a Job of several pods every second, which is removed soon after its end."""
    number = 0
    while True:
        number += 1
        await plane.client.create(_JOBS, _job(f"churn-{number}"))
        await asyncio.sleep(1)


def _job(name: str) -> dict[str, object]:
    container = {"name": "c", "image": "none", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    pod = {
        "restartPolicy": "Never",
        "tolerations": [{"key": "kwok.x-k8s.io/node", "operator": "Exists"}],
        "containers": [container],
    }
    annotations = {"pod-complete.stage.kwok.x-k8s.io/delay": _LIVES}
    template = {"metadata": {"annotations": annotations}, "spec": pod}
    counts = {"parallelism": _A_SECOND, "completions": _A_SECOND, "ttlSecondsAfterFinished": 5}
    return {"metadata": {"name": name}, "spec": {**counts, "template": template}}


async def _measured(plane: ControlPlane) -> Row:
    """The share of a core that the view takes."""
    main, other = pty.openpty()
    os.set_blocking(main, False)
    command = [sys.executable, str(_ROOT / "kumulus"), "watch", "--kubeconfig", plane.observed.kubeconfig]
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "140", "LINES": "40"}
    process = await asyncio.create_subprocess_exec(*command, stdin=other, stdout=other, stderr=other, env=environment)
    loop = asyncio.get_running_loop()
    loop.add_reader(main, _discard, main)
    try:
        await asyncio.sleep(_SETTLING)
        look = psutil.Process(process.pid)
        began, used = time.monotonic(), sum(look.cpu_times()[:2])
        await asyncio.sleep(SECONDS)
        share = (sum(look.cpu_times()[:2]) - used) / (time.monotonic() - began)
        memory = look.memory_info().rss
    finally:
        process.terminate()
        await process.wait()
        loop.remove_reader(main)
        os.close(main)
        os.close(other)
    return Row(
        f"`kumulus watch` at {NODES:,} nodes, {_A_SECOND} pods a second coming and going",
        "5 % of one core",
        f"{share:.1%} of one core, {memory / 1e6:.0f} MB",
        share <= 0.05,
        {"share": share, "memory_bytes": memory, "seconds": SECONDS},
    )


def _discard(source: int) -> None:
    with suppress(BlockingIOError, OSError):
        os.read(source, 1 << 16)
