"""The page of all runs, in a real browser without a network."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, Request, expect

from kumulus.extras.lab.report import history
from kumulus.extras.lab.report.files import RunDirectory
from tests.support.browser import chromium
from tests.support.reports import report

pytestmark = pytest.mark.integration
MORNING = "20261121-090000-aaaaaa"
RUNS = [
    report(MORNING, measures=[{"timeToSchedule.p99": value, "makespan": 9.0} for value in (1.0, 1.5, 2.0)]),
    report("20261121-100000-bbbbbb", measures=[{"timeToSchedule.p99": 1.25}]),
    report("20261121-110000-cccccc", settings={"kube-api-qps": "50"}, measures=[{"timeToSchedule.p99": 4.0}]),
    report(
        "20261121-120000-dddddd",
        experiment="topology",
        scheduler="volcano",
        status="failure",
        judged=[("jobs.partlyAdmitted exactly 0", False, "3")],
        measures=[{"timeToSchedule.p99": 3.0}],
    ),
    report("20261121-130000-eeeeee", status="partial", error="</script><b>interrupted</b>", measures=[]),
]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """The page, opened from its file; whatever it asks of a network, and whatever fails in it, is a failure."""
    results = tmp_path_factory.mktemp("results")
    for each in RUNS:
        directory = RunDirectory(results, each.metadata.experiment, each.metadata.run_id)
        directory.prepare({})
        directory.write(each)
    for number in (1, 2, 3):
        (results / "fill" / MORNING / f"repetition-{number}.svg").touch()
    path, unread = history.write(results)
    assert unread == []
    wrong: list[str] = []

    def asked(request: Request) -> None:
        if not request.url.startswith("file:"):
            wrong.append(request.url)

    with chromium() as browser:
        opened = browser.new_page()
        opened.on("pageerror", lambda error: wrong.append(str(error)))
        opened.on("request", asked)
        opened.goto(path.as_uri())
        yield opened
        assert wrong == []


@pytest.fixture(autouse=True)
def afresh(page: Page) -> None:
    page.reload()


def shown(page: Page) -> list[str]:
    """The runs in the table, from the top."""
    found: list[str] = page.locator("#runs tr").evaluate_all("rows => rows.map(row => row.dataset.run)")
    return found


def test_every_run_is_there_the_latest_first(page: Page) -> None:
    assert shown(page) == [each.metadata.run_id for each in reversed(RUNS)]
    expect(page.locator("#shown")).to_have_text("5 of 5 shown")
    expect(page.locator("#runs b")).to_have_count(0)
    expect(page.get_by_text("</script><b>interrupted</b>")).to_be_visible()


def test_search_finds_runs_by_any_words_of_theirs(page: Page) -> None:
    page.get_by_label("Search").fill("volcano partlyAdmitted")
    assert shown(page) == ["20261121-120000-dddddd"]
    page.get_by_label("Search").fill('qps 50"')
    assert shown(page) == ["20261121-110000-cccccc"]
    page.get_by_label("Search").fill("nowhere")
    assert shown(page) == []
    expect(page.locator("#trends svg")).to_have_count(0)


def test_filters_choose_runs_and_their_trends(page: Page) -> None:
    expect(page.locator("#trends h2")).to_have_text(["fill", "topology"])
    page.get_by_label("Scheduler").select_option("volcano")
    expect(page.locator("#trends h2")).to_have_text(["topology"])
    page.get_by_label("Scheduler").select_option("")
    page.get_by_label("Status").select_option("success")
    assert len(shown(page)) == 3
    page.get_by_label("Experiment").select_option("fill")
    expect(page.locator("#shown")).to_have_text("3 of 5 shown")


def test_only_runs_of_the_same_settings_are_joined(page: Page) -> None:
    page.get_by_label("Experiment").select_option("fill")
    lines = page.locator("#trends path")
    expect(lines).to_have_count(2)
    joined, alone = lines.first.get_attribute("d"), lines.last.get_attribute("d")
    assert joined is not None
    assert alone is not None
    assert joined.count("L") == 1, "two runs of the same limits"
    assert alone.count("L") == 0, "the one with other limits stands alone"
    entries = ["default, 30 nodes, kube-api-qps 5000: 2 runs", "default, 30 nodes, kube-api-qps 50: 1 run"]
    expect(page.locator(".legend > span")).to_have_text(entries)


def test_a_point_is_the_median_of_its_repetitions(page: Page) -> None:
    title = page.locator(f"circle[data-run='{MORNING}'] title")
    expect(title).to_have_text(f"{MORNING} · 1.5 s · success")
    page.get_by_label("Trend of").select_option("makespan")
    expect(title).to_have_text(f"{MORNING} · 9 s · success")
    expect(page.locator("#trends circle")).to_have_count(1)
    expect(page.locator("#meaning")).to_contain_text("makespan: from the first object's creation")


def test_columns_sort_both_ways(page: Page) -> None:
    page.get_by_role("columnheader", name="timeToSchedule.p99").click()
    assert shown(page)[0] == "20261121-110000-cccccc"
    page.get_by_role("columnheader", name="timeToSchedule.p99").click()
    assert shown(page)[-1] == "20261121-110000-cccccc"


def test_on_a_phone_nothing_of_a_run_or_of_its_trend_is_out_of_sight(page: Page) -> None:
    before = page.viewport_size
    assert before is not None
    page.set_viewport_size({"width": 390, "height": 800})
    for part in page.locator("#runs td, #trends svg").all():
        box = part.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= 390
    page.set_viewport_size(before)


def test_a_run_leads_to_its_report_and_plots(page: Page) -> None:
    row = page.locator(f"tr[data-run='{MORNING}']")
    expect(row.get_by_role("link", name=MORNING)).to_have_attribute("href", f"fill/{MORNING}/report.json")
    expect(row.get_by_role("link", name="3")).to_have_attribute("href", f"fill/{MORNING}/repetition-3.svg")


def test_a_comparison_has_the_runs_side_by_side(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "comparison.html"
    history.write_comparison(path, [[(tmp_path / f"{n}.json", each)] for n, each in enumerate(RUNS[:3])])
    page.goto(path.as_uri())
    row = page.locator(".comparison tr", has_text="timeToSchedule.p99").locator("td")
    expect(row).to_have_text(["1.50 s (1.00 s … 2.00 s)", "1.25 s", "4.00 s"])
    expect(page.get_by_label("Comparison")).to_contain_text("limits of the scheduler's requests differ")
    assert len(shown(page)) == 3


def test_on_a_phone_many_runs_are_scrolled_next_to_the_names_of_measures(page: Page, tmp_path: Path) -> None:
    path, before = tmp_path / "comparison.html", page.viewport_size
    assert before is not None
    history.write_comparison(path, [[(tmp_path / f"{n}.json", each)] for n, each in enumerate([*RUNS, *RUNS])])
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(path.as_uri())
    name = page.locator(".comparison th", has_text="timeToSchedule.p99")
    at = name.bounding_box()
    page.get_by_label("Comparison").evaluate("each => each.scrollLeft = 200")
    assert page.get_by_label("Comparison").evaluate("each => each.scrollLeft") == 200
    assert name.bounding_box() == at
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.set_viewport_size(before)
