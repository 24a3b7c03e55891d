"""A recorded day of three hours replayed at speed 10: its times, its requests, its pods; and a part at speed 1.

The day is run on a real cluster within 18 minutes, and the times of its audit log are then stretched tenfold, so that
the imported log covers three hours.
"""

import asyncio
import json
import math
import os
import random
import statistics
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from benchmarks.control_plane import ControlPlane, control_plane
from benchmarks.fleet import Fleet
from benchmarks.report import Row
from kumulus.extras.capture.day.importing import ImportedDay, import_day
from kumulus.extras.lab.file.load import load
from kumulus.extras.lab.measure.statistics import spread
from kumulus.extras.lab.report.model import ReplayComparison, Report
from kumulus.extras.lab.run.bench import RunOptions
from kumulus.extras.lab.running import Run
from tests.support.api import Api
from tests.support.recorded_day import MERGE, STRATEGIC, RecordedDay, Step, audited, created, sent

NODES = 100
RACK = 10
DAY_S, SPEED = 1080.0, 10.0
# Replays of the whole day; `KUMULUS_BENCH_REPLAYS=0` replays only the part at speed 1.
TIMES = int(os.environ.get("KUMULUS_BENCH_REPLAYS", "2"))
JOBS, PODS_OF_A_JOB, SERVICES, REPLICAS = 950, 4, 20, 20
_PART = ("3000s", "3300s")  # five minutes of the second hour, at speed 1
_MOST_APART_MS = 100.0
_SEED = 42
_DELAY = "pod-complete.stage.kwok.x-k8s.io/delay"
_BATCH = "/apis/batch/v1/namespaces/train/jobs"
_NAMESPACES = ("shop", "train")


class LongDay(RecordedDay):
    """Twenty services that are scaled and rolled out twice, Jobs all day, and a rack that is drained in the middle."""

    def _steps(self) -> list[Step]:
        draw = random.Random(_SEED)
        steps: list[Step] = [(0.0, self._begin)]
        for number in range(SERVICES):
            steps += self._service(f"web-{number}", draw)
        for number in range(self.jobs):
            job = self._drawn_job(f"job-{number}", draw)
            steps.append((draw.uniform(0.02, 0.93), lambda made=job: self.api.create(_BATCH, made)))  # type: ignore[misc]
        for number in range(RACK):
            steps += [
                (0.50 + 0.005 * number, lambda node=number: self._drain_one(node)),  # type: ignore[misc]
                (0.62, lambda node=number: self._close(node, False)),  # type: ignore[misc]
            ]
        return steps

    def _service(self, name: str, draw: random.Random) -> list[Step]:
        path = "/apis/apps/v1/namespaces/shop/deployments"
        scale, image = f"{path}/{name}/scale", f"{path}/{name}"

        def scaled(replicas: int) -> Callable[[], Any]:
            return lambda: self.api.request("PATCH", scale, {"spec": {"replicas": replicas}}, MERGE)

        def rolled(version: str) -> Callable[[], Any]:
            return lambda: self.api.request("PATCH", image, self._memory(version), STRATEGIC)

        return [
            (draw.uniform(0.005, 0.05), lambda: self.api.create(path, self._of("Deployment", name, REPLICAS))),
            (draw.uniform(0.15, 0.25), rolled("64Mi")),
            (draw.uniform(0.30, 0.40), scaled(REPLICAS * 3 // 2)),
            (draw.uniform(0.65, 0.75), rolled("96Mi")),
            (draw.uniform(0.80, 0.90), scaled(REPLICAS)),
        ]

    @staticmethod
    def _memory(amount: str) -> dict[str, Any]:
        container = {"name": "main", "resources": {"requests": {"memory": amount}}}
        return {"spec": {"template": {"spec": {"containers": [container]}}}}

    def _drawn_job(self, name: str, draw: random.Random) -> dict[str, Any]:
        made = self._job(name)
        made["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = draw.choice(("research", "vision", "speech"))
        made["spec"] |= {"parallelism": PODS_OF_A_JOB, "completions": PODS_OF_A_JOB}
        made["spec"]["template"]["metadata"]["annotations"][_DELAY] = f"{draw.uniform(5, 60):.1f}s"
        return made

    def _close(self, node: int, closed: bool) -> None:
        path = f"/api/v1/nodes/{self.nodes[node]}"
        self.api.request("PATCH", path, {"spec": {"unschedulable": closed or None}}, STRATEGIC)

    def _drain_one(self, node: int) -> None:
        self._close(node, True)
        for pod in self.api.list("/api/v1/pods", fieldSelector=f"spec.nodeName={self.nodes[node]}"):
            if pod["status"].get("phase") == "Running" and not pod["metadata"].get("deletionTimestamp"):
                self._evict(pod)


@dataclass(frozen=True)
class _Replay:
    """The result of one replay."""

    report: Report
    """Its report."""
    lines: list[str]
    """The API server's audit log of it."""

    @property
    def beside(self) -> ReplayComparison:
        return self.report.results.tests[0].details.replays["recorded"]

    @property
    def run(self) -> str:
        """The part of the run's id that its namespaces have in their names."""
        return self.report.metadata.run_id[-6:]


async def recorded_day() -> list[Row]:
    """Record the day, replay it twice at speed 10 and a part of it at speed 1."""
    with tempfile.TemporaryDirectory(prefix="kumulus-bench-") as temporary:
        folder = Path(temporary)
        async with control_plane() as plane:
            log = folder / "audit.log"
            api = Api(Path(plane.observed.kubeconfig))
            await asyncio.to_thread(audited, Path(plane.observed.directory), log, api)
            fleet = Fleet(plane)
            await fleet.become(NODES)
            await fleet.until_ready(NODES)
            nodes = sorted(each["metadata"]["name"] for each in api.list("/api/v1/nodes"))
            day = LongDay(api, nodes, {"type": "kwok"}, seconds=DAY_S, jobs=JOBS, cpus=8)
            await asyncio.to_thread(day.play)
            await asyncio.sleep(5)
            stretched = folder / "day.log"
            stretch(log, stretched, SPEED)
            await asyncio.to_thread(_cleared, api)
            found = import_day([stretched], folder / "day.yaml", "bench", speed=SPEED)
            twice = [await _replayed(plane, log, folder / "day.yaml") for _ in range(TIMES)]
            import_day([stretched], folder / "part.yaml", "bench", since=_PART[0], until=_PART[1])
            part = await _replayed(plane, log, folder / "part.yaml")
            api.close()
            await fleet.close()
        return _rows(found, twice, part, stretched)


def stretch(log: Path, to: Path, factor: float) -> None:
    """Write a copy of an audit log with all times this many times as far from the first one."""
    began: datetime | None = None
    with log.open() as lines, to.open("w") as out:
        for line in lines:
            event = json.loads(line)
            for key in ("requestReceivedTimestamp", "stageTimestamp"):
                at = datetime.fromisoformat(event[key].replace("Z", "+00:00"))
                began = began or at
                event[key] = (began + timedelta(seconds=(at - began).total_seconds() * factor)).isoformat()
            out.write(json.dumps(event) + "\n")


def _cleared(api: Api) -> None:
    for name in _NAMESPACES:
        api.delete(f"/api/v1/namespaces/{name}")
    api.until("/api/v1/namespaces", lambda found: not set(_NAMESPACES) & set(found), timeout=600)
    api.delete("/apis/scheduling.k8s.io/v1/priorityclasses/recorded-urgent")


async def _replayed(plane: ControlPlane, log: Path, file: Path) -> _Replay:
    before = await asyncio.to_thread(_patient, file, log)
    results = file.parent / "results"
    options = RunOptions(Path(plane.observed.kubeconfig), "bench", results, on_report=lambda report, path: None)
    report = await Run(plane.client, load(file), options).run()
    return _Replay(report, await asyncio.to_thread(_since, log, before))


def _patient(file: Path, log: Path) -> int:
    """Give an experiment enough time; returns the log's size before it, in bytes."""
    file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | {"settle": "1s", "timeout": "1h"}))
    return log.stat().st_size


def _since(log: Path, before: int) -> list[str]:
    with log.open("rb") as lines:
        lines.seek(before)
        return lines.read().decode().splitlines()


def _rows(found: ImportedDay, twice: list[_Replay], part: _Replay, stretched: Path) -> list[Row]:
    title = f"A recorded day of {found.lasted / 3600:.1f} h, {RACK} nodes drained"
    return [*(_whole(title, twice) if len(twice) > 1 else ()), _at_its_time(title, part, stretched)]


def _whole(title: str, twice: list[_Replay]) -> list[Row]:
    one, two = (sorted(sent(each.lines, each.run)) for each in twice[:2])
    same = one == two and twice[0].beside.requests == twice[1].beside.requests
    then, now = twice[0].beside.all.then.pods, [each.beside.all.now.pods for each in twice]
    moved = [each.beside.all.now.preempted for each in twice]
    p99 = [each.beside.late["p99"] * 1000 for each in twice]
    return [
        Row(
            f"{title}: replayed twice at speed {SPEED:g}",
            "both send the same requests",
            f"{len(one):,} and {len(two):,} requests, {'the same' if same else 'not the same'}; "
            f"{twice[0].beside.refused} refused; {p99[0]:.0f} and {p99[1]:.0f} ms behind their time at p99",
            same and not twice[0].beside.refused,
            {"requests": float(len(one)), "late_p99_ms": max(p99)},
        ),
        Row(
            f"{title}: pods that controllers make",
            "once, not twice",
            f"{then:,} then, {now[0]:,} and {now[1]:,} now",
            all(abs(each - then) <= 0.05 * then for each in now),
            {"then": float(then), "now": float(now[0]), "again": float(now[1]), "preempted": float(max(moved))},
        ),
    ]


def _at_its_time(title: str, part: _Replay, stretched: Path) -> Row:
    apart = _apart(created(stretched.read_text().splitlines(), lambda name: name in _NAMESPACES), part)
    near = spread(apart) or dict.fromkeys(("p50", "p99"), math.inf)
    return Row(
        f"{title}: {_minutes()} minutes of it at speed 1, times of {len(apart)} creations against the log's",
        f"p99 within {_MOST_APART_MS:.0f} ms",
        f"p50 {near['p50']:.0f} ms, p99 {near['p99']:.0f} ms",
        near["p99"] <= _MOST_APART_MS,
        {f"{key}_ms": value for key, value in near.items()},
    )


def _minutes() -> int:
    since, until = (float(each.rstrip("s")) for each in _PART)
    return int((until - since) / 60)


def _apart(then: Mapping[tuple[str, str], float], part: _Replay) -> list[float]:
    """Deviation in ms of each creation's time in a part from the log's, less the median deviation."""
    now = created(part.lines, lambda name: part.run in name)
    # Objects that existed when the part began are created at once and have no time to compare.
    began = min(then.values()) + float(_PART[0].rstrip("s"))
    late = {each: now[each] - at for each, at in then.items() if each in now and at >= began}
    middle = statistics.median(late.values()) if late else 0.0
    return [abs(each - middle) * 1000 for each in late.values()]
