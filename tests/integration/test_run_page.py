"""The page of recorded runs in a real Chromium, as the file that `kumulus experiment show --html` writes."""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from benchmarks import run_pages
from kumulus.extras.lab.extender.column import PolicyColumn
from kumulus.extras.lab.report.why import explained
from kumulus.extras.schedulers.decisions.document import Decision, ScoredNode
from kumulus.extras.watch.console import bundle
from kumulus.extras.watch.history.document import History, Sort
from kumulus.extras.watch.history.recorder import Facts, Figures, JobKey, Recorder
from kumulus.extras.watch.live.admission import (
    AdmissionRule,
    AdmissionShape,
    Alternative,
    Nature,
    NodeTaint,
    Requirement,
)
from tests.support.browser import until
from tests.support.fleets import node, pod
from tests.support.histories import drawn, read_at

pytestmark = pytest.mark.browser
expect.set_options(timeout=15_000)
HOSTILE = "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"
BACKWARDS = "\u202egnp.exe\u2066"
LONG = "x" * 10_000


def story() -> History:
    """Two jobs: one runs whole on a rack, the other has one of its two pods until the rack's fault is over."""
    recorder = Recorder({"title": "story", "scheduler": "default", "run": "20261122-1"})
    for index in range(8):
        recorder.node(f"n-{index}", node(f"n-{index}", rack=f"r{index // 4}"), 0)
    whole, partly = JobKey("whole", "Job", "train"), JobKey("partly", "Job", "train")
    recorder.job(whole, Facts(2, "team-a", 100), 0)
    recorder.job(partly, Facts(2, "team-b", 0), 0)
    recorder.queue("team-a", "ClusterQueue", Figures({"nvidia.com/gpu": "64"}, {"nvidia.com/gpu": "16"}, 0, 1), 0)
    waits: dict[str, Any] = {"phase": "Pending", "reasons": ("Insufficient nvidia.com/gpu",)}
    for job, name in ((whole, "w-0"), (whole, "w-1"), (partly, "p-0"), (partly, "p-1")):
        recorder.pod(f"default/{name}", replace(pod(name, "", 8), **waits), job, 1000)
    for number, (job, name) in enumerate(((whole, "w-0"), (whole, "w-1"), (partly, "p-0"))):
        recorder.pod(f"default/{name}", pod(name, f"n-{number}", 8), job, 2000)
    recorder.happened("rack r1 is gone", Sort.FAULT, 5000)
    for index in range(4, 8):
        recorder.node(f"n-{index}", None, 5000)
    recorder.pod("default/p-1", pod("p-1", "n-3", 8), partly, 8000)
    recorder.pod("default/w-0", replace(pod("w-0", "n-0", 8), disrupted="PreemptionByScheduler"), whole, 9000)
    recorder.pod("default/w-0", None, whole, 9500)
    recorder.history.end = 10_000
    return recorder.history


@contextmanager
def visiting(
    browser: Browser,
    folder: Path,
    histories: Sequence[History],
    reasons: Sequence[bundle.Reasons] = (),
    **options: Any,
) -> Iterator[Page]:
    """The page once it shows the run; it must not fail meanwhile, nor ask anybody for anything."""
    file = folder / "run.html"
    file.write_text(bundle.page(histories, reasons), encoding="utf-8")
    complaints: list[str] = []
    with browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options}) as context:
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(f"the page failed: {error}"))
        page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
        page.on("request", lambda request: complaints.append(request.url))
        page.goto(file.as_uri())
        until(page, "globalThis.kumulus?.line() !== undefined")
        yield page
    assert [each for each in complaints if each not in (file.as_uri(), "data:,")] == []


def seek(page: Page, at: int) -> None:
    page.evaluate("at => kumulus.seek(at)", at)


def test_what_the_page_says_at_two_hundred_moments_is_what_the_events_say(browser: Browser, tmp_path: Path) -> None:
    draw = random.Random(20)
    for seed in range(2):
        history = drawn(seed)
        plain = history.to_plain()
        with visiting(browser, tmp_path, [history]) as page:
            for at in [0, history.end, *(draw.randrange(history.end) for _ in range(98))]:
                seek(page, at)
                said = page.evaluate("kumulus.plain()")
                read = read_at(plain, at, rooms=True)
                read["pods"] = {str(status): count for status, count in read["pods"].items()}
                for part in ("nodes", "jobs", "queues", "pods", "has", "taken"):
                    assert said[part] == read[part], (seed, at, part)


@pytest.mark.parametrize("name", sorted(run_pages.PICTURES))
def test_of_the_real_runs_in_the_docs_the_page_says_what_their_events_say(
    browser: Browser, tmp_path: Path, name: str
) -> None:
    draw, runs = random.Random(name), run_pages.histories(name)
    with visiting(browser, tmp_path, runs) as page:
        for side, history in enumerate(runs):
            plain = history.to_plain()
            for at in [0, history.end, draw.randrange(history.end)]:
                seek(page, at)
                said = page.evaluate("side => kumulus.plain(side)", side)
                read = read_at(plain, at)
                read["pods"] = {str(status): count for status, count in read["pods"].items()}
                for job in said["jobs"].values():
                    # Where pods may go is drawn for the test above; of real runs nothing else reads it.
                    del job["room"]
                for part in ("nodes", "jobs", "queues", "pods", "has", "taken"):
                    assert said[part] == read[part], (side, at, part)


def test_a_run_is_told_moment_by_moment(browser: Browser, tmp_path: Path) -> None:
    with visiting(browser, tmp_path, [story()]) as page:
        expect(page.locator("h1")).to_have_text("story")
        seek(page, 0)
        expect(page.locator(".sums")).to_contain_text(
            "8 nodes (8 ready) · 0 of 64 GPUs allocated (0 %) · pods: no pods yet"
        )
        seek(page, 6000)
        expect(page.locator(".sums")).to_contain_text(
            "4 nodes (4 ready) · 24 of 32 GPUs allocated (75 %) · pods: 1 waiting"
        )
        expect(page.get_by_role("row", name="partly team-b")).to_contain_text("1 of 2")
        seek(page, 10_000)
        expect(page.get_by_role("row", name="partly team-b")).to_contain_text("2 of 2")
        expect(page.locator(".queues")).to_contain_text("ClusterQueue: nvidia.com/gpu 16 of 64")
        seek(page, 5500)
        expect(page.locator(".events")).to_contain_text("fault: rack r1 is gone")


def test_what_two_runs_have_in_common_is_said_once(browser: Browser, tmp_path: Path) -> None:
    with visiting(browser, tmp_path, [story(), story()]) as page:
        expect(page.locator("h1")).to_have_text("story")
        expect(page.locator("#headline")).to_have_text("A and B: 8 nodes, 4 pods, 2 jobs")
    with visiting(browser, tmp_path, [story(), drawn(0)]) as page:
        expect(page.locator("h1")).to_have_text("story and drawn 0")
        expect(page.locator("#headline")).to_contain_text("A: 8 nodes, 4 pods, 2 jobs · B: 40 nodes")


def test_the_legend_has_nodes_that_are_not_there_where_any_come_or_go(browser: Browser, tmp_path: Path) -> None:
    still = Recorder({"title": "still", "scheduler": "default"})
    still.node("n", node("n"), 0)
    still.node("n", node("n", cordoned=True), 1000)
    still.history.end = 2000
    for history, shown in ((still.history, 0), (story(), 1)):
        with visiting(browser, tmp_path, [history]) as page:
            expect(page.locator("#legend li", has_text="not there")).to_have_count(shown)


def test_a_queue_has_the_gpus_of_all_pods_that_hold_some(browser: Browser, tmp_path: Path) -> None:
    """A launcher without GPUs comes first, and one of eight workers waits."""
    recorder, job = Recorder({"title": "launched", "scheduler": "default"}), JobKey("mpi", "JobSet", "train")
    recorder.job(job, Facts(9, "team", 0), 0)
    for index in range(8):
        recorder.node(f"n-{index}", node(f"n-{index}"), 0)
    recorder.pod("default/launcher", pod("launcher", "n-0", 0), job, 1000)
    for index in range(7):
        recorder.pod(f"default/w-{index}", pod(f"w-{index}", f"n-{index}", 8), job, 2000)
    recorder.pod("default/w-7", replace(pod("w-7", "", 8), phase="Pending"), job, 2000)
    recorder.history.end = 3000
    with visiting(browser, tmp_path, [recorder.history]) as page:
        cells = page.locator(".queues tbody tr").locator("th, td")
        for at, gpus in ((3000, "56"), (1500, "0"), (2500, "56")):
            seek(page, at)
            expect(cells.nth(3)).to_have_text(gpus)


def test_the_page_opens_when_the_most_pods_had_a_node_with_a_line_of_result(browser: Browser, tmp_path: Path) -> None:
    with visiting(browser, tmp_path, [story()]) as page:
        assert page.evaluate("kumulus.line().at") == 9499
        expect(page.locator(".result")).to_have_text(
            "Result: 100 % of the GPUs allocated at 0:09.5, 4 of 4 pods had a node, 2 of 2 jobs whole"
        )
        expect(page.locator(".sums")).to_contain_text("32 of 32 GPUs allocated (100 %)")


def test_a_run_of_which_not_all_was_heard_says_so(browser: Browser, tmp_path: Path) -> None:
    history = story()
    history.about["unheard"] = ["the client stood still for 3.10 s", "a time is not known of 41 pods"]
    with visiting(browser, tmp_path, [history]) as page:
        expect(page.locator(".result")).to_contain_text(
            "2 of 2 jobs whole. Times are as they were heard, and not all was heard in time: "
            "the client stood still for 3.10 s; a time is not known of 41 pods"
        )


def test_columns_in_which_no_job_has_anything_are_not_shown(browser: Browser, tmp_path: Path) -> None:
    recorder = Recorder({"title": "plain", "scheduler": "default"})
    recorder.node("n", node("n"), 0)
    recorder.job(JobKey("alone", "Job", "train"), Facts(1, "", 0), 0)
    recorder.pod("default/a", pod("a", "n", 8), JobKey("alone", "Job", "train"), 1000)
    recorder.history.end = 2000
    for history, shown in ((recorder.history, False), (story(), True)):
        with visiting(browser, tmp_path, [history]) as page:
            heads = page.locator(".jobs .wide thead th")
            expect(heads.filter(has_text="Job")).to_be_visible()
            for name in ("Queue", "Priority"):
                expect(heads.filter(has_text=name)).to_be_visible(visible=shown)


def test_a_link_opens_the_page_at_a_moment(browser: Browser, tmp_path: Path) -> None:
    with visiting(browser, tmp_path, [story()]) as page:
        page.evaluate("location.hash = '#t=6s'")
        until(page, "kumulus.line().at === 6000")
        page.reload()
        until(page, "globalThis.kumulus?.line().at === 6000")
        expect(page.locator(".sums")).to_contain_text("24 of 32 GPUs allocated (75 %)")
        page.get_by_role("slider", name="Moment").press("End")
        until(page, "location.hash === '#t=10.0s'")


def test_a_chosen_job_lights_its_nodes_and_names_racks_and_reasons(browser: Browser, tmp_path: Path) -> None:
    with visiting(browser, tmp_path, [story()]) as page:
        seek(page, 4000)
        page.get_by_role("button", name="partly").click()
        chosen = page.locator(".chosen")
        expect(chosen).to_contain_text("Job partly: partly, 1 of 2 pods placed, priority 0, queue team-b")
        expect(chosen).to_contain_text("Racks: r0 (1)")
        expect(chosen).to_contain_text("1 × Insufficient nvidia.com/gpu")
        assert page.evaluate("[...kumulus.map().lit]") == ["n-2"]
        assert sorted(page.evaluate("[...kumulus.map().room]")) == ["n-3", "n-4", "n-5", "n-6", "n-7"]
        assert page.evaluate("[...kumulus.map().free]") == []
        page.get_by_role("button", name="All jobs").click()
        assert page.evaluate("kumulus.map().lit") is None


def test_what_would_have_to_be_free_is_marked_where_the_pod_may_go(browser: Browser, tmp_path: Path) -> None:
    """Of four racks one is of another kind, one is tainted, and the other two are partly taken."""
    recorder = Recorder({"title": "choosy", "scheduler": "default"})
    taints = {2: (NodeTaint("gpu", "", "NoSchedule"),)}
    for rack in range(4):
        kind = "slow" if rack == 3 else "fast"
        nature = Nature((("kind", kind),), taints.get(rack, ()), (("nvidia.com/gpu", 8000),))
        for index in range(2):
            recorder.node(f"r{rack}-{index}", node(f"r{rack}-{index}", rack=f"r{rack}", nature=nature), 0)
    other, gang = JobKey("other", "Job", "train"), JobKey("gang", "Job", "train")
    for name, gpus in {"r0-0": 8, "r0-1": 6, "r1-0": 2}.items():
        recorder.pod(f"default/other-{name}", pod(f"other-{name}", name, gpus), other, 0)
    shape = AdmissionShape((Requirement("kind", "In", ("fast",)),), devices=(("nvidia.com/gpu", 4000),))
    rule = AdmissionRule((Alternative(shape),), ("pod affinity",))
    for index in range(5):
        waits: dict[str, Any] = {"phase": "Pending", "reasons": ("Insufficient nvidia.com/gpu",), "rule": rule}
        recorder.pod(f"default/gang-{index}", replace(pod(f"gang-{index}", "", 4), **waits), gang, 1000)
    recorder.history.end = 2000
    with visiting(browser, tmp_path, [recorder.history]) as page:
        seek(page, 1500)
        page.get_by_role("button", name="gang").click()
        chosen = page.locator(".chosen")
        expect(chosen).to_contain_text(
            "5 pods more of 4 GPUs + 4 cores + 64 GiB memory each: 4 of 8 nodes may take one by selectors, affinity, "
            "taints and devices; not looked at: pod affinity"
        )
        expect(chosen).to_contain_text("free now: 2 nodes with room for 3 (ringed)")
        expect(chosen).to_contain_text(
            "for the other 2, the least that would have to be free (dashed): r0-1 2 GPUs, r1-0 2 GPUs"
        )
        assert page.evaluate("[...kumulus.map().room]") == ["r1-0", "r1-1"]
        assert page.evaluate("[...kumulus.map().free]") == ["r0-1", "r1-0"]


DECISIONS = {
    "default/w-0": Decision(
        "default/w-0",
        "n-0",
        evaluated=8,
        feasible=6,
        chosen=ScoredNode("n-0", 190, {"NodeResourcesFit": 90, "TaintToleration": 100}),
        equal=1,
        next=ScoredNode("n-5", 150, {"NodeResourcesFit": 50, "TaintToleration": 100}),
        passed=6,
        filters={"NodeUnschedulable": 1, "NodeResourcesFit": 1},
    ),
    "default/w-1": Decision("default/w-1", "n-1", evaluated=8, feasible=1, passed=1, filters={"NodeAffinity": 7}),
    "elsewhere/x": Decision("elsewhere/x", "n-1", evaluated=8, feasible=1),
}


def test_of_a_chosen_pod_the_page_says_what_the_command_says(browser: Browser, tmp_path: Path) -> None:
    column = PolicyColumn("default/w-0", "FGD", False, 6, 5, "n-0", 47.0, 2, 1, "n-3", 50.0)
    reasons = {pod: explained(each, column if pod == column.pod else None) for pod, each in DECISIONS.items()}
    with visiting(browser, tmp_path, [story()], [reasons]) as page:
        seek(page, 4000)
        why = page.locator(".why")
        expect(why).to_be_hidden()
        page.get_by_role("button", name="whole").click()
        text = why.locator("pre")
        assert text.text_content() == "\n".join(reasons["default/w-0"])
        expect(text).to_contain_text("refused by      NodeUnschedulable 1, NodeResourcesFit 1")
        expect(text).to_contain_text("FGD, which looks on: 2 of 5 nodes have a higher score")
        page.get_by_label("Why here?").first.select_option("w-1")
        assert text.text_content() == "\n".join(reasons["default/w-1"])
        seek(page, 4100)
        assert text.text_content() == "\n".join(reasons["default/w-1"]), "the pod stays chosen"
        page.get_by_role("button", name="partly").click()
        expect(why).to_be_hidden()
        assert "elsewhere/x" not in page.content(), "what is of another repetition is not on the page"
        page.get_by_role("button", name="whole").click()
        seek(page, 1500)
        expect(why).to_be_hidden()


def test_nodes_name_their_jobs(browser: Browser, tmp_path: Path) -> None:
    with visiting(browser, tmp_path, [story()]) as page:
        seek(page, 4000)
        page.locator("#find").fill("n-0")
        expect(page.get_by_role("table", name="1 job on n-0")).to_contain_text("whole")
        page.locator("#find").fill("")
        expect(page.get_by_role("table", name="2 jobs")).to_be_visible()


def test_of_found_nodes_the_jobs_are_those_of_the_moment(browser: Browser, tmp_path: Path) -> None:
    with visiting(browser, tmp_path, [story()]) as page:
        seek(page, 0)
        page.locator("#find").fill("n-0")
        expect(page.get_by_role("table", name="0 jobs on n-0")).to_be_visible()
        seek(page, 4000)
        expect(page.get_by_role("table", name="1 job on n-0")).to_contain_text("whole")


def test_time_is_moved_by_keys_and_plays_to_its_end(browser: Browser, tmp_path: Path) -> None:
    with visiting(browser, tmp_path, [story()]) as page:
        page.get_by_role("slider", name="Moment").focus()
        page.keyboard.press("End")
        until(page, "kumulus.line().at === 10000")
        page.keyboard.press("Home")
        until(page, "kumulus.line().at === 0")
        expect(page.get_by_role("slider")).to_have_attribute("aria-valuetext", "0:00.0")
        page.get_by_label("Speed").select_option("100")
        page.get_by_role("button", name="Play").click()
        until(page, "kumulus.line().at === 10000 && !kumulus.line().playing")


def test_two_runs_stand_side_by_side_at_the_same_moment(browser: Browser, tmp_path: Path) -> None:
    one, other = story(), drawn(3)
    with visiting(browser, tmp_path, [one, other]) as page:
        seek(page, 6000)
        for side, history in enumerate((one, other)):
            assert (
                page.evaluate("side => kumulus.plain(side)", side)["taken"]
                == read_at(history.to_plain(), 6000)["taken"]
            )
        boxes = [page.locator(".side").nth(index).bounding_box() for index in range(2)]
        assert boxes[0] is not None
        assert boxes[1] is not None
        assert boxes[1]["x"] >= boxes[0]["x"] + boxes[0]["width"]
        assert boxes[0]["y"] == boxes[1]["y"]
        assert page.evaluate("kumulus.line().end") == max(one.end, other.end)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_rules_of_accessibility_hold_where_it_says_why(browser: Browser, tmp_path: Path, scheme: Any) -> None:
    reasons = {pod: explained(each) for pod, each in DECISIONS.items()}
    with visiting(browser, tmp_path, [story(), story()], [reasons, reasons], color_scheme=scheme) as page:
        seek(page, 4000)
        page.evaluate("kumulus.choose('whole')")
        page.evaluate("kumulus.choose('whole', 1)")
        expect(page.locator(".why pre")).to_have_count(2)
        found = Axe().run(page)
        assert found.violations_count == 0, found.generate_report()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_rules_of_accessibility_hold(browser: Browser, tmp_path: Path, scheme: Any) -> None:
    with visiting(browser, tmp_path, [story(), drawn(1)], color_scheme=scheme) as page:
        seek(page, 4000)
        page.evaluate("kumulus.choose('partly')")
        page.locator("canvas[role=application]").first.focus()
        page.keyboard.press("Enter")
        # The page's own policy is in the way of the checker's script, and is not what is checked here.
        found = Axe().run(page)
        assert found.violations_count == 0, found.generate_report()


@pytest.mark.parametrize("text", [HOSTILE, BACKWARDS, LONG], ids=["markup", "right to left", "long"])
def test_hostile_reasons_do_no_harm(browser: Browser, tmp_path: Path, text: str) -> None:
    recorder = Recorder({"title": "story", "scheduler": "default"})
    recorder.node("n", node("n"), 0)
    recorder.pod(f"default/{text}", pod(text, "n"), JobKey("j", "Job", "w"), 1)
    recorder.history.end = 10
    with visiting(browser, tmp_path, [recorder.history], [{f"default/{text}": [text, f"  {text}"]}]) as page:
        seek(page, 5)
        page.evaluate("kumulus.choose('j')")
        expect(page.locator(".why pre")).to_be_visible()
        assert page.locator(".why pre").text_content() == f"{text}\n  {text}"
        assert page.title().endswith(" · Kumulus")
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        assert page.evaluate("document.documentElement.scrollHeight") < 5000


@pytest.mark.parametrize("text", [HOSTILE, BACKWARDS, LONG], ids=["markup", "right to left", "long"])
def test_hostile_names_do_no_harm(browser: Browser, tmp_path: Path, text: str) -> None:
    recorder = Recorder({"title": text, "scheduler": text, "run": text, "description": text})
    recorder.node(text, node(text, text, text, rack=text, product=text, faults=(text,)), 0)
    job = JobKey(text, text, text)
    recorder.job(job, Facts(2, text, 0, text), 0)
    recorder.queue(text, text, Figures({text: text}, {text: text}, 1, 1), 0)
    recorder.pod(f"default/{text}", pod(text, text), job, 1)
    recorder.pod(f"default/1{text}", replace(pod(text, ""), phase="Pending", reasons=(text,)), job, 1)
    recorder.happened(text, Sort.FAULT, 2)
    recorder.history.end = 10
    with visiting(browser, tmp_path, [recorder.history]) as page:
        seek(page, 5)
        page.locator(".jobs tbody button").first.click()
        page.locator("canvas[role=application]").focus()
        page.keyboard.press("Home")
        page.keyboard.press("Enter")
        expect(page.locator(".panel")).to_be_visible()
        assert page.title().endswith(" · Kumulus")
        assert page.evaluate("document.images.length + document.querySelectorAll('script:not([type])').length") == 0
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        assert page.evaluate("document.documentElement.scrollHeight") < 5000


@pytest.mark.parametrize("width", [390, 820])
def test_it_fits_a_phone_and_a_tablet(browser: Browser, tmp_path: Path, width: int) -> None:
    with visiting(browser, tmp_path, [story()], viewport={"width": width, "height": 800}) as page:
        seek(page, 4000)
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        expect(page.get_by_role("button", name="Play")).to_be_visible()


def test_it_prints_without_what_only_a_screen_can_use(browser: Browser, tmp_path: Path) -> None:
    with visiting(browser, tmp_path, [story()]) as page:
        page.emulate_media(media="print")
        expect(page.get_by_role("button", name="Play")).to_be_hidden()
        expect(page.locator("h1")).to_be_visible()
        assert page.pdf()[:4] == b"%PDF"


def test_a_run_of_nothing_says_so(browser: Browser, tmp_path: Path) -> None:
    with visiting(browser, tmp_path, [Recorder({"title": "nothing"}).history]) as page:
        expect(page.locator(".sums")).to_have_text("0 nodes · pods: no pods yet")
        expect(page.locator(".jobs")).to_contain_text("No jobs yet")
