"""What a client did not hear has no time: it is left out of time measures, counted, and said beside the figures."""

import asyncio
import json
import math
import random
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kumulus.extras.lab.file.measures import UNITS
from kumulus.extras.lab.file.model import ExperimentSpec
from kumulus.extras.lab.measure.allocation import Allocation
from kumulus.extras.lab.measure.clock import Clock, Hearing
from kumulus.extras.lab.measure.over_time import GpuHours
from kumulus.extras.lab.measure.records import ExperimentRecords
from kumulus.extras.lab.measure.statistics import Between, Measured, Times, known, spread
from kumulus.extras.lab.measure.verdicts import verdicts
from kumulus.extras.lab.measure.views import NodeView, PodView
from kumulus.extras.lab.report import compare, history
from kumulus.extras.lab.report.files import RunDirectory
from kumulus.extras.lab.report.model import Report
from kumulus.extras.lab.report.text import lines
from kumulus.extras.lab.run.ending import Ending
from kumulus.extras.lab.run.repetition import Repetition
from kumulus.extras.watch.history.document import History, load
from kumulus.extras.watch.live.amounts import Amounts
from kumulus.kube import Connection, Unreachable
from tests.support.apiserver import listening
from tests.support.clocks import SetClock, until
from tests.support.measuring import Measuring, measures_of, measuring
from tests.support.playing import PlayedPods
from tests.support.processes import stopped
from tests.support.reports import report

HUNDRED, OTHERS = [f"a{number}" for number in range(100)], [f"b{number}" for number in range(100)]


# --- a watch that is lost --------------------------------------------------------------------------------------------


@asynccontextmanager
async def heard() -> AsyncIterator[tuple[PlayedPods, Measuring, SetClock]]:
    """A client that has heard of a hundred pods at once, when they were created; then the watch is silent."""
    pods, clock = PlayedPods(), SetClock(0.0)
    async with listening(pods.handle) as address, measuring(Connection(address, "test"), clock) as client:
        await pods.put(*HUNDRED)
        await until(lambda: len(client.records.pods) == 100)
        pods.held = True
        yield pods, client, clock


async def test_what_a_list_brings_after_410_has_no_time_and_is_counted() -> None:
    """A hundred pods got nodes soon, a hundred others came with nodes; the client hears of both only by a new list."""
    async with heard() as (pods, client, clock):
        await pods.put(*HUNDRED, *OTHERS, node="n")
        clock.now = 2.0
        await pods.forget()
        await until(lambda: client.records.counts["bound"] == 200)
        measures = client.measures()
    assert (measures["client.interruptions"], measures["pods.untimed"]) == (1, 200)
    assert (measures["timeToSchedule.min"], measures["timeToSchedule.p99"]) == (Between(0.0, 2.0), Between(0.0, 2.0))
    assert measures["scheduling.ratePeak"] == Between(0, 200)
    assert measures["scheduling.duration"] == Between(0.0, 2.0)
    assert measures["pods.scheduled"] == 200, "that they have a node is known"


async def test_what_is_heard_in_time_before_and_after_is_measured_without_what_was_not() -> None:
    async with heard() as (pods, client, clock):
        pods.held, clock.now = False, 0.25
        await pods.put(*HUNDRED[:99], node="n")
        await until(lambda: client.records.counts["bound"] == 99)
        pods.held, clock.now = True, 0.5
        await pods.put(HUNDRED[99], node="n")
        clock.now = 9.0
        await pods.forget()
        await until(lambda: client.records.counts["bound"] == 100)
        pods.held, clock.now = False, 30.0
        await pods.put("late")
        await until(lambda: len(client.records.pods) == 101)
        clock.now = 30.25
        await pods.put("late", node="n")
        await until(lambda: client.records.counts["bound"] == 101)
        measures = client.measures()
    assert measures["pods.untimed"] == 1
    assert (measures["timeToSchedule.p50"], measures["timeToSchedule.p90"]) == (0.25, 0.25)
    assert measures["timeToSchedule.max"] == Between(0.25, 9.0), "it may be the one that was not heard"
    assert measures["scheduling.duration"] == 30.0


async def test_what_comes_late_over_a_new_connection_has_no_time() -> None:
    """The server tells it from where the lost watch ended, as if it happened now."""
    async with heard() as (pods, client, clock):
        pods.cut()
        await until(lambda: client.listener.silence()[1])
        await pods.put(*HUNDRED[:50], node="n")
        clock.now, pods.held = 2.0, False
        await until(lambda: client.records.counts["bound"] == 50)
        clock.now = 3.0
        await pods.put(*HUNDRED[50:60], node="n")
        await until(lambda: client.records.counts["bound"] == 60)
        clock.now = 5.0
        await pods.put(*HUNDRED[60:], node="n")
        await until(lambda: client.records.counts["bound"] == 100)
        found = client.records.pods
        measures = client.measures()
    assert measures["client.interruptions"] == 1
    assert {name for name, pod in found.items() if pod.since} == set(HUNDRED[:60]), "as long again it catches up"
    assert measures["pods.untimed"] == 60
    assert measures["timeToSchedule.p50"] == Between(0.0, 5.0)


def test_a_watch_catches_up_for_as_long_as_it_was_silent_and_after_a_list_for_as_long_as_that_took() -> None:
    clock = SetClock(1.0)
    hearing = Hearing(clock)
    assert hearing.since(1.0) == 1.0
    clock.now = 4.0
    hearing.interrupted()
    assert hearing.since(5.0) == 1.0, "another watch of the same server may be heard before"
    clock.now = 14.0
    hearing.resumed()
    assert (hearing.since(23.9), hearing.since(24.0)) == (1.0, 24.0)
    clock.now = 30.0
    hearing.interrupted()
    clock.now = 40.0
    hearing.resumed()
    assert hearing.since(40.0, listed=True) == 24.0
    clock.now = 41.0
    hearing.synced()
    assert (hearing.since(41.9), hearing.since(42.0)) == (24.0, 42.0)


# --- a client that stands still --------------------------------------------------------------------------------------


async def test_a_client_whose_loop_is_busy_knows_for_how_long() -> None:
    clock = Clock()
    task = asyncio.create_task(clock.watch_itself())
    await until(lambda: clock.stall)
    before = clock()
    while clock() < before + 0.5:
        pass
    # What is read now has come at some time since then, whichever task the loop comes to first.
    assert clock.heard_since(clock()) <= before
    await asyncio.sleep(0)
    now = clock()
    assert clock.heard_since(now) <= before < now
    assert 0.4 <= clock.stall < 5
    caught_up = before + 2 * clock.stall + 0.3
    await until(lambda: clock() > caught_up)
    now = clock()
    assert clock.heard_since(now) == now, "in as long again, it has caught up"
    task.cancel()
    await until(task.done)
    assert clock.heard_since(now + 60) == now + 60, "it does not watch itself any more"


async def test_a_client_that_stands_still_again_for_a_moment_has_not_caught_up_before() -> None:
    """What has gathered keeps it busy, too."""
    clock = Clock()
    task = asyncio.create_task(clock.watch_itself())
    await until(lambda: clock.stall)
    began = clock()
    for seconds in (2.0, 0.25):
        before = clock()
        while clock() < before + seconds:
            pass
        await asyncio.sleep(0.15)
    now = clock()
    # The shorter one alone would be caught up with by then.
    await until(lambda: clock() > now + 0.5)
    assert clock.heard_since(clock()) <= began
    task.cancel()


class Played:
    """A workload played to a client that is a process of its own: a pod every few milliseconds, each waits a second."""

    PODS, EVERY, WAITS = 300, 0.015, 1.0

    def __init__(self) -> None:
        self.pods = PlayedPods()

    async def measured(self, stop_for: float = 0.0) -> dict[str, Measured]:
        """What a client measures; it is stopped for so many seconds, if any, when a sixth of the pods has ended."""
        async with listening(self.pods.handle) as address:
            line = [sys.executable, "-m", "tests.support.measuring", address, str(self.PODS)]
            client = await asyncio.create_subprocess_exec(*line, stdout=PIPE)
            try:
                assert client.stdout is not None
                assert await client.stdout.readline() == b"ready\n"
                tasks = [asyncio.create_task(self._one(number)) for number in range(self.PODS)]
                if stop_for:
                    await tasks[self.PODS // 6]
                    with stopped(client.pid):
                        await asyncio.sleep(stop_for)
                await asyncio.gather(*tasks)
                async with asyncio.timeout(60):
                    found = json.loads(await client.stdout.readline())
            finally:
                if client.returncode is None:
                    client.kill()
                await client.wait()
        return {name: Between(*value) if isinstance(value, list) else value for name, value in found.items()}

    async def _one(self, number: int) -> None:
        name = f"p{number}"
        await asyncio.sleep(number * self.EVERY)
        await self.pods.put(name)
        await asyncio.sleep(self.WAITS)
        await self.pods.put(name, node="n", phase="Running")
        await self.pods.put(name, node="n", phase="Succeeded")


def bounds(value: Measured) -> Between:
    return value if isinstance(value, Between) else Between(value, value)


async def test_a_client_that_is_stopped_for_three_seconds_calls_no_run_different() -> None:
    """The same pods twice: what one client measures, the other measures as well, or says that it does not know."""
    calm, stalled = await Played().measured(), await Played().measured(stop_for=3.0)
    assert bounds(stalled["client.stall"]).least > 2.5
    assert bounds(stalled["pods.untimed"]).least > 100
    assert isinstance(stalled["timeToSchedule.p50"], Between)
    assert stalled.keys() == calm.keys()
    timed = [name for name in calm if UNITS[name] in ("s", "perSecond") and not name.startswith(("cpu.", "client."))]
    assert len(timed) > 10
    for name in timed:
        one, other = bounds(calm[name]), bounds(stalled[name])
        # Each figure is promised to a tenth; the workload itself is not played to the millisecond on a busy machine.
        least, most = other.least * 0.8 - 0.3, other.most * 1.25 + 0.3
        assert least <= one.most, name
        assert one.least <= most, name


def test_a_run_is_not_over_as_long_as_the_client_has_not_caught_up() -> None:
    found, clock = ExperimentRecords(Allocation()), SetClock(20.0)
    ending = Ending(found, "steady", settle=5, expected=0)

    async def ask() -> None:
        """The server answers at once."""

    clock.stands_since = 12.0
    assert asyncio.run(ending.over(clock, ask)) == ""
    clock.stands_since, clock.now = math.inf, 24.0
    assert asyncio.run(ending.over(clock, ask)) == "", "it is quiet since the client listens again"
    clock.now = 25.0
    assert asyncio.run(ending.over(clock, ask)) == "no pod and no node has changed for 5 s"


# --- what is known then ----------------------------------------------------------------------------------------------


def test_a_figure_is_one_if_what_was_not_heard_cannot_have_changed_it_by_more_than_a_tenth() -> None:
    assert known(1.0, Between(0.96, 1.05)) == 1.0
    assert known(1.0, Between(0.9, 1.05)) == Between(0.9, 1.05)
    assert known(1.0, Between(1.2, 1.3)) == Between(1.0, 1.3), "by all it would be another than by what was heard"
    assert known(0.05, Between(0.0, 0.1), resolution=0.1) == 0.05


@pytest.mark.parametrize("seed", range(20))
def test_the_spread_of_all_lies_within_what_is_said_of_those_that_were_heard(seed: int) -> None:
    draw, times, true = random.Random(seed), Times(), []
    for _ in range(draw.randrange(1, 200)):
        took = draw.expovariate(0.5)
        true.append(took)
        late = draw.choice((0.0, 0.0, 0.0, draw.uniform(0, 2)))
        times.add(Between(max(0.0, took - late), took + draw.uniform(0, late)) if late else Between(took, took))
    for name, value in times.spread().items():
        exact = spread(true)[name]
        if isinstance(value, Between):
            assert value.least - 1e-9 <= exact <= value.most + 1e-9
        else:
            assert abs(exact - value) <= max(0.1, 0.1 * value) + 1e-9


def test_gpu_hours_are_not_measured_when_too_much_of_them_was_not_heard() -> None:
    clock = SetClock(0.0)
    allocation = Allocation(hours=GpuHours(clock))
    allocation.put_node(NodeView("n", "a100", "z", Amounts(gpus=8)))
    allocation.begin()
    records = ExperimentRecords(allocation)
    pod = PodView("a", "w", "j", "n", "Running", "", "", Amounts(gpus=8))
    for clock.now, phase, since in ((0.0, "Running", 0.0), (100.0, "Succeeded", 60.0), (200.0, "Succeeded", 200.0)):
        records.put(pod._replace(phase=phase), clock.now, since)
    allocation.end()
    found = measures_of(records, 200.0)
    for name in ("used", "idle"):
        assert found[f"gpuHours.{name}"] == pytest.approx((8 * 60 / 3600, 8 * 140 / 3600))
    assert found["allocation.gpuMean"] == pytest.approx((0.3, 0.7))


def judged(value: Measured, **threshold: str) -> tuple[bool, str]:
    expect = [{"measure": "timeToSchedule.p99", **threshold}]
    experiment = ExperimentSpec.checked({"name": "t", "workloads": [{"name": "w"}], "expect": expect})
    [verdict] = verdicts(experiment.expect, {"timeToSchedule.p99": value}, ExperimentRecords(Allocation()))
    return verdict.holds, verdict.found


def test_a_threshold_is_judged_by_what_is_known_and_not_measured_if_that_is_on_both_sides_of_it() -> None:
    unheard = Between(1.0, 4.0)
    assert judged(unheard, atMost="5s") == (True, "between 1.00 s and 4.00 s")
    assert judged(unheard, atMost="2s") == (False, "not measured: between 1.00 s and 4.00 s")
    assert judged(unheard, atMost="0.5s") == (False, "between 1.00 s and 4.00 s")
    assert judged(unheard, atLeast="1s") == (True, "between 1.00 s and 4.00 s")
    assert judged(unheard, atLeast="5s") == (False, "between 1.00 s and 4.00 s")
    assert judged(unheard, equals="2s") == (False, "not measured: between 1.00 s and 4.00 s")
    assert judged(Between(1.001, 1.002), atMost="5s") == (True, "about 1.00 s")
    assert judged(Between(3.0, math.inf), atMost="5s") == (False, "not measured: 3.00 s or more")


# --- what is said of it ----------------------------------------------------------------------------------------------

UNHEARD = {"client.stall": 3.1, "client.interruptions": 2.0, "pods.untimed": 41.0}
NOT_HEARD = [
    "the client stood still for 3.10 s",
    "its watches were interrupted 2 times",
    "a time is not known of 41 pods",
]


def unheard() -> Report:
    made = report("20261121-160000-def456", measures=[{**UNHEARD, "makespan": 9.0}])
    made.results.tests[0].details.not_measured = {"timeToSchedule.p50": (0.9, 4.1), "scheduling.rate": (12.0, None)}
    return made


def test_the_text_says_what_was_not_heard_and_between_what_a_measure_lies() -> None:
    said = "\n".join(lines(unheard()))
    assert "timeToSchedule.p50  not measured: between 0.90 s and 4.10 s" in said
    assert "scheduling.rate     not measured: 12/s or more" in said
    assert "client.stall        3.10 s" in said
    assert all(f"not heard           {each}" in said for each in NOT_HEARD)
    assert "not heard" not in "\n".join(lines(report(measures=[{"client.stall": 0.02, "pods.untimed": 0.0}])))


def test_a_run_with_a_stall_is_compared_as_not_measured_and_not_as_different() -> None:
    calm = report(measures=[{"timeToSchedule.p50": 2.0, "client.stall": 0.01, "makespan": 9.1}])
    rows = {row[0]: row[1:] for row in compare.table([calm, unheard()])}
    assert rows["timeToSchedule.p50"] == ["2.00 s", "not measured"]
    assert rows["makespan"] == ["9.10 s", "9.00 s"]
    assert rows["client.stall"] == ["10 ms", "3.10 s"]
    assert list(compare.unfair([calm, unheard()])) == [
        f"not all was heard of 20261121-160000-def456: {'; '.join(NOT_HEARD)}"
    ]


def test_a_repetition_that_was_not_measured_is_said_beside_the_others() -> None:
    made = report(measures=[{"timeToSchedule.p50": 2.0}, {}])
    made.results.tests[1].details.not_measured = {"timeToSchedule.p50": (0.9, 4.1)}
    assert compare.spread(made, "timeToSchedule.p50") == "2.00 s, 1 not measured"


def test_the_page_of_all_runs_and_the_record_of_one_have_what_was_not_heard(tmp_path: Path) -> None:
    [found] = history._runs([("p", unheard())], Path())
    assert found["unheard"] == NOT_HEARD
    assert found["notMeasured"] == ["scheduling.rate", "timeToSchedule.p50"]
    folder = RunDirectory(tmp_path, "e", "r")
    folder.prepare({})
    folder.keep(History(), 1, unheard().results.tests[0])
    assert load(folder.path / "history-1.json.gz").about["unheard"] == NOT_HEARD


def test_a_report_with_what_was_not_measured_is_read_as_it_was_written() -> None:
    made = unheard()
    assert Report.model_validate_json(made.model_dump_json()) == made


# --- a clean-up that is not answered in time ---------------------------------


class SlowlyRemoved(Repetition):
    """A repetition whose removal is not answered in time, each time with so many pods left."""

    def __init__(self, left: list[int]) -> None:
        self.left = left

    async def pods_left(self) -> int:
        return self.left.pop(0)

    async def _remove(self) -> None:
        if self.left:
            raise Unreachable("https://127.0.0.1", "no answer in time")


async def test_thousands_of_pods_are_removed_in_several_goes_while_they_become_fewer() -> None:
    slowly = SlowlyRemoved([2550, 1705, 400, 0])
    await slowly.clean()
    assert slowly.left == []
    stuck = SlowlyRemoved([2550, 1705, 1705, 400])
    with pytest.raises(Unreachable):
        await stuck.clean()
    assert stuck.left == [400]
