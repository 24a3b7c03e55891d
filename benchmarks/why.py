"""What explanations cost: pods a second with `why: true` and without, one after the other on the same cluster."""

from __future__ import annotations

import asyncio
import os
import resource
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from benchmarks.control_plane import ControlPlane, control_plane
from benchmarks.fleet import Fleet
from benchmarks.report import Row
from kumulus.extras.lab.file.load import load
from kumulus.extras.lab.report import decided
from kumulus.extras.lab.report.why import sums
from kumulus.extras.lab.run.options import Options
from kumulus.extras.lab.run.run import Run
from kumulus.kube import Client, load_kubeconfig

NODES, PODS = 500, 600
TIMES = int(os.environ.get("KUMULUS_BENCH_WHY", "2"))
_LEAST_PERCENT = 99.0
_WAYS: dict[str, dict[str, Any]] = {
    "without": {},
    "why": {"why": True},
    "policy": {"why": True, "whyPolicy": "BestFit"},
}


@dataclass(frozen=True)
class _Found:
    """The result of one run.

    Args:
        rate: bindings in a second.
        scheduler_s: CPU seconds of kube-scheduler.
        beside_s: CPU seconds of the processes that read its log and that it queries.
        filters: for how many bindings it is known which filters rejected nodes; empty without `why`.
    """

    rate: float
    scheduler_s: float
    beside_s: float
    filters: dict[str, Any]


async def explained() -> list[Row]:
    """Half of the pods are limited to one zone of three; kube-scheduler scores 167 or 230 nodes for each pod."""
    found: dict[str, list[_Found]] = {way: [] for way in _WAYS}
    async with control_plane() as plane:
        fleet = Fleet(plane)
        await fleet.become(NODES)
        await fleet.until_ready(NODES)
        for _ in range(TIMES):
            for way, fields in _WAYS.items():
                found[way].append(await _run(plane, fields))
                print(f"{way}: {found[way][-1]}", file=sys.stderr, flush=True)
        await fleet.close()
    filters = [each.filters for way in ("why", "policy") for each in found[way]]
    named = min(each["percent"] for each in filters)
    median = {way: statistics.median(each.rate for each in runs) for way, runs in found.items()}
    figures = {f"{way}_pods_per_s_{n}": each.rate for way, runs in found.items() for n, each in enumerate(runs, 1)}
    figures |= {f"{way}_scheduler_cpu_s": statistics.median(e.scheduler_s for e in found[way]) for way in found}
    figures |= {f"{way}_beside_cpu_s": statistics.median(e.beside_s for e in found[way]) for way in found}
    return [
        Row(
            f"{PODS:,} pods on {NODES} nodes with `why: true`, against without",
            "",
            f"{median['why'] / median['without']:.2f} of the rate ({median['why']:.0f}/s against "
            f"{median['without']:.0f}/s, median of {TIMES}); with `whyPolicy` {median['policy']:.0f}/s",
            None,
            figures,
        ),
        Row(
            "Bindings with refused nodes of which the filters are known",
            f"{_LEAST_PERCENT:g} %",
            f"{named:g} % of {min(each['bindings'] for each in filters):,}",
            named >= _LEAST_PERCENT,
            {"percent": named},
        ),
    ]


async def _run(plane: ControlPlane, fields: dict[str, Any]) -> _Found:
    work = {"kind": "Pod", "jobs": PODS // 2, "requests": {"cpu": "250m"}}
    zone = {"nodeSelector": {"topology.kubernetes.io/zone": "use1"}}
    experiment = {
        "name": "why",
        "settle": "2s",
        "timeout": "300s",
        "scheduler": {"name": "kube-scheduler"},
        "workloads": [{"name": "anywhere", **work}, {"name": "zone", **work, **zone}],
        **fields,
    }
    with tempfile.TemporaryDirectory(prefix="kumulus-bench-") as folder:
        file = Path(folder) / "experiment.yaml"
        file.write_text(yaml.safe_dump(experiment))
        options = Options(
            kubeconfig=Path(plane.observed.kubeconfig),
            stack="bench",
            results=Path(folder) / "results",
            commit="",
            stop=asyncio.Event(),
            on_sample=lambda _: None,
            on_report=lambda *_: None,
            say=lambda _: None,
        )
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        # Slow answers of a busy machine are not failures here.
        async with Client(load_kubeconfig(plane.observed.kubeconfig), patience=60.0) as client:
            made = Run(client, load(file), options)
            report = await made.run()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert report.results.status == "success", report.results.error
        measures = report.results.tests[0].details.measures
        recorded = decided.read(made.directory.path)
    children = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return _Found(
        measures["scheduling.rate"],
        measures["cpu.scheduler"],
        # All these processes are children of this one and have ended.
        children - measures["cpu.scheduler"],
        sums(recorded.decisions, recorded.totals)[0]["filters"] if recorded else {},
    )
