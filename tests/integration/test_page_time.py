"""The live page over time, in a real Chromium: jobs and queues now, and the last hour."""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from kumulus.extras.watch.console.changes import ClusterChanges
from kumulus.extras.watch.live.fleet import Live, Take
from kumulus.extras.watch.live.model import Fleet
from kumulus.extras.watch.live.pod import ClusterPod
from kumulus.kube import Unreachable
from kumulus.kube.watch import WatchEvent
from kumulus.model.identity import NOBODY
from tests.integration.test_page import cell, visiting
from tests.support.browser import until
from tests.support.fleets import large, node, pod
from tests.support.pages import ServedFleet

pytestmark = pytest.mark.browser
HOSTILE = "<img src=x onerror=document.title='taken'>\u202e" + "x" * 10_000


def fleet(found: Fleet) -> None:
    for index in range(4):
        found.set_node(f"n-{index}", node(f"n-{index}", rack=f"r{index // 2}"))
    found.set_pod("default/a-0", replace(pod("a-0", "n-0", 8), job="Job/a", queue="team"))
    waits = replace(pod("a-1", "", 8), phase="Pending", reasons=("Insufficient nvidia.com/gpu",))
    found.set_pod("default/a-1", replace(waits, job="Job/a", queue="team"))


def placed(key: str, found: ClusterPod, live: Live) -> None:
    live.fleet.set_pod(key, found)


def told(take: Take, event: WatchEvent[Any], _: Live) -> None:
    take(event)


@pytest.fixture
def served() -> Iterator[ServedFleet]:
    with ServedFleet(fleet) as found:
        yield found


@pytest.fixture
def page(browser: Browser, served: ServedFleet) -> Iterator[Page]:
    with visiting(browser, served) as found:
        until(found, "kumulus.lately().all !== null")
        yield found


def test_jobs_are_told_as_they_are_now(page: Page, served: ServedFleet) -> None:
    expect(page.get_by_role("row", name="a team")).to_contain_text("1 of 2")
    page.get_by_role("button", name="a", exact=True).click()
    expect(page.locator(".chosen")).to_contain_text("Racks: r0 (1)")
    expect(page.locator(".chosen")).to_contain_text("1 × Insufficient nvidia.com/gpu")
    served.change(
        lambda live: live.fleet.set_pod("default/a-1", replace(pod("a-1", "n-3", 8), job="Job/a", queue="team"))
    )
    expect(page.get_by_role("row", name="a team")).to_contain_text("2 of 2")
    expect(page.locator(".chosen")).to_contain_text("Racks: r0 (1), r1 (1)")


def test_a_queue_has_its_quota(page: Page, served: ServedFleet) -> None:
    quota = {"metadata": {"name": "q", "namespace": "team"}, "status": {"hard": {"pods": "9"}, "used": {"pods": "2"}}}
    take = served.page._memory.collections()["/api/v1/resourcequotas"]
    served.change(lambda _: take(WatchEvent("ADDED", "team/q", quota)))
    expect(page.locator(".queues")).to_contain_text("ResourceQuota: pods 2 of 9")


def test_of_yunikorns_queues_the_use_is_what_their_pods_hold(page: Page, served: ServedFleet) -> None:
    quotas = "resources: {max: {vcore: 64, nvidia.com/gpu: 32}}"
    text = f"partitions: [{{queues: [{{name: root, queues: [{{name: research, {quotas}}}]}}]}}]"
    path = "/api/v1/configmaps?fieldSelector=metadata.name%3Dyunikorn-configs"
    take = served.page._memory.collections()[path]
    served.change(lambda _: take(WatchEvent("ADDED", "yunikorn/yunikorn-configs", {"data": {"queues.yaml": text}})))
    for index, queue in enumerate(("root.research", "root.research.vision", "root.other")):
        found = replace(pod(f"y-{index}", f"n-{index + 1}", 4), job=f"Job/y-{index}", queue=queue)
        served.change(partial(placed, f"default/{found.name}", found))
    row = page.locator(".queues").get_by_role("row", name="root.research", exact=False).first
    expect(row).to_contain_text("YuniKorn queue: vcore 8 of 64, nvidia.com/gpu 8 of 32")


def test_queues_of_one_name_in_two_namespaces_are_kept_apart(page: Page, served: ServedFleet) -> None:
    path = "/apis/kueue.x-k8s.io/v1beta2/localqueues"
    take = served.page._memory.collections()[path]
    above = served.page._memory.collections()["/apis/kueue.x-k8s.io/v1beta2/clusterqueues"]
    for number, namespace in enumerate(("red", "blue"), start=1):
        queue = {"metadata": {"name": "team", "namespace": namespace}, "status": {"pendingWorkloads": number}}
        served.change(partial(told, take, WatchEvent("ADDED", f"{namespace}/team", queue)))
        for index in range(number):
            one = replace(pod(f"{namespace}-{index}", f"n-{number + index}", 2), namespace=namespace, queue="team")
            one = replace(one, job=f"Job/{namespace}-{index}")
            served.change(partial(placed, f"{one.namespace}/{one.name}", one))
    used = [{"name": "any", "resources": [{"name": "nvidia.com/gpu", "total": "6"}]}]
    status = {"flavorsUsage": used, "pendingWorkloads": 3, "admittedWorkloads": 3}
    served.change(lambda _: above(WatchEvent("ADDED", "all", {"metadata": {"name": "all"}, "status": status})))

    def cells(name: str) -> list[str]:
        row = page.locator(".queues tbody tr").filter(has=page.get_by_role("rowheader", name=name, exact=True))
        expect(row).to_have_count(1)
        return row.locator("th, td").all_inner_texts()

    # Name, jobs that wait, jobs that are placed, GPUs; the job of the namespace without such a queue has its own row.
    expect(page.locator(".queues caption")).to_have_text("4 queues")
    assert cells("red/team") == ["red/team", "0", "1", "2", "LocalQueue: no quota, 1 waiting, 0 admitted"]
    assert cells("blue/team") == ["blue/team", "0", "2", "4", "LocalQueue: no quota, 2 waiting, 0 admitted"]
    assert cells("team")[:4] == ["team", "1", "0", "8"]
    # One above them has no jobs of its own, and says what it counts itself.
    assert cells("all") == ["all", "3", "3", "6", "ClusterQueue: no quota, 3 waiting, 3 admitted"]
    expect(page.get_by_role("row", name="red-0 red/team")).to_be_visible()


def test_a_moment_that_is_past_is_shown_until_now_is_asked_for(page: Page, served: ServedFleet) -> None:
    page.wait_for_timeout(300)
    served.change(lambda live: live.fleet.set_node("n-3", None))
    until(page, "kumulus.cells().cells.length === 3")
    slider = page.get_by_role("slider", name="Moment")
    slider.focus()
    page.keyboard.press("Home")
    until(page, "kumulus.lately().past !== null && kumulus.cells().cells.length === 4")
    served.change(lambda live: live.fleet.set_node("n-2", None))
    page.wait_for_timeout(600)
    assert page.evaluate("kumulus.lately().past.nodes.get('n-3').state") == "ready"
    page.get_by_role("button", name="Now").click()
    until(page, "kumulus.lately().past === null && kumulus.cells().cells.length === 2")


def test_of_an_open_node_the_jobs_are_those_of_the_moment(page: Page, served: ServedFleet) -> None:
    page.locator("#find").fill("n-0")
    expect(page.get_by_role("table", name="1 job on n-0")).to_be_visible()
    page.click("#canvas", position=cell(page, "n-3"))  # type: ignore[arg-type]
    expect(page.get_by_role("table", name="0 jobs on n-3")).to_be_visible()
    late = replace(pod("late-0", "n-3", 8), job="Job/late")
    served.change(lambda live: live.fleet.set_pod("default/late-0", late))
    expect(page.get_by_role("table", name="1 job on n-3")).to_contain_text("late")
    page.keyboard.press("Escape")
    expect(page.get_by_role("table", name="1 job on n-0")).to_contain_text("a")


def test_a_state_is_found_at_a_moment_that_is_past(page: Page, served: ServedFleet) -> None:
    page.wait_for_timeout(600)
    served.change(lambda live: live.fleet.set_node("n-3", node("n-3", rack="r1", faults=("xid79",))))
    page.locator("#find").fill("xid79")
    expect(page.locator("#found")).to_have_text("1 found")
    page.get_by_role("slider", name="Moment").focus()
    page.keyboard.press("Home")
    until(page, "kumulus.lately().past !== null")
    expect(page.locator("#found")).to_have_text("0 found")
    page.keyboard.press("End")
    expect(page.locator("#found")).to_have_text("1 found")


def test_hostile_jobs_and_queues_do_no_harm(page: Page, served: ServedFleet) -> None:
    found = replace(pod(HOSTILE, ""), phase="Pending", reasons=(HOSTILE,), job=f"Job/{HOSTILE}", queue=HOSTILE)
    served.change(lambda live: live.fleet.set_pod(f"default/{HOSTILE}", found))
    expect(page.get_by_role("table", name="2 jobs")).to_be_visible()
    page.locator(".jobs tbody button").nth(1).click()
    expect(page.locator(".chosen")).to_be_visible()
    assert page.title() == "test · Kumulus"
    assert page.evaluate("document.images.length") == 0
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


@pytest.mark.parametrize("nodes", [0, 1])
def test_a_small_fleet_without_pods_says_so(browser: Browser, nodes: int) -> None:
    def fill(found: Fleet) -> None:
        for index in range(nodes):
            found.set_node(f"n-{index}", node(f"n-{index}"))

    with ServedFleet(fill) as served, browser.new_context() as context:
        page = context.new_page()
        page.goto(served.address)
        expect(page.locator("#headline")).to_contain_text(f"{nodes} node{'' if nodes == 1 else 's'}")
        expect(page.locator("#phases")).to_contain_text("no pods yet")
        expect(page.locator("#jobs")).to_contain_text("No jobs yet")


def test_it_fits_a_phone(browser: Browser, served: ServedFleet) -> None:
    with visiting(browser, served, viewport={"width": 390, "height": 800}) as page:
        until(page, "kumulus.lately().all !== null")
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        # Words stand in lines, not letter below letter.
        for row in page.locator("#sums tbody tr").all():
            box = row.bounding_box()
            assert box is not None
            assert box["height"] < 70


def test_a_job_is_chosen_and_left_by_keys(page: Page) -> None:
    # The history is there a moment before its rows are drawn: who presses Tab at once is past them.
    expect(page.get_by_role("row", name="a team")).to_be_visible()
    page.get_by_role("searchbox", name="Find jobs").focus()
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.dataset.job") is not None:
            break
    else:
        raise AssertionError("no press of Tab came to the job")
    page.keyboard.press("Enter")
    expect(page.locator(".chosen")).to_contain_text("Racks: r0 (1)")
    expect(page.locator("#says")).to_contain_text("Job a: partly, 1 of 2 pods placed")
    page.keyboard.press("Enter")
    expect(page.locator(".chosen")).to_be_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_rules_of_accessibility_hold_beside_jobs_queues_and_what_is_wrong(
    browser: Browser, served: ServedFleet, scheme: Literal["light", "dark"], width: int
) -> None:
    with visiting(browser, served, color_scheme=scheme, viewport={"width": width, "height": 800}) as page:
        page.get_by_role("button", name="a", exact=True).click()
        expect(page.locator(".chosen")).to_be_visible()
        expect(page.locator(".queues")).to_be_visible()
        served.change(lambda live: setattr(live, "lost", Unreachable("https://127.0.0.1:1", "connection refused")))
        expect(page.get_by_role("alert")).to_contain_text("connection refused")
        found = Axe().run(page)
        assert found.violations_count == 0, found.generate_report()


def test_it_prints_without_what_only_a_screen_can_use(page: Page) -> None:
    page.emulate_media(media="print")
    expect(page.get_by_role("button", name="Now")).to_be_hidden()
    expect(page.locator("#controls")).to_be_hidden()
    for part in ("#headline", "#map", ".jobs table"):
        expect(page.locator(part).first).to_be_visible()
    assert page.pdf()[:4] == b"%PDF"


def test_forty_thousand_nodes_and_their_jobs_are_there_whole(browser: Browser) -> None:
    """Not how fast: that is measured, since nothing of these machines can be relied on."""
    with (
        ServedFleet(lambda found: large(found, 40_000)) as served,
        visiting(browser, served, viewport={"width": 1440, "height": 1000}) as page,
    ):
        until(page, "kumulus.lately().all !== null")
        assert page.evaluate("kumulus.cells().cells.length") == 40_000
        assert page.evaluate("kumulus.cells().size") >= 3
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        expect(page.locator("#headline")).to_contain_text("40,000 nodes")
        # Each cell is painted, the last one as well: none lies below what a canvas can be.
        colours = page.evaluate(
            """() => { const { cells, size } = kumulus.cells(), canvas = document.getElementById("canvas");
            const scale = canvas.width / canvas.clientWidth, { x, y } = cells[cells.length - 1];
            const [left, top] = [x, y].map((at) => (at + size / 2) * scale);
            return [...canvas.getContext("2d").getImageData(left, top, 1, 1).data]; }"""
        )
        assert colours[3] == 255
        page.get_by_role("radio", name="Table").check()
        expect(page.get_by_role("table", name="40,000 nodes")).to_be_visible()
        page.locator("#find").fill("h200-use3-4443")
        expect(page.locator("#found")).to_have_text("1 found")


def test_without_leave_there_is_nothing_to_change(page: Page) -> None:
    expect(page.locator("#changes")).to_be_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_change_is_said_before_it_is_done(browser: Browser, scheme: Literal["light", "dark"]) -> None:
    with ServedFleet(fleet) as served:
        served.page._changes = ClusterChanges(served.live, NOBODY)
        with visiting(browser, served, color_scheme=scheme) as page:
            section = page.locator("#changes")
            expect(section).to_be_visible()
            page.get_by_role("button", name="What would it do?").click()
            expect(section).to_contain_text("no nodes are chosen; open one, or find some")
            page.locator("#find").fill("r0")
            page.get_by_role("button", name="What would it do?").click()
            expect(section).to_contain_text("This would cordon 2 nodes (n-0, n-1): they take no new pods")
            assert Axe().run(page).violations_count == 0
            page.get_by_role("button", name="Do it on 2 nodes").click()
            # There is no cluster behind this fleet.
            expect(section).to_contain_text(re.compile("refused|answer"))
            expect(page.get_by_role("button", name="Do it on 2 nodes")).to_be_hidden()
