"""A recorded day played again: from a real API server's audit log, on a real control plane."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus.extras.capture.day.importing import ImportedDay, import_day
from kumulus.extras.lab.report.model import Of, QueueComparison, Report
from kumulus.extras.lab.report.text import lines as text_lines
from kumulus.provider.connections import Connections
from tests.integration.conftest import Plane, Pools, plane_at, remove_namespaces
from tests.support import runs
from tests.support.recorded_day import RecordedDay, audited, created, sent

pytestmark = pytest.mark.integration
CPUS, NODES = 8, 6
PRICED = {"node.kubernetes.io/instance-type": "m5.xlarge", "topology.kubernetes.io/region": "us-east-1"}


def cost(of: Of) -> float:
    assert of.cost is not None
    return of.cost


COSTS: tuple[Callable[[QueueComparison], float], ...] = (lambda each: cost(each.then), lambda each: cost(each.now))


@dataclass
class Recorded:
    """A day that was recorded, and what is left of it: its cluster, without its workloads."""

    plane: Plane
    log: Path
    day: RecordedDay

    def imported(self, directory: Path, **options: Any) -> ImportedDay:
        return import_day([self.log], directory / "day.yaml", "test", **options)

    async def replay(self, directory: Path, **fields: object) -> Report:
        """Run what was imported."""
        file = directory / "day.yaml"
        text = yaml.safe_load(file.read_text()) | {"settle": "1s", "timeout": "300s", **fields}
        file.write_text(yaml.safe_dump(text))
        return (await runs.run(self.plane.observed.kubeconfig, file))[0]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    directory = tmp_path_factory.mktemp("recorded")
    log = directory / "audit.log"
    with plane_at(directory / "home") as plane:
        audited(plane.directory, log, plane.api)
        pools = Pools.on(plane, Connections())
        capacity = {"cpu": str(CPUS), "memory": "64Gi", "pods": "110"}
        inputs = pools.inputs(NODES, name="rack-z", labels={"lab": "day", **PRICED}, capacity=capacity)
        asyncio.run(pools.create(inputs))
        day = RecordedDay(plane.api, [f"rack-z-{number}" for number in range(NODES)], {"lab": "day"}, cpus=CPUS)
        day.play()
        time.sleep(3)  # for what pods report of their end; a log without it is one, too
        kept = log.with_name("day.log")
        # The day ends here: what follows makes room for its replays.
        kept.write_bytes(log.read_bytes())
        remove_namespaces(plane, "shop", "train")
        plane.api.delete("/apis/scheduling.k8s.io/v1/priorityclasses/recorded-urgent")
        yield Recorded(plane, kept, day)


@dataclass
class Twice:
    """A day that was replayed twice."""

    found: ImportedDay
    """The day as it was imported."""
    reports: list[Report]
    """Of the two runs."""
    lines: list[str]
    """What the API server's log has of them."""


@pytest.fixture(scope="module")
def twice(recorded: Recorded, tmp_path_factory: pytest.TempPathFactory) -> Twice:
    directory, log = tmp_path_factory.mktemp("twice"), recorded.log.with_name("audit.log")
    found = recorded.imported(directory)
    before = log.read_text().count("\n")
    reports = [asyncio.run(recorded.replay(directory)) for _ in range(2)]
    return Twice(found, reports, log.read_text().splitlines()[before:])


def test_what_users_asked_for_is_what_is_imported(recorded: Recorded, twice: Twice) -> None:
    steps = _steps(twice)
    assert steps["create", "Deployment"] == steps["create", "StatefulSet"] == 1
    assert steps["create", "Job"] == recorded.day.jobs
    assert steps["create", "Pod"] == 3 + NODES - 1, "pods of controllers are made by these"
    assert steps["create", "ReplicaSet"] == 0
    assert steps["drain", "rack-z-0"] == steps["cordon", "rack-z-0"] == steps["uncordon", "rack-z-0"] == 1
    assert steps["change", "Deployment"] == 2, "scaled once, rolled out once"
    assert steps["evict", "Deployment"] == 1, "the pod that somebody deleted"
    assert steps["delete", "StatefulSet"] == 1
    assert twice.found.counted.bad == []
    assert "battery staple" in recorded.log.read_text(), "the log has an environment"
    assert "battery staple" not in twice.found.recording.read_text()


def test_what_was_asked_for_is_asked_for_again_and_made_once(recorded: Recorded, twice: Twice) -> None:
    print("\n".join(text_lines(twice.reports[0])))
    for report in twice.reports:
        (test,) = report.results.tests
        assert test.status == "success", (test.details.ended, report.results.error)
        beside = test.details.replays["recorded"]
        assert beside.refused == 0, beside.refusals
        assert beside.all.then.pods == len(twice.found.day.pods.every)
        assert beside.all.now.scheduled > 0
        assert not [each for each in beside.cannot if "cost" in each]
        for of in COSTS:
            assert of(beside.all) == pytest.approx(sum(of(each) for each in beside.queues.values()), abs=1e-4)
            assert of(beside.queues["shop"]) > 0
        assert {"research", "shop", "train"} <= beside.queues.keys()
        # Preemption and the drain have some replaced; a drained node has at most one for each of its CPUs.
        replaced = beside.queues["research"].now.preempted + CPUS
        pods = beside.queues["research"].now.pods
        assert pods < 4 * recorded.day.jobs, "two pods of each Job, not four"
        assert pods <= 2 * recorded.day.jobs + replaced
        assert [each.what for each in test.details.timeline if "over" in each.what] == ["cordon-rack-z-0 is over"]


def test_two_replays_ask_for_the_same(twice: Twice) -> None:
    first, second = (each.results.tests[0].details.replays["recorded"] for each in twice.reports)
    assert first.requests == second.requests
    asked, steps = (
        [sent(twice.lines, each.metadata.run_id[-6:], ("db", "urgent-0")) for each in twice.reports],
        _steps(twice),
    )
    assert asked[0] == asked[1], "as the API server had them"
    assert len(asked[0]) == sum(steps.values()) - sum(n for (do, _), n in steps.items() if do in _OF_NODES)


def _steps(twice: Twice) -> Counter[tuple[str, str]]:
    return Counter((step.do, step.job.partition("/")[0]) for step in twice.found.day.steps)


_OF_NODES = ("drain", "cordon", "uncordon", "evict")


def test_at_the_log_s_own_speed_things_come_at_the_log_s_own_times(recorded: Recorded, twice: Twice) -> None:
    report, log = twice.reports[0], recorded.log.with_name("audit.log")
    then = created(recorded.log.read_text().splitlines(), lambda name: name in ("shop", "train"))
    now = created(log.read_text().splitlines(), lambda name: report.metadata.run_id[-6:] in name)
    assert now.keys() == then.keys()
    # Counted from the first one, in the log and in the replay.
    first, second = min(then.values()), min(now.values())
    apart = sorted(abs((now[each] - second) - (then[each] - first)) for each in then)
    middle, most = apart[len(apart) // 2] * 1000, apart[-1] * 1000
    print(f"{len(apart)} creations, {middle:.0f} ms apart at the median, {most:.0f} ms at most")
    late = report.results.tests[0].details.replays["recorded"].late
    assert late["max"] < twice.found.lasted, "each was sent"
    # How near they are a loaded machine does not say; that they do not come all at once, it does.
    assert max(now.values()) - second >= 0.5 * (max(then.values()) - first)


async def test_a_part_begins_with_what_was_there(recorded: Recorded, tmp_path: Path) -> None:
    found = recorded.imported(tmp_path, since=f"{recorded.day.seconds * 0.6:.1f}s")
    report = await recorded.replay(tmp_path)
    beside = report.results.tests[0].details.replays["recorded"]
    assert beside.queues["shop"].now.pods >= recorded.day.web + 4, "scaled before the part began"
    assert beside.all.then.pods < len(found.day.pods.every)
    assert any("at the beginning" in each for each in beside.cannot)
