"""The page in a real Chromium: what it draws, by which keys it is used, and what a screen reader finds."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from statistics import median
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Route, expect

from kumulus.extras.watch.live.model import Fleet
from kumulus.kube import Unreachable
from tests.support.browser import until
from tests.support.fleets import WHOLE, large, node, pod
from tests.support.pages import ServedFleet

pytestmark = pytest.mark.browser

MANY = 10_000
WORDS = "Arrow keys move from node to node"
expect.set_options(timeout=15_000)


def racks(fleet: Fleet) -> None:
    """Three racks of four nodes in two zones; some are not well."""
    for index in range(12):
        zone = "use1" if index < 8 else "use2"
        fleet.set_node(f"h100-{index}", node(f"h100-{index}", zone, rack=f"h100-r{index // 4}"))
    fleet.set_node("h100-1", node("h100-1", rack="h100-r0", faults=("xid79",), allocatable=WHOLE._replace(gpus=7)))
    fleet.set_node("h100-2", node("h100-2", rack="h100-r0", ready="Unknown"))
    fleet.set_node("h100-3", node("h100-3", rack="h100-r0", cordoned=True, conditions=()))
    fleet.set_pod("default/train-0", pod("train-0", "h100-0", 8))
    fleet.set_pod("default/wait", replace(pod("wait", ""), phase="Pending", reasons=("Insufficient nvidia.com/gpu",)))


@pytest.fixture
def served() -> Iterator[ServedFleet]:
    with ServedFleet(racks) as found:
        yield found


@pytest.fixture
def page(browser: Browser, served: ServedFleet) -> Iterator[Page]:
    with visiting(browser, served) as found:
        yield found


@contextmanager
def visiting(browser: Browser, served: ServedFleet, **options: Any) -> Iterator[Page]:
    """The page once it shows the fleet; it must not fail meanwhile, nor ask anybody else for anything."""
    address, complaints = served.address, []
    with browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options}) as context:
        found = context.new_page()
        # Told at the end: an exception in a handler would end the connection to the browser.
        found.on("pageerror", lambda error: complaints.append(f"the page failed: {error}"))
        found.on(
            "request", lambda request: complaints.append(request.url) if not request.url.startswith(address) else None
        )
        found.goto(address)
        until(found, "globalThis.kumulus?.cells().cells.length > 0")
        yield found
    assert [each for each in complaints if not each.startswith((address, "data:"))] == []


def cell(page: Page, name: str) -> dict[str, float]:
    """A place in a node on the canvas, beside its middle, through which marks go."""
    found = page.evaluate("name => kumulus.cells().cells.find((cell) => cell.name === name)", name)
    size = page.evaluate("kumulus.cells().size")
    return {"x": found["x"] + size / 2 - 3, "y": found["y"] + size / 2 - 8}


def pixel(page: Page, name: str) -> list[int]:
    """The colour of a node on the canvas."""
    script = """([x, y]) => { const scale = devicePixelRatio;
      return [...canvas.getContext("2d").getImageData(x * scale, y * scale, 1, 1).data] }"""
    place = cell(page, name)
    found: list[int] = page.evaluate(script, [place["x"], place["y"]])
    return found


def says(page: Page, text: str) -> None:
    expect(page.locator("#says")).to_contain_text(text)


def test_the_map_shows_each_node_and_follows_the_fleet(page: Page, served: ServedFleet) -> None:
    expect(page.locator("#headline")).to_have_text(
        re.compile(r"12 nodes \(9 ready, 1 cordoned, 1 faulted, 1 not ready\)")
    )
    assert page.evaluate("kumulus.nodes()") == 12
    free, full = pixel(page, "h100-5"), pixel(page, "h100-0")
    assert free != full
    served.change(lambda live: live.fleet.set_pod("default/new", pod("new", "h100-5", 8)))
    wait_until(page, lambda: pixel(page, "h100-5") == full)
    served.change(lambda live: live.fleet.set_node("h100-11", None))
    until(page, "kumulus.cells().cells.length === 11")
    page.get_by_role("radio", name="Condition").check()
    wait_until(page, lambda: len({tuple(pixel(page, f"h100-{index}")) for index in (1, 2, 3, 4)}) == 4)


def test_until_the_fleet_is_there_the_page_says_that_it_loads(browser: Browser, served: ServedFleet) -> None:
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    with browser.new_context() as context:
        page = context.new_page()
        page.route("**/events", hold)
        page.goto(served.address)
        expect(page.locator("#headline")).to_have_text("Loading the fleet …")
        for part in ("#sums", "#controls", "#stage"):
            expect(page.locator(part)).to_be_hidden()
        while not held:
            page.wait_for_timeout(50)
        held[0].continue_()
        expect(page.locator("#headline")).to_contain_text("12 nodes")
        for part in ("#sums", "#controls", "#stage"):
            expect(page.locator(part)).to_be_visible()


def wait_until(page: Page, holds: Any) -> None:
    for _ in range(200):
        if holds():
            return
        page.wait_for_timeout(100)
    raise AssertionError("the page did not come to show it")


def test_a_pointer_over_a_node_shows_its_pods_and_a_click_opens_it(page: Page, served: ServedFleet) -> None:
    page.hover("#canvas", position=cell(page, "h100-0"))  # type: ignore[arg-type]
    tip = page.get_by_role("tooltip")
    expect(tip).to_contain_text("h100-0: ready, 8 of 8 GPUs allocated, 1 pod")
    expect(tip).to_contain_text("default/train-0 · Running · 8 GPUs")
    page.click("#canvas", position=cell(page, "h100-1"))  # type: ignore[arg-type]
    panel = page.get_by_role("complementary", name="h100-1")
    expect(panel).to_contain_text("xid79")
    expect(panel).to_contain_text("No pods bound to it")
    served.change(lambda live: live.fleet.set_pod("default/late", pod("late", "h100-1", 2)))
    expect(panel.get_by_role("row", name="default/late Running 2 Job/train")).to_be_visible()
    served.change(lambda live: live.fleet.set_node("h100-1", None))
    expect(panel).to_contain_text("This node is gone.")


def test_everything_can_be_done_by_keys(page: Page) -> None:
    stops = []
    for _ in range(8):
        page.keyboard.press("Tab")
        stops.append(
            page.evaluate(
                "document.activeElement.id || document.activeElement.value || document.activeElement.className"
            )
        )
        if stops[-1] == "canvas":
            break
    assert stops == ["skip", "map", "allocation", "find", "canvas"]
    says(page, "h100-0: ready, 8 of 8 GPUs allocated, 1 pod; zone use1, rack h100-r0")
    page.keyboard.press("ArrowRight")
    says(page, "h100-1: faulted (xid79), 0 of 7 GPUs allocated")
    page.keyboard.press("ArrowDown")
    says(page, "h100-3: cordoned")
    page.keyboard.press("ArrowUp")
    says(page, "h100-1")
    page.keyboard.press("PageDown")
    says(page, "h100-8: ready, 0 of 8 GPUs allocated, 0 pods; zone use2")
    page.keyboard.press("End")
    says(page, "h100-11")
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    expect(page.get_by_role("complementary", name="h100-0")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#node")).to_be_hidden()
    expect(page.locator("#canvas")).to_be_focused()


def test_the_table_says_what_the_map_shows(page: Page) -> None:
    page.get_by_role("radio", name="Table").check()
    table = page.get_by_role("table", name="12 nodes")
    expect(table.get_by_role("row")).to_have_count(13)
    table.get_by_role("button", name="GPUs").click()
    table.get_by_role("button", name="GPUs").click()
    expect(table.get_by_role("columnheader", name="GPUs")).to_have_attribute("aria-sort", "descending")
    expect(table.get_by_role("row").nth(1)).to_contain_text("h100-0")
    page.locator("#find").fill("use2 h100-r2")
    expect(page.get_by_role("table", name="4 nodes", exact=True).get_by_role("row")).to_have_count(5)
    expect(page.locator("#found")).to_have_text("4 found")
    page.get_by_role("button", name="h100-9").click()
    expect(page.get_by_role("complementary", name="h100-9")).to_be_focused()


def test_what_is_found_is_what_matches_now(page: Page, served: ServedFleet) -> None:
    page.locator("#find").fill("faulted")
    expect(page.locator("#found")).to_have_text("1 found")
    ill = node("h100-0", rack="h100-r0", faults=("xid79",), allocatable=WHOLE._replace(gpus=7))
    served.change(lambda live: live.fleet.set_node("h100-0", ill))
    expect(page.locator("#found")).to_have_text("2 found")
    served.change(lambda live: live.fleet.set_node("h100-1", None))
    expect(page.locator("#found")).to_have_text("1 found")


def test_a_screen_reader_finds_names_and_roles(page: Page) -> None:
    tree = page.locator("body").aria_snapshot()
    for part in (
        '- heading "test" [level=1]',
        '- region "Sums"',
        '- table "Allocation by GPU product"',
        '- row "NVIDIA-H100-80GB-HBM3 12 8 of 95 GPUs 8 %"',
        '- list "Why pods are pending"',
        "1 × Insufficient nvidia.com/gpu",
        '- radio "Map" [checked]',
        '- searchbox "Find"',
        '- application "Fleet map, 12 nodes',
        WORDS,
    ):
        assert part in tree, f"{part} is not in:\n{tree}"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_rules_of_accessibility_hold(browser: Browser, served: ServedFleet, scheme: Any) -> None:
    with visiting(browser, served, color_scheme=scheme) as page:
        page.click("#canvas", position=cell(page, "h100-0"))  # type: ignore[arg-type]
        expect(page.locator("#node")).to_be_visible()
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert background == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 24, 29)"}[scheme]
        for view in ("Map", "Table"):
            page.get_by_role("radio", name=view).check()
            found = Axe().run(page)
            assert found.violations_count == 0, found.generate_report()


def test_what_a_cluster_says_is_shown_as_text(page: Page, served: ServedFleet) -> None:
    hostile = "<img src=x onerror=document.title='taken'>"
    served.change(lambda live: live.fleet.set_node("h100-4", node("h100-4", zone=hostile, taints=(hostile,))))
    expect(page.get_by_role("rowheader", name=hostile)).to_be_visible()
    page.get_by_role("radio", name="Table").check()
    page.get_by_role("button", name="h100-4").click()
    expect(page.locator("#node")).to_contain_text(hostile)
    assert page.title() == "test · Kumulus"


def test_a_lost_cluster_and_a_server_that_ended_are_told(page: Page, served: ServedFleet) -> None:
    def lose(live: Any) -> None:
        live.lost = Unreachable("https://127.0.0.1:1", "connection refused")

    served.change(lose)
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("connection refused")
    expect(alert).to_contain_text("pulumi up -s test --refresh")
    served.change(lambda live: setattr(live, "lost", None))
    expect(alert).to_be_hidden()
    served.stop()
    expect(alert).to_contain_text("This page's server does not answer. Run `kumulus ui` again")
    assert page.evaluate("kumulus.nodes()") == 12


def test_ten_thousand_nodes_are_drawn_whole_and_quickly(browser: Browser) -> None:
    with (
        ServedFleet(lambda fleet: large(fleet, MANY)) as served,
        visiting(browser, served, viewport={"width": 1440, "height": 1000}) as page,
    ):
        assert page.evaluate("kumulus.cells().cells.length") == MANY
        assert page.evaluate("kumulus.cells().size") >= 5
        overflow = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert overflow <= 0
        for _ in range(5):
            page.evaluate("kumulus.repaint()")
            page.wait_for_timeout(100)
        # 6 ms on a machine that has nothing else to do; a tenth of a second is what nobody calls slow.
        assert median(page.evaluate("kumulus.paints()")) < 100
