"""How fast nodes are created: against kwokctl, against the limit, and from 2,550 to 10,000."""

import asyncio
import json
import statistics
import tempfile
import time
from pathlib import Path

from benchmarks.control_plane import ControlPlane, control_plane, pools, scale
from benchmarks.fleet import Fleet, until_ready
from benchmarks.report import Row
from benchmarks.usage import until_at_rest
from kumulus.kube.codecs import PROTOBUF, JsonCodec
from kumulus.kube.watch import watch
from kumulus.nodes.pools.single import Bodies
from kumulus.toolchain import golang

FLEET = 2550
LARGE = 10_000
_SOURCE = Path(__file__).parent / "loadgen"


async def against_kwokctl(rounds: int = 3) -> list[Row]:
    """2,550 nodes until all are Ready: ours and ``kwokctl scale node`` in turn."""
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(rounds):
        async with control_plane() as plane:
            ours.append(await _created(plane, FLEET))
        async with control_plane() as plane:
            theirs.append(await _scaled(plane, FLEET))
    ratio = statistics.median(b / a for a, b in zip(ours, theirs, strict=True))
    mine, other = statistics.median(ours), statistics.median(theirs)
    figures = {f"ours_{turn}_s": seconds for turn, seconds in enumerate(ours)}
    figures |= {f"kwokctl_{turn}_s": seconds for turn, seconds in enumerate(theirs)}
    return [
        Row(
            "2,550 nodes until all are Ready, against `kwokctl scale node` on our control plane",
            "25 times faster",
            f"{ratio:.1f} times ({mine:.1f} s against {other:.1f} s, median of {rounds})",
            ratio >= 25,
            figures,
        ),
    ]


async def against_the_limit(rounds: int = 3) -> list[Row]:
    """Our rates, through the storage and through the API, against a compiled load generator's, in turn.

    Each is measured on a fresh control plane.
    """
    turns = []
    with tempfile.TemporaryDirectory() as folder:
        binary = await build(Path(folder))
        for _ in range(rounds):
            turn = {}
            for way in ("written", "posted"):
                async with control_plane() as plane:
                    turn[way] = FLEET / await _created(plane, FLEET, posted=way == "posted")
            for connections in (64, 128, 256):
                async with control_plane() as plane:
                    turn[f"limit_{connections}_connections"] = await post(plane, binary, FLEET, connections)
            turns.append(turn)
    best = [max(rate for what, rate in turn.items() if what.startswith("limit")) for turn in turns]
    figures = {f"{what}_{n}_nodes_per_s": rate for n, turn in enumerate(turns) for what, rate in turn.items()}
    return [
        _compared(way, must, [turn[way] for turn in turns], best, figures)
        for way, must in (("written", 4.0), ("posted", 0.9))
    ]


def _compared(way: str, must: float, ours: list[float], best: list[float], figures: dict[str, float]) -> Row:
    ratio, mine, other = map(statistics.median, ([a / b for a, b in zip(ours, best, strict=True)], ours, best))
    named = {"written": "through the storage", "posted": "with `createThrough: api`"}[way]
    return Row(
        f"2,550 nodes until all are Ready, {named}, against a compiled load generator that posts them (best of 64, "
        "128, 256 connections)",
        f"{must:g} {'times' if must > 1 else 'of'} its rate",
        f"{ratio:.2f} ({mine:,.0f}/s against {other:,.0f}/s, median of {len(ours)})",
        ratio >= must,
        figures,
    )


async def large() -> list[Row]:
    """10,000 nodes: created, relabelled, shrunk; each against the creation."""
    async with control_plane() as plane:
        small = await _created(plane, FLEET)
    # The baseline for changing each node: creating it by a POST.
    async with control_plane() as plane:
        posted = await _created(plane, LARGE, posted=True)
    async with control_plane() as plane:
        fleet = Fleet(plane)
        started = time.monotonic()
        await fleet.become(LARGE)
        created = await fleet.until_ready(LARGE) - started
        await _until_leased(plane, LARGE)
        await asyncio.to_thread(until_at_rest, plane.observed.directory)
        labelled = await fleet.become(LARGE, {"example.com/benchmark": "yes"})
        await asyncio.to_thread(until_at_rest, plane.observed.directory)
        shrunk = await fleet.become(FLEET, {"example.com/benchmark": "yes"})
        await fleet.close()
    return [
        Row(
            "10,000 nodes until all are Ready",
            "2.5 times the time of 2,550",
            f"{created / small:.1f} times ({created:.1f} s against {small:.1f} s)",
            created <= 2.5 * small,
            {"created_s": created, "small_s": small, "posted_s": posted},
        ),
        Row(
            "Label change on all of 10,000 nodes",
            "1.5 times their creation by posts",
            f"{labelled / posted:.2f} times ({labelled:.1f} s against {posted:.1f} s)",
            labelled <= 1.5 * posted,
            {"labelled_s": labelled, "posted_s": posted},
        ),
        Row(
            "Shrinking 10,000 to 2,550",
            "the time of creating them by posts",
            f"{shrunk / (posted * (LARGE - FLEET) / LARGE):.2f} times ({shrunk:.1f} s)",
            shrunk <= posted * (LARGE - FLEET) / LARGE,
            {"shrunk_s": shrunk, "posted_s": posted},
        ),
    ]


async def with_pods() -> list[Row]:
    """2,550 nodes with 2,550 running pods, deleted."""
    async with control_plane() as plane:
        fleet = Fleet(plane)
        started = time.monotonic()
        await fleet.become(FLEET)
        created = await fleet.until_ready(FLEET) - started
        job = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "fill"},
            "spec": {
                "parallelism": FLEET,
                "completions": FLEET,
                "template": {
                    "metadata": {"annotations": {"pod-complete.stage.kwok.x-k8s.io/delay": "1h"}},
                    "spec": {
                        "restartPolicy": "Never",
                        "tolerations": [{"operator": "Exists"}],
                        "containers": [
                            {"name": "work", "image": "none", "resources": {"limits": {"nvidia.com/gpu": 8}}}
                        ],
                    },
                },
            },
        }
        started = time.monotonic()
        await plane.client.create("/apis/batch/v1/namespaces/default/jobs", job)
        await _until_running(plane)
        filled = time.monotonic() - started
        emptied = await fleet.become(0)
        bound = [
            pod
            async for page in plane.client.pages("/api/v1/pods", {"fieldSelector": "spec.nodeName!="})
            for pod in page
        ]
        await fleet.close()
    allowed = created + filled
    return [
        Row(
            "2,550 nodes with 2,550 running pods to 0",
            "the time of creating them, no pod left",
            f"{emptied / allowed:.2f} times ({emptied:.1f} s against {created:.1f} + {filled:.1f} s), "
            f"{len(bound)} pods left",
            emptied <= allowed and not bound,
            {"emptied_s": emptied, "nodes_created_s": created, "pods_running_s": filled, "pods_left": len(bound)},
        )
    ]


async def _until_leased(plane: ControlPlane, nodes: int) -> None:
    """Wait until the controllers, which yielded while nodes were created, have caught up: each node has its lease."""
    path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
    for _ in range(300):
        listed = await plane.client.get(path, {"limit": "1"})
        if len(listed["items"]) + int(listed["metadata"].get("remainingItemCount", 0)) == nodes:
            return
        await asyncio.sleep(1)
    raise RuntimeError(f"not every one of {nodes:,} nodes had its lease within five minutes")


async def _until_running(plane: ControlPlane) -> None:
    """Wait until every pod of the Job runs, by watching the Job."""
    jobs, give_up = "/apis/batch/v1/namespaces/default/jobs", time.monotonic() + 300
    # A busy API server ends the watch of a client that does not keep up.
    while time.monotonic() < give_up:
        async for batch in watch(plane.client, jobs, {"fieldSelector": "metadata.name=fill"}, codec=JsonCodec()):
            if any((job.get("status") or {}).get("ready") == FLEET for _, job in batch):
                return
    raise RuntimeError("the pods did not run within 300 s")


async def _created(plane: ControlPlane, nodes: int, *, posted: bool = False) -> float:
    fleet = Fleet(plane, posted=posted)
    started = time.monotonic()
    await fleet.become(nodes)
    ready = await fleet.until_ready(nodes)
    await fleet.close()
    return ready - started


async def _scaled(plane: ControlPlane, nodes: int) -> float:
    """Seconds that ``kwokctl scale node`` takes until all nodes are Ready."""
    started = time.monotonic()
    await scale(plane, "node", replicas=nodes)
    return await until_ready(plane.client, nodes) - started


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
            *("-bodies", file.name, "-media-type", PROTOBUF, "-connections", str(connections)),
            stdout=asyncio.subprocess.PIPE,
        )
        out, _ = await process.communicate()
    result = json.loads(out)
    if result["failed"]:
        raise RuntimeError(f"{result['failed']} of {result['requests']} posts failed")
    return float(result["rate"])
