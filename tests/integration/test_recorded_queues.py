"""A whole run whose jobs wait in a queue: what its history has of the queue, and what the page says of it."""

import asyncio
import re
from pathlib import Path

import pytest
import yaml
from playwright.sync_api import expect

from kumulus.extras.lab.run.bench import RepetitionOutcome
from kumulus.extras.schedulers import registry, workloads
from kumulus.extras.watch.console import bundle
from kumulus.extras.watch.history.document import History, load
from kumulus.extras.watch.history.moment import HistoryMoment, moment
from kumulus.model.quantity import parse
from tests.integration.conftest import Plane, Pools
from tests.integration.test_experiments import Lab
from tests.support.browser import chromium, until
from tests.support.tools import require

pytestmark = [pytest.mark.integration, pytest.mark.browser]
QUEUES = {"kueue": "ClusterQueue/team", "volcano": "Queue/team"}
QUOTA = {"cpu": "5", "memory": "64Gi", "pods": "50"}


@pytest.fixture
async def lab(plane: Plane, pools: Pools, tmp_path: Path) -> Lab:
    inputs = pools.inputs(4, labels={"lab": "here"})
    await pools.create(inputs)
    return Lab(plane, [str(inputs["name"])], tmp_path)


class Story:
    """Lets a run go on until its first gang has the quota and the other waits, and then until the other has it."""

    def __init__(self, lab: Lab, scheduler: str) -> None:
        self._lab, self._queue = lab, QUEUES[scheduler]
        self.first = ""

    def __call__(self, outcome: RepetitionOutcome) -> None:
        history = outcome.placement.history
        now = moment(history, history.end)
        if not self.first and self.waits(now):
            self.first = self.holder(now)
            namespace = f"namespaces/{history.about['namespace']}"
            if self._queue.startswith("Queue/"):
                # A PodGroup of Volcano is nobody's, and would go on waiting.
                self._lab.plane.api.delete(f"/apis/scheduling.volcano.sh/v1beta1/{namespace}/podgroups/{self.first}")
            self._lab.plane.api.delete(f"/apis/batch/v1/{namespace}/jobs/{self.first}?propagationPolicy=Background")
        elif self.first and self.holder(now) not in ("", self.first) and self.figures(now)[2:] == [0, 1]:
            self._lab.stop.set()

    def figures(self, then: HistoryMoment) -> list[object]:
        return then.queues.get(self._queue, [{}, {}, 0, 0])

    def holder(self, then: HistoryMoment) -> str:
        """The job that is placed."""
        return next((name.rpartition("/")[2] for name, job in then.jobs.items() if job.held == 4), "")

    def waits(self, then: HistoryMoment) -> bool:
        """Whether the queue says that four of five CPUs are in use and that one gang waits, and the gang says why."""
        _, used, waiting, admitted = self.figures(then)
        in_use = parse(dict(used).get("cpu", "0")) == parse("4")  # type: ignore[call-overload]
        why = any(job.says and not job.held for job in then.jobs.values() if job.queue == "team")
        return in_use and (waiting, admitted) == (1, 1) and bool(self.holder(then)) and why


@pytest.mark.parametrize("scheduler", QUEUES)
async def test_a_run_shows_quota_use_and_who_waits_over_time(scheduler: str, lab: Lab, tmp_path: Path) -> None:
    require(*registry.get(scheduler).tools)
    queue = workloads.queue(scheduler, "team", "", QUOTA)
    for each in queue:
        each["metadata"].pop("namespace", None)
    (tmp_path / "queue.yaml").write_text(yaml.safe_dump_all(queue))
    story = Story(lab, scheduler)
    lab.on_sample = story
    work = {**lab.workload(jobs=2, workers=4), "requests": {"cpu": "1", "memory": "1Gi"}, "queue": "team", "gang": True}
    # No pod completes, so that the run goes on until the story is at its end.
    await lab.run(
        workloads=[work], scheduler={"name": scheduler}, setup=["queue.yaml"], until="completed", timeout="4m"
    )
    (directory,) = (lab.directory / "results" / "test").iterdir()
    history = load(directory / "history-1.json.gz")
    times = sorted({event.at for event in history})
    then = {at: moment(history, at) for at in times}
    assert lab.stop.is_set(), f"the other gang never got the quota: {then[times[-1]].queues}, {then[times[-1]].jobs}"
    assert story.figures(then[times[0]])[2:] == [0, 0], "nobody waits before the jobs are there"
    waited = next(at for at in times if story.waits(then[at]))
    second = next(at for at in times if story.holder(then[at]) not in ("", story.first))
    assert waited < second
    await asyncio.to_thread(the_page_says_so, history, scheduler, waited, tmp_path)


def the_page_says_so(history: History, scheduler: str, waited: int, folder: Path) -> None:
    """At the moment at which one gang waits, and at the end."""
    kind = QUEUES[scheduler].partition("/")[0]
    page_file = folder / "run.html"
    page_file.write_text(bundle.page([history]), encoding="utf-8")
    with chromium() as browser, browser.new_context() as context:
        page = context.new_page()
        page.goto(page_file.as_uri())
        until(page, "globalThis.kumulus?.line() !== undefined")
        page.evaluate("at => kumulus.seek(at)", waited)
        row = page.locator(".queues").get_by_role("row").filter(has_text=re.compile(r"cpu \S+ of 5"))
        expect(row).to_contain_text(re.compile(f"{kind}: .*cpu 4 of 5.*, 1 waiting, 1 admitted"))
        jobs = page.locator(".jobs tbody")
        expect(jobs.get_by_role("row").filter(has_text="0 of 4")).to_contain_text(re.compile("waiting · .+"))
        page.evaluate("at => kumulus.seek(at)", history.end)
        expect(row).to_contain_text(re.compile("0 waiting, 1 admitted"))
